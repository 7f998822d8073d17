from pathlib import Path

import pytest
import torch
from torch import Tensor

from model.catalog import Catalog
from model.errors import TrainingError
from model.inference.predictor import Predictor
from model.recommender import Recommender
from model.store.opening import open_predictor
from model.wide import WideConfig
from tests import tiny
from training.retraining.warm_start import copy_champion_weights


@pytest.fixture(scope="module")
def champion(tmp_path_factory: pytest.TempPathFactory) -> Predictor:
    return open_predictor(tiny.write_bundle(tmp_path_factory.mktemp("champion"), seed=3))


def begun(
    champion: Predictor, catalog: Catalog, **changed: object
) -> tuple[dict[str, Tensor], Recommender]:
    described = tiny.recommender_config(**({"items": len(catalog)} | changed))
    torch.manual_seed(0)
    fresh = described.build()
    before = {name: weight.clone() for name, weight in fresh.named_parameters()}
    copy_champion_weights(champion)(described, fresh, catalog)
    return before, fresh


def test_items_get_the_champions_weights_by_id(champion: Predictor) -> None:
    catalog = Catalog.from_ids(("new", "i7", "i2", "newer", "i0"))
    before, fresh = begun(champion, catalog)
    for item_id in ("i7", "i2", "i0"):
        learned = champion.bundle.recommender.items.weight[champion.catalog.row(item_id)]
        assert torch.equal(fresh.items.weight[catalog.row(item_id)], learned)
        assert champion.bundle.recommender.item_bias is not None
        bias = champion.bundle.recommender.item_bias[champion.catalog.row(item_id)]
        assert fresh.item_bias[catalog.row(item_id)] == bias
    for item_id in ("new", "newer"):
        row = catalog.row(item_id)
        assert torch.equal(fresh.items.weight[row], before["items.weight"][row])
    assert not fresh.items.weight[0].any()


def test_biases_of_repeats_follow_their_items(tmp_path: Path) -> None:
    config = tiny.recommender_config(wide=WideConfig())
    champion = open_predictor(tiny.write_bundle(tmp_path, config=config))
    catalog = Catalog.from_ids(("new", "i7"))
    _, fresh = begun(champion, catalog, wide=WideConfig())
    learned = champion.bundle.recommender.wide
    assert learned is not None
    assert learned.repeats is not None
    assert fresh.wide is not None
    assert fresh.wide.repeats is not None
    expected = learned.repeats.item_bias[champion.catalog.row("i7")]
    assert fresh.wide.repeats.item_bias.tolist() == [0, 0, float(expected)]


def test_all_other_weights_are_the_champions(champion: Predictor) -> None:
    _, fresh = begun(champion, Catalog.from_ids(("i1", "new")))
    learned = dict(champion.bundle.recommender.named_parameters())
    others = [name for name in learned if name not in {"items.weight", "item_bias"}]
    assert others
    for name in others:
        assert torch.equal(dict(fresh.named_parameters())[name], learned[name]), name


def test_with_equal_items_the_vectors_are_the_champions(champion: Predictor) -> None:
    _, fresh = begun(champion, champion.catalog)
    vectors, learned = (
        it.item_vectors().detach()[1:] for it in (fresh, champion.bundle.recommender)
    )
    assert torch.equal(vectors, learned)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"encoder": tiny.ENCODER.model_copy(update={"layers": 1})},
            "encoder.layers is 2 in the champion",
        ),
        ({"actions": ("buy",)}, r"actions is \[\] in the champion and \['buy'\] in the recipe"),
        ({"item_bias": False}, "item_bias is True in the champion and False in the recipe"),
    ],
)
def test_a_champion_of_other_settings_is_refused(
    champion: Predictor, changed: dict[str, object], message: str
) -> None:
    with pytest.raises(TrainingError, match=message):
        begun(champion, champion.catalog, **changed)
