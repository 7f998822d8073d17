"""Training on prepared events."""

from pathlib import Path

from model.bundle.manifest import WEIGHTS
from model.clock import now
from tests import tiny
from tests.training.preparation.worlds import prepare_into, write_parts
from tests.training.progress import SilentProgress
from tests.training.recipes import RUN
from training.run import Outcome, TrainingEvents, train


def run(events: TrainingEvents, output: Path) -> Outcome:
    return train(RUN, events, None, output, progress=SilentProgress())


def test_a_run_on_prepared_events_is_that_on_the_file(tmp_path: Path) -> None:
    events = tiny.gap_world(users=30, length=8)
    # Users in turn, so that their order differs from that of the shards.
    mixed = events.sort("timestamp")
    prepared = prepare_into(write_parts(mixed, tmp_path / "source"), tmp_path / "prepared")
    of_file = run(mixed, tmp_path / "file")
    of_shards = run(prepared.select_plausible(now()), tmp_path / "shards")
    assert of_shards.report == of_file.report
    weights = [(outcome.bundle / WEIGHTS).read_bytes() for outcome in (of_file, of_shards)]
    assert weights[0] == weights[1]
