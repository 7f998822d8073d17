"""What can go wrong, as types a caller can tell apart.

Every message states the rule, then the value that broke it, then the remedy.
"""


class KairosError(Exception):
    """Anything Kairos refuses on purpose; its message is meant for a person.

    `code` is stable: programs may compare it, and the service sends it in problem documents.
    """

    code: str = "kairos_error"


class EmptyHistoryError(KairosError):
    """A model was asked to encode a history without a single known event."""

    code = "empty_history"


class UnorderedHistoryError(KairosError):
    """A history's events are not oldest first, or lie after the query time."""

    code = "unordered_history"


class UnknownItemError(KairosError):
    """An item id is not in the catalogue."""

    code = "unknown_item"


class NoItemSpaceError(KairosError):
    """A model that learns no item vectors was asked which items are alike."""

    code = "no_item_space"


class BundleError(KairosError):
    """A bundle cannot be opened: damaged, incomplete, or of a format this version does not know."""

    code = "bundle_refused"


class NoCurrentBundleError(BundleError):
    """A bundle store has nothing published yet."""

    code = "no_current_bundle"


class StoreBusyError(KairosError):
    """Somebody else is changing what a bundle store points at, and takes too long."""

    code = "store_busy"


class EventSourceError(KairosError):
    """Events cannot be read from a file or a database."""

    code = "event_source"


class TrainingError(KairosError):
    """A run cannot start or go on."""

    code = "training"


class DivergedError(TrainingError):
    """A run's loss or scores have stopped being numbers: nothing of it can be used."""

    code = "diverged"


class ForeignCheckpointError(TrainingError):
    """A run finds a checkpoint that it cannot go on from: damaged, or of another run."""

    code = "foreign_checkpoint"


class ProvenanceError(KairosError):
    """A bundle does not say, or not readably, something about how it came about."""

    code = "provenance"
