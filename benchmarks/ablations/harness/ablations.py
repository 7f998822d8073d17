"""The ablations: rows that change one part of the recommended recipe, on the data of suites."""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator

from benchmarks.papers.harness.measured_rows import MeasuredRow, is_current, read_measured
from benchmarks.papers.harness.record import Record, name_record
from benchmarks.papers.harness.row import Row
from benchmarks.papers.harness.settings import Settings
from benchmarks.papers.harness.suite import Suite
from model.config import Config
from model.errors import TrainingError
from training.problems import format_with_remedy

FILE = "ablations.toml"


class Ablations(Config):
    """Suites of the papers' tables, and the rows that are run on the data of each.

    The first row is the whole recipe, which the others are compared with. All rows change the
    recommended recipe, read the query time and have three seeds. None trains again on all events:
    the bundle is not kept.
    """

    suites: Annotated[tuple[str, ...], Field(min_length=1)]
    rows: Annotated[tuple[Row, ...], Field(min_length=1)]
    findings: dict[str, str] = Field(default_factory=dict)
    """What the table of a suite shows, in Markdown, by suite; its figures come from the records,
    see `benchmarks.papers.pages.findings`."""

    @field_validator("rows", mode="before")
    @classmethod
    def _complete(cls, rows: object) -> object:
        if not isinstance(rows, list):
            return rows
        return [
            _complete_row(row, is_first=number == 0) if isinstance(row, dict) else row
            for number, row in enumerate(rows)
        ]

    @classmethod
    def read(cls, folder: Path) -> "Ablations":
        """Read the ablations from `ablations.toml` in a folder.

        Raises:
            TrainingError: if the file is missing or invalid.
        """
        file = folder / FILE
        content: Settings = {}
        try:
            content = tomllib.loads(file.read_text("utf-8"))
            found = cls.model_validate(content)
        except FileNotFoundError as error:
            raise TrainingError(
                f"ablations are read from {FILE}, but {folder} has none; set --folder"
            ) from error
        except ValueError as error:
            problem = format_with_remedy(error, content.get("rows"))
            raise TrainingError(f"{file} is not valid: {problem}") from error
        if other := sorted({*found.findings} - {*found.suites}):
            raise TrainingError(
                f"findings are of suites of {FILE}, {[*found.suites]}, but got {other}; correct "
                "the name"
            )
        for field, names in (
            ("rows", [row.name for row in found.rows]),
            ("suites", [*found.suites]),
        ):
            if twice := sorted({name for name in names if names.count(name) > 1}):
                raise TrainingError(
                    f"{field} have distinct names, but {file} has {twice} twice; rename or remove "
                    "one"
                )
        return found

    def read_suite(self, name: str, papers: Path) -> Suite:
        """Read a suite of the papers' tables, with these rows in place of its own.

        Args:
            papers: the folder of suites/ and recommended/.

        Raises:
            TrainingError: if the name is not one of these suites, or there is no such file.
        """
        if name not in self.suites:
            raise TrainingError(
                f"an ablation runs on one of the suites {[*self.suites]}, but got {name!r}; "
                f"check the name, or add it to {FILE}"
            )
        suite = Suite.read(papers / "suites" / f"{name}.toml")
        changes = {"rows": self.rows, "findings": self.findings.get(name, "")}
        return suite.model_copy(update=changes | {"limits": "", "curves": (), "panels": ()})


def _complete_row(row: Settings, *, is_first: bool) -> Settings:
    """Complete a row of the file with what all rows have."""
    shared: Settings = {"class": "query time given", "recipe": "recommended", "seeds": 3}
    shared["role"] = "default" if is_first else "control"
    return shared | row


def select_rows(suite: Suite, names: tuple[str, ...] = ()) -> Suite:
    """Select rows by name, without those that change nothing in the recipe of the suite.

    Args:
        suite: from `Ablations.read_suite`, with its recommended recipe.
        names: all by default.

    Raises:
        TrainingError: if there is no such row.
    """
    rows = [suite.row(name) for name in names] or suite.rows
    return suite.model_copy(update={"rows": tuple(row for row in rows if changes(suite, row))})


def changes(suite: Suite, row: Row) -> bool:
    """Return whether a row changes the recipe of a suite; the first row, the whole recipe, counts.

    A part that the recipe does not have cannot be taken away.
    """
    full = suite.rows[0]
    return row == full or suite.build_config(row, 0) != suite.build_config(full, 0)


def read_ablation(folder: Path, suite: Suite) -> list[MeasuredRow]:
    """Read the rows that have records of the suite's current settings, at any number of epochs.

    Args:
        folder: of results/.
    """
    return read_measured(folder, suite, is_current_at_its_epochs)


def is_current_at_its_epochs(record: Record, suite: Suite, row: Row) -> bool:
    """Return whether a record's settings equal the suite's, apart from the number of epochs."""
    return record.questions_sha256 is not None and is_current(
        record, suite.shorten(get_epochs(record)), row
    )


def check_epochs(suite: Suite, results: Path, seeds: Sequence[int] = ()) -> None:
    """Check that no cell would replace a record of another number of epochs.

    Args:
        suite: the rows to run, with the epochs of these runs.
        results: the folder of the records, one folder per suite.
        seeds: for every row; by default those of the row.

    Raises:
        TrainingError: if one would.
    """
    for row in suite.rows:
        epochs = suite.build_config(row, 0).fit.epochs
        for seed in seeds or row.seeds:
            file = results / suite.name / name_record(row.name, seed)
            found = Record.find(file)
            if found is None or not is_current_at_its_epochs(found, suite, row):
                continue
            if (recorded := get_epochs(found)) != epochs:
                raise TrainingError(
                    f"a record is replaced by one of as many epochs, but {file} is of {recorded}, "
                    f"and this run of {epochs}; give --epochs {recorded}, or delete the record"
                )


def get_epochs(record: Record) -> int:
    """Return the most epochs of a record's recipe."""
    fit = record.config["fit"]
    assert isinstance(fit, dict)
    epochs = fit["epochs"]
    assert isinstance(epochs, int)
    return epochs
