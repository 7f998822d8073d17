"""Looking at models and changing what is served, through the clients."""

import pytest

from kairos_client import ConflictError, InvalidError, NotFoundError
from tests.client.asking import Asking


@pytest.fixture
def versions(kairos: Asking) -> tuple[str, str]:
    """The current version, and another one; nothing but the current one answers."""
    models = kairos.list_models().models
    (current,) = (model.version for model in models if model.is_current)
    (other,) = (model.version for model in models if not model.is_current)
    kairos.put_traffic()
    return current, other


def test_a_model_is_activated_and_rolled_back_and_both_are_told(
    kairos: Asking, versions: tuple[str, str]
) -> None:
    current, other = versions
    done = kairos.activate_model(other, reason="it looks good")
    assert (done.version, done.previous_version) == (other, current)
    assert kairos.recommend("nobody").model_version == other
    assert kairos.roll_back(reason="it was not").version == current
    listed = kairos.list_changes(limit=2)
    rolled_back, activated = listed.changes
    assert listed.rollback_version != current
    assert (activated.change, activated.version, activated.reason) == (
        "activate",
        other,
        "it looks good",
    )
    assert (rolled_back.change, rolled_back.version) == ("rollback", current)
    assert rolled_back.at >= activated.at


def test_a_challenger_and_a_shadow_are_named_and_dismissed(
    kairos: Asking, versions: tuple[str, str]
) -> None:
    _, other = versions
    told = kairos.put_traffic(challenger=other, share=0.25, shadow=other)
    assert (told.challenger, told.share, told.shadow) == (other, 0.25, other)
    assert kairos.read_traffic() == told
    assert kairos.put_traffic().challenger is None


def test_a_model_is_described_with_what_it_makes_of_time(
    kairos: Asking, versions: tuple[str, str]
) -> None:
    current, _ = versions
    described = kairos.describe_model(current)
    assert described.is_current
    assert described.manifest["metrics"] == {"ndcg@10": 0.25}
    assert {missing.part for missing in described.missing} >= {"attention_profile"}
    assert [len(curve.psi) == len(curve.interval_days) > 0 for curve in described.kernels]


def test_a_version_that_is_not_published_is_not_found(kairos: Asking) -> None:
    for asked in (kairos.describe_model, kairos.activate_model):
        with pytest.raises(NotFoundError) as raised:
            asked("20000101T000000Z-000000000000")
        assert raised.value.code == "model_not_found"


def test_a_share_of_nobody_breaks_a_rule(kairos: Asking) -> None:
    with pytest.raises(InvalidError) as raised:
        kairos.put_traffic(share=0.5)
    assert raised.value.code == "validation_failed"


def test_rolling_back_ends_at_the_first_version(kairos: Asking, versions: tuple[str, str]) -> None:
    def roll_back_ever_further() -> None:
        for _ in range(100):
            kairos.roll_back()

    with pytest.raises(ConflictError) as raised:
        roll_back_ever_further()
    assert raised.value.code == "nothing_to_roll_back"
    kairos.activate_model(versions[0])


def test_no_run_of_a_job_that_never_ran(kairos: Asking) -> None:
    assert kairos.list_training_runs(limit=1).runs == ()
