"""What a run of the job leaves behind, for programs and for people."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, Field, JsonValue

from model.config import Config
from training.retraining.comparison import CHALLENGER, Comparison
from training.retraining.gate import Decision

Result = Literal["running", "promoted", "kept", "passed", "failed"]
"""`promoted`: the challenger took the champion's place. `kept`: it did not, for a reason.
`passed`: it might have, but was not to. `failed`: there is no challenger to speak of."""

REPORT = "retraining.json"
PAGE = "retraining.md"


class DataRead(Config):
    """What was read.

    Attributes:
        source: file or database, without its password.
        until: events are not later than this.
        known_by: and had arrived by then, where the source tells when they arrived.
        erased_events: left out because their users have been erased.
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


class Learned(Config):
    """How the challenger came about."""

    epochs: int
    best_epoch: int
    parameters: int
    refitted: bool
    seconds: float


class RunReport(Config):
    """One run, from its beginning to its result.

    Attributes:
        directory: name of the run's directory; one run may go on where another was killed.
        champion: the version that was current when the run began.
        candidate: the version of the challenger, published or not.
        reason: why the result is what it is.
        warm_start: whether fitting began from the champion's weights.
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
    champion: str | None = None
    candidate: str | None = None
    warm_start: bool = False
    data: DataRead | None = None
    learned: Learned | None = None
    comparison: Comparison | None = None
    decision: Decision | None = None
    phases: dict[str, float] = Field(default_factory=dict)

    def write(self, directory: Path) -> None:
        """Write the report and its page, each whole or not at all."""
        _replace(directory / REPORT, self.model_dump_json(indent=2) + "\n")
        _replace(directory / PAGE, self.page())

    @classmethod
    def read(cls, directory: Path) -> "RunReport | None":
        """The report in a run's directory; None where there is none that can be read."""
        try:
            return cls.model_validate_json((directory / REPORT).read_bytes())
        except (OSError, ValueError):
            return None

    def page(self) -> str:
        """The report for people, in Markdown."""
        parts = [
            f"# Retraining {self.run_id}: {self.result}",
            self.reason or "The run is going on, or was killed.",
            _table(("", ""), self._summary()),
        ]
        if self.comparison is not None:
            parts += ["## What everybody reached", *_compared(self.comparison)]
        if self.decision is not None:
            rows = [
                (check.name, "passed" if check.passed else "**failed**", check.sentence)
                for check in self.decision.checks
            ]
            parts += ["## The gate", _table(("check", "verdict", "why"), rows)]
        if self.phases:
            took = [(phase, f"{seconds:.1f}") for phase, seconds in self.phases.items()]
            parts += ["## Time", _table(("phase", "seconds"), took)]
        return "\n\n".join(parts) + "\n"

    def _summary(self) -> list[tuple[str, str]]:
        rows = [
            ("recipe", self.recipe),
            ("begun from", "the champion's weights" if self.warm_start else "fresh weights"),
            ("champion", self.champion or "none yet"),
            ("challenger", self.candidate or "none"),
            ("started", _instant(self.started_at)),
            ("finished", "" if self.finished_at is None else _instant(self.finished_at)),
        ]
        if self.data is not None:
            data = self.data
            rows += [
                ("events", f"{data.events:,} of {data.users:,} users and {data.items:,} items"),
                ("from", f"{data.source}, until {_instant(data.until)}"),
                ("data window", f"{_instant(data.first_at)} to {_instant(data.last_at)}"),
                ("events of erased users", f"{data.erased_events:,}, left out"),
            ]
        if self.learned is not None:
            learned = self.learned
            refitted = ", then fitted to all events" if learned.refitted else ""
            rows.append(("fit", f"best epoch {learned.best_epoch} of {learned.epochs}{refitted}"))
        return rows


def _compared(comparison: Comparison) -> list[str]:
    metrics = ("ndcg@10", "hit_rate@10", "mrr", "accuracy")
    rows = []
    for name, row in comparison.rows.items():
        lead = comparison.leads.get(name)
        ahead = "" if lead is None else f"{lead.mean:+.4f} ({lead.low:+.4f} to {lead.high:+.4f})"
        rows.append((name, *(f"{row[metric]:.4f}" for metric in metrics), ahead))
    told = (
        f"{comparison.questions:,} questions, {comparison.candidates:,} items ranked in each; "
        "`_withheld` is asked without the query time."
    )
    if comparison.known_to_champion:
        told += (
            f" The champion may have learned from the answers of {comparison.known_to_champion:,}, "
            "and so is favoured: too few events are later than its data."
        )
    head = ("", *metrics, f"{CHALLENGER} ahead in {comparison.metric} (95 %)")
    return [told, _table(head, rows)]


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _instant(at: AwareDatetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S UTC")


def _replace(file: Path, content: str) -> None:
    incoming = file.with_suffix(f"{file.suffix}.incoming")
    incoming.write_text(content, "utf-8")
    incoming.replace(file)
