"""The operations on models, against the real application."""

import pytest

from kairos_client import ConflictError, InvalidError, NotFoundError
from tests.client.either_client import EitherClient


@pytest.fixture
def versions(kairos: EitherClient) -> tuple[str, str]:
    """The current version and another one; without challenger and shadow."""
    models = kairos.list_models().models
    (current,) = (model.version for model in models if model.is_current)
    (other,) = (model.version for model in models if not model.is_current)
    kairos.put_traffic()
    return current, other


def test_activation_and_rollback_are_recorded(
    kairos: EitherClient, versions: tuple[str, str]
) -> None:
    current, other = versions
    done = kairos.activate_model(other, reason="it looks good")
    assert (done.version, done.previous_version) == (other, current)
    assert kairos.recommend("u-new").model_version == other
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


def test_challenger_and_shadow_are_set_and_removed(
    kairos: EitherClient, versions: tuple[str, str]
) -> None:
    _, other = versions
    traffic = kairos.put_traffic(challenger=other, share=0.25, shadow=other)
    assert (traffic.challenger, traffic.share, traffic.shadow) == (other, 0.25, other)
    assert kairos.read_traffic() == traffic
    assert kairos.put_traffic().challenger is None


def test_describe_model_returns_manifest_and_kernels(
    kairos: EitherClient, versions: tuple[str, str]
) -> None:
    current, _ = versions
    described = kairos.describe_model(current)
    assert described.is_current
    assert described.manifest["metrics"] == {"ndcg@10": 0.25}
    assert {missing.part for missing in described.missing} >= {"attention_profile"}
    assert [len(curve.psi) == len(curve.interval_days) > 0 for curve in described.kernels]


def test_an_unpublished_version_is_not_found(kairos: EitherClient) -> None:
    for method in (kairos.describe_model, kairos.activate_model):
        with pytest.raises(NotFoundError) as error:
            method("20000101T000000Z-000000000000")
        assert error.value.code == "model_not_found"


def test_a_share_without_a_challenger_is_invalid(kairos: EitherClient) -> None:
    with pytest.raises(InvalidError) as error:
        kairos.put_traffic(share=0.5)
    assert error.value.code == "validation_failed"


def test_rollback_stops_at_the_first_version(
    kairos: EitherClient, versions: tuple[str, str]
) -> None:
    def roll_back_repeatedly() -> None:
        for _ in range(100):
            kairos.roll_back()

    with pytest.raises(ConflictError) as error:
        roll_back_repeatedly()
    assert error.value.code == "nothing_to_roll_back"
    kairos.activate_model(versions[0])


def test_list_training_runs_is_empty_before_the_first_run(kairos: EitherClient) -> None:
    assert kairos.list_training_runs(limit=1).runs == ()
