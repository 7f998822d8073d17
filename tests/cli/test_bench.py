"""The `kairos bench` command."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import tiny
from tests.benchmarks.tiny_ablations import (
    ABLATIONS,
    RECOMMENDED_ROW,
    ablation_record_of,
    folder_with_ablations,
    read_tiny_ablation,
)
from tests.benchmarks.tiny_suite import SUITE, folder_with_suite
from tests.cli.world import kairos
from training.config import RunConfig

INVALID_SUITE = SUITE.replace('"popularity"', '"crystal_ball"').replace(
    "seeds = [0, 3]", "seeds = 1"
)

INTERRUPTIBLE = """
import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
from cli.main import app

app()
"""
"""Restores SIGINT, which a background process may ignore."""


def run_papers(folder: Path, *arguments: str, exit_code: int = 0) -> str:
    options = ("--folder", folder, "--data", folder / "data", "--jobs", "2")
    return kairos("bench", "papers", *options, *arguments, exit_code=exit_code).output


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_with_suite(tmp_path_factory.mktemp("papers"), INVALID_SUITE)


def test_an_installation_without_benchmarks_names_the_remedy() -> None:
    hidden = "import sys; sys.modules['benchmarks'] = None; from cli.main import app; app()"
    found = subprocess.run(
        [sys.executable, "-c", hidden, "bench", "papers", "--suite", "retail"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 1
    assert "Traceback" not in found.stderr
    assert "clone it and run make setup" in found.stderr


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_failed_rows_stop_no_other_and_recorded_cells_are_kept(
    folder: Path,
) -> None:
    selection = ("--suite", "tiny", "--rows", "mercer,counts,positional")
    output = run_papers(folder, *selection, exit_code=1)
    assert "failed tiny counts: " in output
    assert "'crystal_ball'" in output
    records = folder / "results" / "tiny"
    assert {file.name for file in records.glob("*.json")} == {"mercer-0.json", "positional-0.json"}
    # Both rows answered the same questions.
    assert len([*(records / "questions").iterdir()]) == 1
    page = (folder / "README.md").read_text()
    assert "| Mercer `mercer` | method | query time given |" in page
    assert (folder / "plots" / "tiny.svg").exists()

    (records / "mercer-0.json").unlink()
    again = run_papers(folder, *selection, exit_code=1)
    assert "2 cells, 1 of them recorded already" in again
    assert "tiny mercer 0: epoch 2/2 loss" in again
    assert "tiny positional 0: started" not in again
    assert (folder / "README.md").read_text().count("| Mercer |") == page.count("| Mercer |")


@pytest.mark.slow
def test_a_failed_cell_is_printed_with_its_reason(tmp_path: Path) -> None:
    folder = folder_with_suite(tmp_path)
    output = run_papers(
        folder, *("--suite", "tiny", "--rows", "degree_2", "--device", "meta"), exit_code=1
    )
    assert "failed tiny degree_2 0: " in output
    assert not (folder / "results").exists()


@pytest.mark.slow
def test_a_quick_run_is_printed_and_not_recorded(tmp_path: Path) -> None:
    findings = 'findings = "Better than {mercer}: {degree_2}."\n'
    folder = folder_with_suite(tmp_path, findings + SUITE)
    output = run_papers(
        folder, "--suite", "tiny", "--rows", "degree_2", "--quick", "--threads", "2"
    )
    assert ", 2 threads, torch" in output
    assert "Better than" not in output
    assert "| Mercer of degree 2 `degree_2` | method | query time given |" in output
    assert "A quick look: a sample of users" in output
    assert "Without a record" not in output
    assert sorted(path.name for path in folder.iterdir()) == ["data", "suites"]


@pytest.mark.slow
def test_an_interrupt_ends_the_running_cells(tmp_path: Path) -> None:
    folder = folder_with_suite(tmp_path, SUITE.replace("epochs = 2", "epochs = 100000"))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    process = subprocess.Popen(
        [
            *(sys.executable, "-c", INTERRUPTIBLE, "bench", "papers"),
            *("--suite", "tiny", "--rows", "degree_2"),
            *("--folder", folder, "--data", folder / "data"),
        ],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(temporary)},
    )
    with process:
        assert process.stderr is not None
        next(line for line in process.stderr if "epoch 3/" in line)
        process.send_signal(signal.SIGINT)
        # The pipe ends when every process that could write to it has ended.
        assert "failed" not in process.stderr.read()
    assert process.returncode == 130
    assert not (folder / "results").exists()
    assert not [*temporary.glob("tmp*")]


@pytest.mark.slow
def test_a_cell_given_twice_is_run_once(tmp_path: Path) -> None:
    folder = folder_with_suite(tmp_path)
    twice = ("--suite", "tiny", "--suite", "tiny", "--rows", "counts,counts", "--seeds", "0,0")
    assert "1 cells, 0 of them recorded already" in run_papers(folder, *twice)
    record = folder / "results" / "tiny" / "counts-0.json"
    measured = record.read_text()

    # Other data neither replace the record nor run.
    tiny.gap_world(users=20, length=8).write_parquet(folder / "data" / "tiny" / "events.parquet")
    output = run_papers(folder, "--suite", "tiny", "--rows", "counts", exit_code=1)
    assert "counts-0.json is of tiny/events.parquet" in output
    assert record.read_text() == measured


def test_an_unusable_device_starts_nothing(tmp_path: Path) -> None:
    folder = folder_with_suite(tmp_path)
    options = ("--suite", "tiny", "--rows", "counts", "--device", "banana")
    output = run_papers(folder, *options, exit_code=1)
    assert "'banana' is not; use cpu" in output
    assert "started" not in output


def test_a_text_with_a_wrong_figure_starts_nothing(tmp_path: Path) -> None:
    folder = folder_with_suite(tmp_path, 'limits = "{merceer}"\n' + SUITE)
    output = run_papers(folder, "--suite", "tiny", "--rows", "counts", exit_code=1)
    assert "but {merceer} does not; correct it" in output
    assert "started" not in output
    folder = folder_with_ablations(tmp_path / "two", ABLATIONS + '[findings]\ntiny = "{ful}"\n')
    output = run_ablations(folder, "--rows", "small", exit_code=1)
    assert "but {ful} does not; correct it" in output


@pytest.mark.parametrize("options", [("--suite", "tiny"), ("--render",)])
def test_a_folder_without_suites_is_named(tmp_path: Path, options: tuple[str, ...]) -> None:
    output = run_papers(tmp_path, *options, exit_code=1)
    assert "no suites; run this in a clone of the repository" in output


def test_a_file_in_place_of_a_folder_runs_no_cell(tmp_path: Path) -> None:
    folder = folder_with_suite(tmp_path)
    (folder / "bundles").touch()
    selection = ("--suite", "tiny", "--rows", "counts", "--keep", str(folder / "bundles"))
    output = run_papers(folder, *selection, exit_code=1)
    assert "choose another with --keep" in output
    assert "started" not in output
    assert not (folder / "results").exists()


def test_recommended_recipes_are_written_without_a_training(tmp_path: Path) -> None:
    folder = folder_with_suite(tmp_path, SUITE + RECOMMENDED_ROW)
    output = run_papers(folder, "--suite", "tiny", "--recommend")
    assert "tiny: the recommended recipe was written to" in output
    assert RunConfig.read(folder / "recommended" / "tiny.toml").wide
    assert not (folder / "results").exists()


def test_rendering_needs_no_data(tmp_path: Path) -> None:
    folder = folder_with_suite(tmp_path)
    run_papers(folder, "--render")
    assert (folder / "README.md").read_text().startswith("# Recorded results")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name one with --suite"),
        (("--suite", "huge"), "a suite is one of ['tiny']"),
        (("--suite", "tiny", "--rows", "mercator"), "'mercator'"),
        (("--suite", "tiny", "--seeds", "one"), "write 0,1"),
        (("--suite", "tiny", "--seeds", "5"), "have the seeds [0, 3], but got [5]"),
    ],
)
def test_invalid_arguments_are_rejected(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    output = run_papers(folder_with_suite(tmp_path), *arguments, exit_code=1)
    assert message in output


@pytest.mark.parametrize(
    "arguments",
    [
        ("--render", "--suite", "tiny"),
        ("--render", "--rows", "counts"),
        ("--render", "--seeds", "0"),
        ("--recommend", "--suite", "tiny", "--quick"),
        ("--recommend", "--suite", "tiny", "--seeds", "0"),
    ],
)
def test_options_that_would_change_nothing_are_refused(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    output = run_papers(folder_with_suite(tmp_path), *arguments, exit_code=1)
    assert f"beside {arguments[0]}, " in output
    assert "leave out one or the other" in output


def run_ablations(folder: Path, *arguments: str, exit_code: int = 0) -> str:
    options = ("--folder", folder / "ablations", "--papers", folder / "papers")
    data = ("--data", folder / "papers" / "data")
    return kairos("bench", "ablations", *options, *data, *arguments, exit_code=exit_code).output


@pytest.mark.slow
def test_ablations_are_recorded_resumed_and_rendered(tmp_path: Path) -> None:
    # The findings name a row that is not selected.
    folder = folder_with_ablations(tmp_path, ABLATIONS + '[findings]\ntiny = "{full - small}"\n')
    selection = ("--rows", "full,no_drift,no_baskets", "--seeds", "0", "--epochs", "1")
    assert "2 cells, 0 of them recorded already" in run_ablations(folder, *selection)
    page = (folder / "ablations" / "README.md").read_text()
    assert "| without drift | " in page
    assert "epochs: at most 1 (the recipe's: 12; compare within this table)." in page
    assert "2 cells, 2 of them recorded already" in run_ablations(folder, *selection)


def test_rendering_ablations_needs_no_data(tmp_path: Path) -> None:
    folder = folder_with_ablations(tmp_path)
    run_ablations(folder, "--render")
    page = (folder / "ablations" / "README.md").read_text()
    assert page.startswith("# What each part of the recommended recipe is worth")


def test_an_ablation_of_other_epochs_replaces_no_record(tmp_path: Path) -> None:
    folder = folder_with_ablations(tmp_path)
    record = folder / "ablations" / "results" / "tiny" / "no_drift-0.json"
    right = {"model": 100, "model_live": 100, "model_withheld": 100}
    ablation_record_of(read_tiny_ablation(folder), "no_drift", right, epochs=2).write(record)
    measured = record.read_text()
    output = run_ablations(folder, "--rows", "no_drift", "--epochs", "1", exit_code=1)
    assert "no_drift-0.json is of 2, and this run of 1; give --epochs 2, or delete" in output
    assert "started" not in output
    assert record.read_text() == measured


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--suite", "huge"), "one of the suites ['tiny'], but got 'huge'"),
        (("--rows", "no_magic"), "'no_magic'"),
        (("--seeds", "one"), "write 0,1"),
        (("--seeds", "5"), "have the seeds [0, 1, 2], but got [5]"),
    ],
)
def test_invalid_ablations_are_rejected(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    output = run_ablations(folder_with_ablations(tmp_path), *arguments, exit_code=1)
    assert message in output
