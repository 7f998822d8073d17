from pathlib import Path

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from benchmarks.papers.peers import environments
from benchmarks.papers.peers.config import PeerConfig, find_library
from benchmarks.papers.peers.environments import (
    FOLDER_VARIABLE,
    LIBRARIES,
    VERSIONS,
    find_interpreter,
)
from benchmarks.papers.peers.files import Sequences
from benchmarks.papers.peers.run import (
    Evaluation,
    FitOptions,
    PeerOutcome,
    run_peer,
    validate_peer,
)
from model.errors import DivergedError, TrainingError
from tests.benchmarks.peers.chain_peer import BEST
from tests.benchmarks.peers.environments import make_environments
from tests.benchmarks.peers.small_splits import SPLITS, split_chains
from training.config import DataConfig
from training.evaluation.metrics import MISS

READ: TypeAdapter[PeerConfig] = TypeAdapter(PeerConfig)


@pytest.fixture
def chain_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Environments whose interpreters run the chain peer in place of the libraries' runners."""
    make_environments(tmp_path / "environments")
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "environments"))


OPTIONS = FitOptions(seed=1, budget_seconds=60, monitor="accuracy")


def _run(
    work: Path, kind: int, config: dict[str, object], *, epochs: int = BEST, **data: object
) -> PeerOutcome:
    whole, split, predict = split_chains(kind)
    work.mkdir()
    return run_peer(
        READ.validate_python(config | {"max_history": 4, "epochs": epochs}),
        whole,
        split,
        DataConfig.model_validate({"predict": predict} | data),
        work,
        OPTIONS,
    )


@pytest.mark.usefixtures("chain_environment")
@pytest.mark.parametrize("kind", range(len(SPLITS)))
def test_ranks_follow_from_the_scores_of_the_process(kind: int, tmp_path: Path) -> None:
    outcome = _run(tmp_path / "work", kind, {"kind": "rectools_sasrec"})
    scores = np.load(tmp_path / "work" / "scores.npy")
    test = outcome.split.test
    assert scores.shape == (len(test), len(outcome.split.dataset.catalog) + 1)
    for target, (question, row) in enumerate(zip(test.question_of, test.target_rows, strict=True)):
        expected = (scores[question, 1:] >= scores[question, row]).sum() if row else MISS
        assert outcome.given.ranks[target] == expected
    assert outcome.withheld is None


@pytest.mark.usefixtures("chain_environment")
def test_the_fit_for_the_test_learns_the_items_of_the_validation(tmp_path: Path) -> None:
    outcome = _run(tmp_path / "test", 1, {"kind": "replay_sasrec"})
    assert outcome.given.accuracy().mean() > 0.5
    _, split, predict = split_chains(1)
    trial = tmp_path / "trial"
    trial.mkdir()
    config = READ.validate_python({"kind": "replay_sasrec", "max_history": 4, "patience": 2})
    validate_peer(config, split, DataConfig(predict=predict), trial, OPTIONS)
    fitted = Sequences.read(trial / "fit.npz")
    fitted_again = Sequences.read(tmp_path / "test" / "refit.npz")
    assert len(fitted_again.rows) > len(fitted.rows)
    assert len(outcome.split.validation) == 0
    assert outcome.fit.parameters == 7
    assert [*outcome.fit.versions] == ["python", "numpy"]
    assert outcome.fit.fit_seconds >= 0
    assert outcome.fit.test_seconds > 0


@pytest.mark.usefixtures("chain_environment")
def test_a_model_of_the_query_time_is_ranked_without_it_too(tmp_path: Path) -> None:
    outcome = _run(tmp_path / "work", 1, {"kind": "rectools_hstu"})
    assert outcome.withheld is not None
    assert outcome.withheld.questions == outcome.given.questions
    without = _run(tmp_path / "without", 1, {"kind": "rectools_hstu", "relative_time": False})
    assert without.withheld is None


@pytest.mark.usefixtures("chain_environment")
def test_seen_items_are_left_out_and_sampled_metrics_kept(tmp_path: Path) -> None:
    outcome = _run(
        tmp_path / "work", 0, {"kind": "rectools_ligr"}, exclude_seen=True, sampled_metrics=True
    )
    assert "ndcg@10_sampled100" in outcome.given.summarise()
    dataset, test = outcome.split.dataset, outcome.split.test
    seen = [
        row in dataset.rows[dataset.offsets[user] : end]
        for user, end, row in zip(test.users, test.ends, test.target_rows, strict=True)
    ]
    assert (outcome.given.ranks[seen] == MISS).all()


