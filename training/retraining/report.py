"""The report of a retraining run, as JSON and as a Markdown page."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, Field, JsonValue

from model.config import Config, Measurements
from training.retraining.comparison import CHALLENGER, Comparison
from training.retraining.gate import Decision

Result = Literal["running", "promoted", "kept", "passed", "failed"]
"""`promoted`: the challenger was activated. `kept`: the champion stays. `passed`: the challenger
passed the gate in a dry run. `failed`: no challenger could be trained."""

REPORT = "retraining.json"
PAGE = "retraining.md"


class DataSummary(Config):
    """The events of a run.

    Attributes:
        source: file or database, without its password.
        until: the cut-off; no event is later.
        known_by: the cut-off of arrival, where the source records arrival.
        erased_events: events left out because their users were erased.
        implausible_times: a sentence on the events left out because of their times; None without.
        excess_events: the same on events left out because one user had too many.
        largest_user_share: share of the events of the user with most of them.
        largest_item_share: share of the events that are one item's, of users who have little else;
            None in a small catalog.
    """

    source: str
    until: AwareDatetime
    known_by: AwareDatetime
    events: int
    users: int
    items: int
    first_at: AwareDatetime
    last_at: AwareDatetime
    erased_events: int
    implausible_times: str | None = None
    excess_events: str | None = None
    largest_user_share: float | None = None
    largest_item_share: float | None = None


class FitSummary(Measurements):
    """How the challenger was fitted."""

    epochs: int
    best_epoch: int
    parameters: int
    refitted: bool
    seconds: float


class RunReport(Config):
    """One run, from its beginning to its result.

    Attributes:
        directory: name of the run's directory, shared with the killed run that it resumes.
        champion: the version that was current when the run began.
        candidate: the version of the challenger, published or not.
        reason: of the result.
        note: why the champion was not compared; None if it was, or if there is none.
        warm_start: whether fitting began from the champion's weights.
        erasures: a digest of the erased users whom the decision knew; of others, the challenger may
            have learned.
        phases: seconds by phase.
    """

    run_id: str
    directory: str
    recipe: str
    settings: dict[str, JsonValue]
    started_at: AwareDatetime
    finished_at: AwareDatetime | None = None
    result: Result = "running"
    reason: str | None = None
    note: str | None = None
    champion: str | None = None
    candidate: str | None = None
    warm_start: bool = False
    data: DataSummary | None = None
    learned: FitSummary | None = None
    comparison: Comparison | None = None
    decision: Decision | None = None
    erasures: str | None = None
    phases: dict[str, float] = Field(default_factory=dict)

    def write(self, directory: Path) -> None:
        """Write the report and its page, each atomically."""
        _replace(directory / REPORT, self.model_dump_json(indent=2) + "\n")
        _replace(directory / PAGE, self.render())

    @classmethod
    def read(cls, directory: Path) -> "RunReport | None":
        """Read the report in a run's directory; None if there is none or it is damaged."""
        try:
            return cls.model_validate_json((directory / REPORT).read_bytes())
        except (OSError, ValueError):
            return None

    def render(self) -> str:
        """Render the report in Markdown."""
        parts = [
            f"# Retraining {self.run_id}: {self.result}",
            self.reason or "The run is still running, or was killed.",
            _render_table(("", ""), self._render_summary()),
        ]
        if self.comparison is not None:
            parts += ["## Comparison", *_format_comparison(self.comparison)]
        if self.decision is not None:
            rows = [
                (check.name, "passed" if check.passed else "**failed**", check.sentence)
                for check in self.decision.checks
            ]
            parts += ["## The gate", _render_table(("check", "verdict", "why"), rows)]
        if self.phases:
            durations = [(phase, f"{seconds:.1f}") for phase, seconds in self.phases.items()]
            parts += ["## Time", _render_table(("phase", "seconds"), durations)]
        return "\n\n".join(parts) + "\n"

    def _render_summary(self) -> list[tuple[str, str]]:
        rows = [] if self.note is None else [("note", self.note)]
        rows += [
            ("recipe", self.recipe),
            ("begun from", "the champion's weights" if self.warm_start else "fresh weights"),
            ("champion", self.champion or "none yet"),
            ("challenger", self.candidate or "none"),
            ("started", _format_instant(self.started_at)),
            ("finished", "" if self.finished_at is None else _format_instant(self.finished_at)),
        ]
        if self.data is not None:
            data = self.data
            rows += [
                ("events", f"{data.events:,} of {data.users:,} users and {data.items:,} items"),
                ("from", f"{data.source}, until {_format_instant(data.until)}"),
                (
                    "data window",
                    f"{_format_instant(data.first_at)} to {_format_instant(data.last_at)}",
                ),
                ("events of erased users", f"{data.erased_events:,}, left out"),
            ]
            rows += [
                ("left out", sentence)
                for sentence in (data.implausible_times, data.excess_events)
                if sentence is not None
            ]
        if self.learned is not None:
            learned = self.learned
            refitted = ", then fitted to all events" if learned.refitted else ""
            rows.append(("fit", f"best epoch {learned.best_epoch} of {learned.epochs}{refitted}"))
        return rows


def _format_comparison(comparison: Comparison) -> list[str]:
    metrics = ("ndcg@10", "hit_rate@10", "mrr", "accuracy")
    rows = []
    for name, row in comparison.rows.items():
        lead = comparison.leads.get(name)
        ahead = "" if lead is None else f"{lead.mean:+.4f} ({lead.low:+.4f} to {lead.high:+.4f})"
        rows.append((name, *(f"{row[metric]:.4f}" for metric in metrics), ahead))
    summary = (
        f"{comparison.questions:,} questions, {comparison.candidates:,} items ranked in each; "
        "`_withheld` is the model without the query time."
    )
    if comparison.known_to_champion:
        summary += (
            f" The champion may have learned from the targets of {comparison.known_to_champion:,}, "
            "and so is favoured: too few events are later than its data."
        )
    head = ("", *metrics, f"{CHALLENGER} ahead in {comparison.metric} (95 %)")
    return [summary, _render_table(head, rows)]


def _render_table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_format_cell, line))} |" for line in lines)


def _format_cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _format_instant(at: AwareDatetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S UTC")


def _replace(file: Path, content: str) -> None:
    incoming = file.with_suffix(f"{file.suffix}.incoming")
    incoming.write_text(content, "utf-8")
    incoming.replace(file)
