"""What the job is told to do."""

import hashlib
from dataclasses import dataclass

from model.clock import to_datetime
from model.errors import TrainingError
from training.config import RunConfig
from training.data.sources import name_of
from training.data.split import ByTimeConfig


@dataclass(frozen=True)
class RetrainingJob:
    """One run of the job.

    Attributes:
        recipe: what the recipe is called.
        events: as for `training.data.sources.read_events`.
        items: as for `training.data.sources.read_items`.
        database: the service's, which knows who was erased; None where there is none.
        until: learn from no later events; epoch microseconds.
        known_by: nor from events that arrived later, where the source tells.
        warm_start: begin from the champion's weights, where there is a champion.
        promotes: whether a challenger that passes the gate is published and activated.
        keep: afterwards, remove all but so many versions and runs; None removes nothing.
    """

    config: RunConfig
    recipe: str
    events: str
    items: str | None
    until: int
    known_by: int
    database: str | None = None
    warm_start: bool = False
    promotes: bool = True
    keep: int | None = None

    def require_split_by_time(self) -> None:
        """Refuse to measure a model on a past that it has learned the future of.

        Raises:
            TrainingError: if the recipe's split is another one.
        """
        if not isinstance(self.config.split, ByTimeConfig):
            raise TrainingError(
                "a retrained model is measured on what came last, so its recipe splits by time, "
                f'however split.kind is {self.config.split.kind!r}; set it to "by_time"'
            )

    def directory_name(self, champion: str | None) -> str:
        """The same for the same order: whoever gives a killed one again goes on with its run."""
        told = (
            self.config.model_dump_json(exclude={"gate"}),
            name_of(self.events),
            self.items is None or name_of(self.items),
            self.until,
            self.known_by,
            champion if self.warm_start else None,
        )
        digest = hashlib.sha256(repr(told).encode()).hexdigest()[:8]
        return f"{to_datetime(self.until):%Y%m%dT%H%M%SZ}-{self.recipe}-{digest}"