@pytest.mark.usefixtures("chain_environment")
def test_all_epochs_are_fitted_without_validation(tmp_path: Path) -> None:
    found = _run(tmp_path / "found", 1, {"kind": "replay_sasrec"})
    assert not (tmp_path / "found" / "validation.npz").exists()
    worse = _run(tmp_path / "worse", 1, {"kind": "replay_sasrec"}, epochs=BEST + 1)
    assert worse.given.accuracy().mean() < found.given.accuracy().mean()


@pytest.mark.usefixtures("chain_environment")
def test_a_trial_of_settings_asks_no_test_question(tmp_path: Path) -> None:
    _, split, predict = split_chains(0)
    reported: list[Evaluation] = []
    fit = validate_peer(
        READ.validate_python({"kind": "replay_tisasrec", "patience": 1}),
        split,
        DataConfig(predict=predict),
        tmp_path,
        FitOptions(seed=0, budget_seconds=60, report_evaluation=reported.append),
    )
    assert fit.best_epoch == BEST
    assert fit.curve[-1][1] == BEST + 1
    assert fit.best > 0.5
    assert tuple((epoch, metrics) for _, epoch, metrics in reported) == tuple(
        (epoch, metrics) for _, epoch, metrics in fit.curve
    )
    assert not [*tmp_path.glob("scores*")]
    assert not (tmp_path / "test.npz").exists()


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo no such loss >&2; exit 3", "ended with 3: no such loss"),
        # What it prints is JSON, but no progress.
        ("echo 7; kill -9 $$", "was ended by SIGKILL; free memory and disk"),
    ],
)
def test_a_failed_process_is_reported_with_its_reason(
    script: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_environments(tmp_path)
    (tmp_path / "rectools" / "bin" / "python").write_text(f"#!/bin/sh\n{script}\n")
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    with pytest.raises(TrainingError, match=reason):
        _run(tmp_path / "work", 0, {"kind": "rectools_sasrec"})


@pytest.mark.usefixtures("chain_environment")
def test_a_peer_whose_scores_are_nan_has_diverged(tmp_path: Path) -> None:
    config = {"kind": "rectools_ligr", "learning_rate": 2.0}
    with pytest.raises(DivergedError, match="scores must be numbers"):
        _run(tmp_path / "test", 0, config)
    _, split, predict = split_chains(0)
    diverging, data = READ.validate_python(config), DataConfig(predict=predict)
    with pytest.raises(DivergedError, match="scores must be numbers"):
        validate_peer(diverging, split, data, tmp_path, OPTIONS)


def test_a_peer_without_a_second_fit_is_refused() -> None:
    with pytest.raises(ValidationError, match="refit"):
        READ.validate_python({"kind": "rectools_sasrec", "refit": False})


def test_a_missing_environment_says_how_to_make_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    with pytest.raises(TrainingError, match=r"peers\.environments replay"):
        find_interpreter("replay")


@pytest.mark.parametrize("versions", [None, "numpy==1.0\n"])
def test_an_environment_that_is_not_complete_is_made_again(
    versions: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_environments(tmp_path)
    made = tmp_path / "rectools" / VERSIONS
    made.unlink()
    if versions is not None:
        made.write_text(versions)
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    with pytest.raises(TrainingError, match=r"rectools is not complete.*environments rectools"):
        find_interpreter("rectools")
    assert find_interpreter("replay").exists()


def test_every_kind_belongs_to_a_library() -> None:
    for kind in ("sasrec", "ligr", "hstu"):
        assert find_library(READ.validate_python({"kind": f"rectools_{kind}"})) == "rectools"
    for kind in ("sasrec", "tisasrec"):
        assert find_library(READ.validate_python({"kind": f"replay_{kind}"})) == "replay"


def test_every_library_has_pinned_versions() -> None:
    folder = Path(environments.__file__).parent / "constraints"
    for library in LIBRARIES:
        lines = [
            line
            for line in (folder / f"{library}.txt").read_text("utf-8").splitlines()
            if not line.startswith("#")
        ]
        assert all("==" in line for line in lines)
        assert "torch==2.13.0" in lines
        assert any(line.startswith("jaxtyping==") for line in lines)
