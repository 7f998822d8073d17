"""What a benchmark suite is: one data set, one base recipe, and the rows that depart from it."""

import hashlib
import json
import re
import tomllib
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import Field, JsonValue, ValidationError, field_validator

from model.config import Config
from model.encoders import EncoderConfig
from model.errors import TrainingError
from training.config import RunConfig

Settings = dict[str, JsonValue]
"""A recipe, or a part of one, as TOML says it."""

SAME_FOR_ALL = ("dim", "dropout", "max_history")
"""What an encoder of another kind keeps of the base's encoder, unless its row says otherwise."""

Knows = Literal["order only", "intervals in the history", "query time given"]
"""What a model is told about time; figures of different classes are not of one contest."""


class Published(Config):
    """Figures of a paper, for the same method on the data of that paper."""

    figures: dict[str, float]
    """By metric, as fractions."""
    source: str


class Point(Config):
    """Where a row stands on a curve of its suite."""

    curve: str
    at: float


class Row(Config):
    """One model of a suite: what it changes in the base, and how it is told to readers."""

    name: str = Field(pattern=r"^[a-z0-9_]+$")
    label: str
    knows: Knows = Field(alias="class")
    seeds: tuple[int, ...] = Field(default=(0,), min_length=1)
    """In TOML a list, or a count that starts at 0."""
    published: Published | None = None
    point: Point | None = None
    data: Settings = Field(default_factory=dict)
    split: Settings = Field(default_factory=dict)
    encoder: Settings = Field(default_factory=dict)
    fit: Settings = Field(default_factory=dict)

    @field_validator("seeds", mode="before")
    @classmethod
    def _count(cls, value: object) -> object:
        return tuple(range(value)) if isinstance(value, int) else value


class Curve(Config):
    """A plot of a metric against one setting, over the rows that have a point on it."""

    name: str
    axis: str


class Panel(Config):
    """A plot of some rows by themselves, beside that of all."""

    title: str
    rows: tuple[str, ...]


class Suite(Config):
    """Models that are measured on the same questions."""

    name: str
    title: str
    told: str
    """The data, the split, and what a reader must not conclude."""
    found: str = ""
    """What the table says to whoever made it; written by hand, once the records are there."""
    data: str
    """A folder with events.parquet, and perhaps items.parquet."""
    metrics: Annotated[tuple[str, ...], Field(min_length=1)]
    """The columns of the table."""
    plot: str
    """The metric that is drawn."""
    figures: Literal["percent", "fraction"] = "fraction"
    curves: tuple[Curve, ...] = ()
    panels: tuple[Panel, ...] = ()
    base: Settings
    rows: Annotated[tuple[Row, ...], Field(min_length=1)]

    @classmethod
    def read(cls, file: Path) -> "Suite":
        """Read a suite from its TOML file; its name is the file's.

        Raises:
            TrainingError: if there is no such file, or it is not a suite.
        """
        try:
            suite = cls.model_validate(
                {"name": file.stem, **tomllib.loads(file.read_text("utf-8"))}
            )
        except FileNotFoundError as error:
            shipped = sorted(path.stem for path in file.parent.glob("*.toml"))
            raise TrainingError(
                f"a suite is one of {shipped} in {file.parent}, but got {file.stem!r}; "
                "check the name, or say where the suites are with --folder"
            ) from error
        except ValueError as error:
            raise TrainingError(f"{file.name} is not a suite: {error}; correct it") from error
        names = [row.name for row in suite.rows]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise TrainingError(
                f"the rows of a suite have names of their own, but {file.name} says {twice} twice; "
                "rename one"
            )
        return suite

    def row(self, name: str) -> Row:
        """The row of that name.

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

    def shortened(self, epochs: int) -> "Suite":
        """The same with so many epochs in every row, for a quick look."""
        unsaid = [
            row.model_copy(update={"fit": {k: v for k, v in row.fit.items() if k != "epochs"}})
            for row in self.rows
        ]
        base = merge(self.base, {"fit": {"epochs": epochs}})
        return self.model_copy(update={"base": base, "rows": tuple(unsaid)})

    def settings(self, row: Row, seed: int) -> Settings:
        """The base with the row's departures: what decides the outcome of a cell."""
        departures: Settings = {
            "data": row.data,
            "split": row.split,
            "encoder": _with_what_is_kept(self.base, row.encoder),
            "fit": row.fit | {"seed": seed, "refit": False},
        }
        return merge(self.base, {name: said for name, said in departures.items() if said})

    def config(self, row: Row, seed: int) -> RunConfig:
        """The run that a row means.

        Raises:
            TrainingError: if the row names unknown or unfit settings, naming the row.
        """
        settings = self.settings(row, seed)
        settings["encoder"] = _without_what_is_not_there(settings.get("encoder"), row.encoder)
        try:
            return RunConfig.model_validate(settings)
        except ValidationError as error:
            told = ", ".join(
                f"{'.'.join(map(str, broken['loc']))}: {_plain(broken['msg'])}"
                for broken in error.errors()
            )
            raise TrainingError(
                f"a row names known settings with values that fit, but row {row.name} of suite "
                f"{self.name} does not: {told}; correct it"
            ) from error


def merge(base: Settings, departures: Settings) -> Settings:
    """The base with some settings replaced, table by table.

    A table that names another `kind` than the base's takes its place: the settings of one kind
    mean nothing to another.
    """
    merged = dict(base)
    for name, said in departures.items():
        stands = merged.get(name)
        if (
            isinstance(said, dict)
            and isinstance(stands, dict)
            and said.get("kind", stands.get("kind")) == stands.get("kind")
        ):
            merged[name] = merge(stands, said)
        else:
            merged[name] = said
    return merged


def digest(settings: Settings) -> str:
    """Identifies settings, however their tables are ordered."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def _with_what_is_kept(base: Settings, encoder: Settings) -> Settings:
    stands = base.get("encoder")
    if not isinstance(stands, dict) or encoder.get("kind", stands.get("kind")) == stands.get(
        "kind"
    ):
        return encoder
    return {name: stands[name] for name in SAME_FOR_ALL if name in stands} | encoder


def _without_what_is_not_there(encoder: JsonValue, said: Settings) -> JsonValue:
    """Leave out what was kept of the base where the encoder's kind has no such field."""
    if not isinstance(encoder, dict):
        return encoder
    fields = _fields_of(encoder.get("kind"))
    return {
        name: value
        for name, value in encoder.items()
        if name in said or name not in SAME_FOR_ALL or fields is None or name in fields
    }


def _fields_of(kind: JsonValue) -> set[str] | None:
    """The fields of an encoder's config; None where no encoder is of that kind."""
    for config in get_args(get_args(EncoderConfig)[0]):
        if config.model_fields["kind"].default == kind:
            return {*config.model_fields}
    return None


def _plain(message: str) -> str:
    """A message in lower case, without the long list of what would have fitted."""
    short = re.sub(r" does not match any of the expected tags.*", " is not known", message)
    return short[0].lower() + short[1:]
