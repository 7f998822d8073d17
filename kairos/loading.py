"""Loading a model from disk."""

from pathlib import Path

from kairos.frames import Source, to_events
from kairos.histories import Histories
from kairos.model import REPORT, Model
from model.bundle.reading import find_bundle
from model.store.opening import open_predictor
from model.store.store import CURRENT, BundleStore
from training.evaluation.report import Report


def load(path: str | Path, events: Source | None = None) -> Model:
    """Load a model: a bundle, the output directory of a run or of `Model.save`, or a store.

    Of a store it is the current version.

    Args:
        events: of the users that the model is to look up; without them, it is given histories.

    Raises:
        BundleError: if there is no bundle, or it cannot be opened.
        EventSourceError: if an event is invalid.
    """
    root = Path(path)
    is_store = (root / CURRENT).is_file()
    if is_store:
        store = BundleStore(root)
        predictor = store.open()
        directory = root / predictor.version
    else:
        directory = find_bundle(root)
        predictor = open_predictor(directory)
    report = None
    if not is_store and (directory.parent / REPORT).is_file():
        report = Report.model_validate_json((directory.parent / REPORT).read_bytes())
    histories = None if events is None else Histories(to_events(events))
    return Model(predictor, directory, histories=histories, report=report)
