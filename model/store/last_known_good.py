"""The versions that served last, for processes that start while a pointer is broken."""

from pydantic import BaseModel, ConfigDict

from model.store.traffic import Traffic

_MOST_VERSIONS = 10


class LastKnownGood(BaseModel):
    """What processes opened from the store's pointers and served.

    Attributes:
        versions: those that were current, the last one at the end. A version that was left for one
            from before it is not among them, so a rolled-back version never serves again by itself.
        traffic: the last traffic whose versions all opened.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    versions: tuple[str, ...] = ()
    traffic: Traffic = Traffic()

    def with_current(self, version: str) -> "LastKnownGood":
        """Copy the record, with `version` as the last one."""
        until = self.versions.index(version) if version in self.versions else None
        versions = (*self.versions[:until], version)[-_MOST_VERSIONS:]
        return self.model_copy(update={"versions": versions})

    def with_traffic(self, traffic: Traffic) -> "LastKnownGood":
        """Copy the record, with other traffic."""
        return self.model_copy(update={"traffic": traffic})
