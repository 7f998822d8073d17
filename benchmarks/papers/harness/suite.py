"""Benchmark suites: one data set, one base recipe, and the rows that change it."""

import tomllib
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, TypeAdapter, ValidationError, model_validator

from benchmarks.papers.harness.references import REFERENCES
from benchmarks.papers.harness.row import Label, Row
from benchmarks.papers.harness.settings import (
    Settings,
    drop_unknown_fields,
    inherit_shared_fields,
    inherit_sizes,
    is_known,
    merge,
    read_monitor,
    remove,
)
from benchmarks.papers.peers.config import CLOSED_FORMS, PeerConfig
from model.config import Config
from model.errors import TrainingError
from training.config import RunConfig
from training.problems import format_with_remedy

RANK_METRICS = ("hit_rate@10", "ndcg@10", "recall@10", "mrr", "accuracy")
"""The metrics of reports that follow from the rank among all items."""

METRICS = (*RANK_METRICS, "hit_rate@10_sampled100", "ndcg@10_sampled100")
"""All metrics of reports."""

AFTER_GAP_METRICS = ("hit_rate@10", "ndcg@10", "mrr", "accuracy")
"""The metrics of reports on questions after a gap."""

RECOMMENDED = "recommended"
"""The folder of the recipes that are recommended for suites, beside that of the suites."""


class Curve(Config):
    """A plot of a metric against one setting, over the rows with a point on it."""

    name: str
    axis: str


class Panel(Config):
    """A plot of some of the rows, beside that of all."""

    title: str
    rows: tuple[str, ...]


