"""The errors that Kairos raises on purpose.

Every message gives the rule, the value that violates it, and the remedy, in this order.
"""


class KairosError(Exception):
    """The base class of all errors that Kairos raises on purpose; messages are for people.

    `code` is stable: programs may compare it, and the service returns it in problem documents.
    """

    code: str = "kairos_error"


def format_error(error: BaseException) -> str:
    """Format an error with its notes: what a database or a file reported itself."""
    notes = "; ".join(getattr(error, "__notes__", ()))
    return f"{error} ({notes})" if notes else str(error)


class EmptyHistoryError(KairosError):
    """A history to encode has no event of a catalog item."""

    code = "empty_history"


class UnorderedHistoryError(KairosError):
    """A history's events are not in order of time, or are later than the query time."""

    code = "unordered_history"


class UnknownItemError(KairosError):
    """An item id is not in the catalog."""

    code = "unknown_item"


class NoItemSpaceError(KairosError):
    """Similar items were requested of a model that learns no item vectors."""

    code = "no_item_space"


class BundleError(KairosError):
    """A bundle cannot be opened: damaged, incomplete, or of an unsupported format."""

    code = "bundle_refused"


class ExportError(KairosError):
    """An encoder cannot become a program of ONNX Runtime that encodes as it does."""

    code = "encoder_not_exported"


class BundleKeyError(KairosError):
    """A key that signs bundles is missing or too short."""

    code = "bundle_key"


class OutdatedBundleError(BundleError):
    """A bundle is of an older format, which this version of the code does not open."""


class NoCurrentBundleError(BundleError):
    """A bundle store has no published version."""

    code = "no_current_bundle"


class StoreBusyError(KairosError):
    """Another process holds the lock of a bundle store for too long."""

    code = "store_busy"


class EventSourceError(KairosError):
    """Events cannot be read from a file or a database."""

    code = "event_source"


class TrainingError(KairosError):
    """A training run cannot start or continue."""

    code = "training"


class DivergedError(TrainingError):
    """A run's loss or scores are no longer finite; its weights are unusable."""

    code = "diverged"


class ForeignCheckpointError(TrainingError):
    """A run cannot resume from a checkpoint: damaged, outdated, or of another run."""

    code = "foreign_checkpoint"


class ProvenanceError(KairosError):
    """An entry of a bundle's provenance is missing or unreadable."""

    code = "provenance"


class UnknownHeadError(KairosError):
    """An attention head is named that the model does not have."""

    code = "unknown_head"


class MissingPackageError(KairosError):
    """An optional package is not installed."""

    code = "missing_package"
