"""Fitting on frames: the same model as the command line trains, and nothing left behind."""

import gc
import os
import tempfile
from pathlib import Path

import polars as pl
import pytest

import kairos
from model.errors import KairosError, TrainingError
from tests.cli.world import RECIPE
from tests.cli.world import kairos as run_command
from tests.training.recipes import RUN
from training.config import RunConfig
from training.fitting.checkpoint import CHECKPOINT
from training.progress import TrainingProgress

AT = "2024-02-01"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_model_equals_that_of_the_command_line(
    events: pl.DataFrame, items: pl.DataFrame, tmp_path: Path
) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE.replace("epochs = 30", "epochs = 2"))
    events.write_parquet(tmp_path / "events.parquet")
    items.write_parquet(tmp_path / "items.parquet")
    run_command(
        *("train", "--events", tmp_path / "events.parquet", "--recipe", recipe),
        *("--items", tmp_path / "items.parquet", "--output", tmp_path / "run", "--threads", "1"),
    )
    trained = kairos.load(tmp_path / "run", events)
    # Pandas has no polars schema, and the same events.
    fitted = kairos.fit(events.to_pandas(), items.to_pandas(), recipe=recipe, quiet=True)
    users = ["u4", "u14", "u15"]
    assert fitted.recommend(users, at=AT).equals(trained.recommend(users, at=AT))
    assert fitted.metrics.equals(trained.metrics)
    assert fitted.recipe == trained.recipe


def test_epochs_and_seed_replace_those_of_the_recipe(events: pl.DataFrame) -> None:
    first, second, third = (
        kairos.fit(events, recipe=RUN, epochs=1, seed=seed, quiet=True) for seed in (5, 5, 6)
    )
    assert (first.recipe.fit.epochs, first.recipe.fit.seed) == (1, 5)
    answer = first.recommend("u4", at=AT)
    assert second.recommend("u4", at=AT).equals(answer)
    assert not third.recommend("u4", at=AT).equals(answer)


def test_an_invalid_number_of_epochs_is_refused(events: pl.DataFrame) -> None:
    with pytest.raises(KairosError, match=r"fit.epochs: .*greater than 0, but got 0"):
        kairos.fit(events, recipe=RUN, epochs=0)


def test_a_device_that_torch_lacks_is_refused(events: pl.DataFrame) -> None:
    with pytest.raises(KairosError, match="'tpu9' is not; use cpu"):
        kairos.fit(events, recipe=RUN, device="tpu9")


def test_events_that_leave_no_question_are_refused(events: pl.DataFrame, temporary: Path) -> None:
    with pytest.raises(TrainingError, match="leave a test question"):
        kairos.fit(events.unique("user_id", keep="first"), recipe=RUN, quiet=True)
    assert os.listdir(temporary) == []


def test_an_interrupt_leaves_nothing_behind(
    events: pl.DataFrame, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []

    def interrupt(*_: object) -> None:
        found.extend(temporary.glob("kairos-*"))
        raise KeyboardInterrupt

    monkeypatch.setattr(TrainingProgress, "finish_epoch", interrupt)
    with pytest.raises(KeyboardInterrupt):
        kairos.fit(events, recipe=RUN)
    assert len(found) == 1
    assert os.listdir(temporary) == []


def test_temporary_files_last_as_long_as_the_model(events: pl.DataFrame, temporary: Path) -> None:
    model = kairos.fit(events, recipe=RUN, epochs=1, quiet=True)
    (directory,) = temporary.iterdir()
    assert not (directory / CHECKPOINT).exists()
    del model
    gc.collect()
    assert os.listdir(temporary) == []


def test_a_named_output_is_kept_and_resumed(events: pl.DataFrame, tmp_path: Path) -> None:
    kairos.fit(events, recipe=RUN, epochs=1, output=tmp_path / "run", quiet=True)
    assert (tmp_path / "run" / CHECKPOINT).exists()
    with pytest.raises(TrainingError, match="checkpoint"):
        kairos.fit(events, recipe=RUN, epochs=2, output=tmp_path / "run", quiet=True)


def test_progress_goes_to_standard_error(
    events: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    kairos.fit(events, recipe=RUN, epochs=1)
    shown = capsys.readouterr()
    assert (shown.out, "epoch 1/1 loss" in shown.err) == ("", True)
    kairos.fit(events, recipe=RUN, epochs=1, quiet=True)
    assert capsys.readouterr() == ("", "")


def test_events_of_implausible_times_are_warned_of(events: pl.DataFrame) -> None:
    early = events.head(1).with_columns(
        timestamp=pl.lit(0).cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    )
    with pytest.warns(UserWarning, match=r"left out 1 event"):
        kairos.fit(pl.concat([events, early]), recipe=RUN, epochs=1, quiet=True)


@pytest.mark.slow
def test_without_a_recipe_the_recommended_one_is_used(events: pl.DataFrame) -> None:
    model = kairos.fit(events, epochs=1, quiet=True)
    assert isinstance(model.recipe, RunConfig)
    assert model.recipe.wide is not None
