"""The rows of a suite: one model each, as changed settings of a recipe, or as a peer."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue, PositiveFloat, StrictInt, field_validator, model_validator

from benchmarks.papers.harness.settings import Settings, list_dotted_names
from model.config import Config

TimeClass = Literal["order only", "intervals in the history", "query time given"]
"""What a model reads of time; rows are compared within a class."""


NOT_CHOSEN = ("fit.seed", "fit.monitor", "fit.refit", "fit.refit_before_test", "fit.refit_from")
"""Settings that no search may change: the luck of a seed, what trials are compared by, and what no
validation question sees."""

MOST_SEEDS = 100
"""The most seeds of a row."""

Seed = Annotated[StrictInt, Field(ge=0, lt=2**31)]

Label = Annotated[str, Field(min_length=1, pattern=r"^[^|\r\n]+$")]
"""A text for one cell of a table of Markdown."""


class Published(Config):
    """Figures of a paper, for the same method on the data of that paper."""

    figures: dict[str, float]
    """By metric, as fractions."""
    source: str


class Point(Config):
    """The position of a row on a curve of its suite."""

    curve: str
    at: float


Role = Literal["default", "control", "variant", "reference", "rival", "method", "peer"]
"""The place of a row in a comparison: our default; a control, the default without a part; a
variant, the default with another published way to read time; a reference, which counts; a rival, a
published method made for repeats or baskets, in our implementation; a method, any other published
one, in our implementation and trained as the default is; a peer, another library's
implementation, run by that library."""


class Row(Config):
    """One model of a suite: its changes to a recipe, and its label."""

    name: str = Field(pattern=r"^[a-z0-9_]+$")
    label: Label
    time_class: TimeClass = Field(alias="class")
    role: Role = "method"
    seeds: tuple[Seed, ...] = Field(default=(0,), min_length=1, max_length=MOST_SEEDS)
    """In TOML a list, or a count that starts at 0."""
    published: Published | None = None
    point: Point | None = None
    recipe: Literal["base", "recommended"] = "base"
    """The recipe that the row changes: the suite's base, or what `recommend_recipe` recommends for
    the suite's events with its `[base.data]` and `[base.split]`."""
    without: tuple[str, ...] = ()
    """Settings of that recipe that return to their defaults, by dotted name."""
    wide: Settings | None = None
    """A table, possibly empty, adds a wide part."""
    encoder: Settings = Field(default_factory=dict)
    fit: Settings = Field(default_factory=dict)
    peer: Settings | None = None
    """The settings of a peer, `benchmarks.papers.peers.config.PeerConfig`; of the recipe, only data
    and split are used."""
    budget_seconds: PositiveFloat | None = None
    """Processor time of this peer's fit; None for that of the suite's peers."""
    search: dict[str, Annotated[tuple[JsonValue, ...], Field(min_length=1)]] = Field(
        default_factory=dict
    )
    """Values to choose from on the validation questions, by the dotted name of a setting, such as
    encoder.neighbours. One setting is changed at a time, in this order; the first value of each is
    where the search begins. Settings that only matter together are tables, such as of encoder."""
    trials: tuple[Settings, ...] = ()
    """Or tables of such settings to choose from."""

    @field_validator("seeds", mode="before")
    @classmethod
    def _count(cls, value: object) -> object:
        if isinstance(value, int) and not isinstance(value, bool):
            # One more than the most is enough to be refused.
            return tuple(range(min(value, MOST_SEEDS + 1)))
        return value

    @field_validator("seeds")
    @classmethod
    def _refuse_equal_seeds(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        if len({*seeds}) < len(seeds):
            raise ValueError(f"seeds are distinct, but got {[*seeds]}; leave one out")
        return seeds

    @model_validator(mode="after")
    def _keep_the_questions(self) -> "Row":
        changed = (*self.without, *self.search, *(name for each in self.trials for name in each))
        if of_suite := [name for name in changed if name.partition(".")[0] in ("data", "split")]:
            raise ValueError(
                "a row keeps the data and split of its suite, since all rows answer the same "
                f"questions, but row {self.name} changes {of_suite}; change [base.data] or "
                "[base.split]"
            )
        return self

    @model_validator(mode="after")
    def _check_choice(self) -> "Row":
        tables = ({name: value} for name, values in self.search.items() for value in values)
        names = {name for each in (*tables, *self.trials) for name in list_dotted_names(each)}
        if unseen := sorted(names & {*NOT_CHOSEN}):
            raise ValueError(
                "settings are chosen by the row's metric of early stopping on validation "
                f"questions, for all of its seeds, but row {self.name} chooses {unseen}; set them "
                "in its table fit"
            )
        if self.search and self.trials:
            raise ValueError(
                f"a row has a search or trials to choose from, but row {self.name} has both; "
                "leave one out"
            )
        return self

    @model_validator(mode="after")
    def _check_role(self) -> "Row":
        if self.role in ("control", "variant") and self.recipe != "recommended":
            raise ValueError(
                f"a {self.role} is the recommended recipe with a part left out or replaced, but "
                f"row {self.name} changes the base recipe; set its recipe to recommended, or its "
                "role to method"
            )
        if (self.peer is None) != (self.role != "peer"):
            raise ValueError(
                f"a row is of role peer if it has settings of a peer, but row {self.name} is of "
                f"role {self.role} and has {'none' if self.peer is None else 'some'}; correct one"
            )
        if self.budget_seconds is not None and self.peer is None:
            raise ValueError(
                "only a peer has a budget of its own, but row "
                f"{self.name} is of role {self.role} and has budget_seconds; leave it out"
            )
        return self

    def describe_choice(self) -> Settings:
        """Describe what its settings are chosen from; empty if there is no choice."""
        choice: Settings = {}
        if self.search:
            choice["search"] = {name: [*values] for name, values in self.search.items()}
        if self.trials:
            choice["trials"] = [*self.trials]
        return choice