class Suite(Config):
    """Models measured on the same questions."""

    name: str
    title: Label
    description: str
    """The data, the split, and the limits of the comparison."""
    findings: str = ""
    """A discussion of the results, written by hand; its figures come from the records, see
    `benchmarks.papers.pages.findings`."""
    limits: str = ""
    """Why the default is not ahead of some rows, for the page of results; figures as in
    `benchmarks.papers.pages.findings`."""
    data: str
    """A folder with events.parquet and optionally items.parquet."""
    metrics: Annotated[tuple[str, ...], Field(min_length=1)]
    """The columns of the table."""
    plot: str
    """The metric of the plot."""
    headline: Literal["all", "after_a_gap"] = "all"
    """The questions of the main table and of leads; the others stand beside it."""
    peer_budget_seconds: PositiveFloat = 900.0
    """Processor time of a peer's fit, unless its row has its own: it ends with the first epoch
    after these."""
    figures: Literal["percent", "fraction"] = "fraction"
    curves: tuple[Curve, ...] = ()
    panels: tuple[Panel, ...] = ()
    base: Settings
    recommended: Settings | None = None
    """The recipe recommended for the suite's events; None if it is not known."""
    rows: Annotated[tuple[Row, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _check_metrics(self) -> "Suite":
        plotted = RANK_METRICS if self.headline == "all" else AFTER_GAP_METRICS
        for field, names, known in (
            ("metrics", self.metrics, METRICS),
            ("plot", (self.plot,), plotted),
        ):
            if other := [name for name in names if name not in known]:
                raise ValueError(
                    f"{field} names metrics of reports, but got {other}; choose from {[*known]}"
                )
        return self

    @model_validator(mode="after")
    def _check_plots(self) -> "Suite":
        rows, curves = [row.name for row in self.rows], [curve.name for curve in self.curves]
        for panel in self.panels:
            if other := [name for name in panel.rows if name not in rows]:
                raise ValueError(
                    f"a panel shows rows of its suite, but panel {panel.title!r} has {other}; "
                    f"name some of {rows}"
                )
        for row in self.rows:
            if row.point is not None and row.point.curve not in curves:
                raise ValueError(
                    f"a point is on a curve of its suite, but that of row {row.name} is on "
                    f"{row.point.curve!r}; name one of {curves}"
                )
        return self

    @model_validator(mode="after")
    def _check_default(self) -> "Suite":
        if len(defaults := [row.name for row in self.rows if row.role == "default"]) > 1:
            raise ValueError(
                f"a suite has one default, which the others are compared with, but got {defaults}; "
                "give the others another role"
            )
        return self

    @classmethod
    def read(cls, file: Path) -> "Suite":
        """Read a suite from its TOML file, and its recommended recipe, if there is one.

        Raises:
            TrainingError: if there is no such file, or it is no valid suite.
        """
        recommended = _read_recommended(file.parent.with_name(RECOMMENDED) / file.name)
        content: Settings = {}
        try:
            content = tomllib.loads(file.read_text("utf-8"))
            suite = cls.model_validate(content | {"name": file.stem, "recommended": recommended})
        except FileNotFoundError as error:
            shipped = list_suite_names(file.parent.parent)
            raise TrainingError(
                f"a suite is one of {shipped} in {file.parent}, but got {file.stem!r}; "
                "check the name, or set the folder of the suites with --folder"
            ) from error
        except ValueError as error:
            problem = format_with_remedy(error, content.get("rows"))
            raise TrainingError(f"{file.name} is not a suite: {problem}") from error
        names, labels = [row.name for row in suite.rows], [row.label for row in suite.rows]
        for field, values in (("names", names), ("labels", labels)):
            if twice := sorted({value for value in values if values.count(value) > 1}):
                raise TrainingError(
                    f"the rows of a suite have distinct {field}, but {file.name} has {twice} "
                    "twice; rename one"
                )
        if taken := sorted({*names} & {*REFERENCES}):
            raise TrainingError(
                f"the references {[*REFERENCES]} stand beside the rows of every suite, but "
                f"{file.name} has rows {taken}; rename them"
            )
        return suite

    def row(self, name: str) -> Row:
        """Return the row of that name.

        Raises:
            TrainingError: if there is none.
        """
        for row in self.rows:
            if row.name == name:
                return row
        raise TrainingError(
            f"suite {self.name} has the rows {[row.name for row in self.rows]}, but got {name!r}; "
            "check the name"
        )

    def shorten(self, epochs: int) -> "Suite":
        """Return the suite for a quick run: `epochs` epochs in every row, one trial of a peer."""
        rows = []
        for row in self.rows:
            changes: dict[str, object] = {
                "fit": {k: v for k, v in row.fit.items() if k != "epochs"}
            }
            if row.peer is not None:
                is_closed = row.peer.get("kind") in CLOSED_FORMS
                peer = row.peer if is_closed else row.peer | {"epochs": epochs}
                changes = {"peer": peer, "trials": row.trials[:1]}
            rows.append(row.model_copy(update=changes))
        base, recommended = (
            recipe and merge(recipe, {"fit": {"epochs": epochs}})
            for recipe in (self.base, self.recommended)
        )
        return self.model_copy(
            update={"base": base, "recommended": recommended, "rows": tuple(rows)}
        )

    def merge_settings(self, row: Row, seed: int) -> Settings:
        """Merge the row's recipe with its changes: the settings of a cell.

        Raises:
            TrainingError: if the row changes the recommended recipe, which is not known, or is
                without a setting that no recipe has.
        """
        choice = row.describe_choice()
        if row.peer is not None:
            shared: Settings = {
                name: self.base[name] for name in ("data", "split") if name in self.base
            }
            settings: Settings = shared | {
                "fit": {"seed": seed, "monitor": self.monitor},
                "peer": inherit_sizes(self.base.get("encoder"), row.peer),
                "budget_seconds": self.get_budget(row),
            }
            return settings | choice
        recipe = self._find_recipe(row)
        for setting in row.without:
            path = setting.split(".")
            if not is_known(RunConfig, path):
                raise TrainingError(
                    f"a row is without settings of a recipe, but row {row.name} of suite "
                    f"{self.name} is without {setting}, which is none; correct the name"
                )
            recipe = remove(recipe, path)
        changes: Settings = {
            "encoder": inherit_shared_fields(recipe, row.encoder),
            "fit": row.fit | {"seed": seed, "refit": False},
        }
        changed: Settings = {name: value for name, value in changes.items() if value}
        if row.wide is not None:
            changed["wide"] = row.wide
        return merge(recipe, changed | choice)

    def get_budget(self, row: Row) -> float:
        """Return the processor time of a peer's fit, in seconds."""
        return row.budget_seconds or self.peer_budget_seconds

    @property
    def monitor(self) -> str:
        """The validation metric of early stopping of the base recipe and of peers."""
        return read_monitor(self.base)

    @property
    def data_title(self) -> str:
        """The name of the data set: the title up to its colon."""
        return self.title.partition(":")[0]

    @property
    def task(self) -> str:
        """The rest of the title, what is predicted; empty if the title has no colon."""
        return self.title.partition(":")[2].strip()

    @property
    def excludes_seen(self) -> bool:
        """Whether items of the history are left out of the ranking."""
        data = self.base.get("data")
        return isinstance(data, dict) and data.get("exclude_seen", False) is True

    def _find_recipe(self, row: Row) -> Settings:
        if row.recipe == "base":
            return self.base
        if self.recommended is None:
            raise TrainingError(
                f"row {row.name} of suite {self.name} has the recommended recipe, but there is no "
                f"file {RECOMMENDED}/{self.name}.toml; write it from the data: "
                f"kairos bench papers --suite {self.name} --recommend"
            )
        kept = {name: self.base[name] for name in ("profile_histories",) if name in self.base}
        return kept | self.recommended

    def build_config(self, row: Row, seed: int) -> RunConfig:
        """Build the recipe of a row.

        Raises:
            TrainingError: if a setting is unknown or invalid; the message names the row.
        """
        settings = self.merge_settings(row, seed)
        for name in ("search", "trials", "peer", "budget_seconds"):
            settings.pop(name, None)
        if "encoder" in settings:
            settings["encoder"] = drop_unknown_fields(settings["encoder"], row.encoder)
        try:
            return RunConfig.model_validate(settings)
        except ValidationError as error:
            raise TrainingError(
                f"a row names known settings with values that fit, but row {row.name} of suite "
                f"{self.name} does not: {format_with_remedy(error)}"
            ) from error


def _read_recommended(file: Path) -> Settings | None:
    """Read the recommended recipe of a suite; None if there is none."""
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise TrainingError(
            f"a recommended recipe is TOML, but {file} is not: {error}; restore it, or delete it "
            f"and write it again: kairos bench papers --suite {file.stem} --recommend"
        ) from error


def list_suite_names(folder: Path) -> list[str]:
    """List the names of the suites of a folder.

    Args:
        folder: of suites/.

    Raises:
        TrainingError: if there are none.
    """
    names = sorted(path.stem for path in (folder / "suites").glob("*.toml"))
    if not names:
        raise TrainingError(
            f"suites are TOML files in a folder suites, but {folder.absolute()} has no suites; run "
            "this in a clone of the repository, or name the folder that has them with --folder"
        )
    return names


def build_peer(suite: Suite, row: Row) -> PeerConfig | None:
    """Build the settings of a peer's row; None for our own rows.

    Raises:
        TrainingError: if a setting is unknown or invalid; the message names the row.
    """
    if row.peer is None:
        return None
    settings = suite.merge_settings(row, row.seeds[0])["peer"]
    try:
        config: PeerConfig = TypeAdapter(PeerConfig).validate_python(settings)
    except ValidationError as error:
        raise TrainingError(
            f"a peer's row names known settings with values that fit, but row {row.name} of suite "
            f"{suite.name} does not: {format_with_remedy(error)}"
        ) from error
    return config
