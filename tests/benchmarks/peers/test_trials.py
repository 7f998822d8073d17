from pathlib import Path

import pytest

from benchmarks.papers.peers.run import PeerFit
from benchmarks.papers.peers.trials import KINDS, TRIALS, choose, read_trials
from model.errors import TrainingError

SUITES = [file.stem for file in (TRIALS.parents[1] / "suites").glob("*.toml")]


def _fit(best: float) -> PeerFit:
    return PeerFit(
        curve=((1.0, 1, {"ndcg@10": best}),),
        best_epoch=1,
        best=best,
        fit_seconds=1.0,
        refit_seconds=2.0,
        validation_seconds=3.0,
        test_seconds=4.0,
        cpu_seconds=5.0,
        peak_mib=6.0,
        parameters=7,
        known_items=8,
        versions={},
    )


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_peer_has_equally_many_valid_trials(suite: str, kind: str) -> None:
    trials = read_trials(suite, kind)
    assert len(trials) == 3
    assert len({trial.model_dump_json() for trial in trials}) == 3
    assert all((trial.kind, trial.dim, trial.blocks) == (kind, 64, 2) for trial in trials)


def test_a_suite_changes_what_all_share() -> None:
    assert {trial.max_history for trial in read_trials("complete-journey", "rectools_hstu")} == {
        100
    }
    assert all(trial.shuffle_instants for trial in read_trials("retail", "rectools_sasrec"))
    assert not any(trial.shuffle_instants for trial in read_trials("ml100k", "rectools_sasrec"))


def test_an_unknown_peer_is_refused() -> None:
    with pytest.raises(TrainingError, match="but got 'recbole'"):
        read_trials("retail", "recbole")


def test_a_peer_without_trials_is_refused(tmp_path: Path) -> None:
    (tmp_path / "trials.toml").write_text("[all.shared]\nbatch_size = 8\n")
    with pytest.raises(TrainingError, match="none of replay_sasrec for retail"):
        read_trials("retail", "replay_sasrec", tmp_path / "trials.toml")


def test_the_trial_of_the_best_validation_is_chosen() -> None:
    trials = read_trials("retail", "rectools_hstu")
    metrics = iter([0.2, 0.5, 0.5])
    chosen, fits = choose(trials, lambda _: _fit(next(metrics)))
    assert chosen == trials[1]
    assert [fit.best for fit in fits] == [0.2, 0.5, 0.5]
    assert fits[0].seconds == 10.0
