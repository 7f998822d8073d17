"""Scores as inner products, and repeat scores."""

import math

import pytest
import torch

from model.encoders.self_attention import SelfAttentionConfig
from model.recommender import Recommender, RecommenderConfig, add_repeat_scores
from model.time_encodings.mercer import MercerConfig
from tests.contracts.histories import ITEMS, collate_queries, draw_queries

ENCODER = SelfAttentionConfig(
    dim=8, heads=2, layers=1, feed_forward=8, max_history=20, time_encoding=MercerConfig(periods=2)
)


def build(*, item_bias: bool = True) -> Recommender:
    recommender = RecommenderConfig(items=ITEMS, item_bias=item_bias, encoder=ENCODER).build()
    if recommender.item_bias is not None:
        torch.nn.init.normal_(recommender.item_bias)
    return recommender.eval()


def test_the_bias_is_one_more_coordinate() -> None:
    recommender = build()
    assert recommender.item_bias is not None
    users = torch.randn(3, 8)
    scores = recommender.user_vectors(users) @ recommender.item_vectors().T
    expected = users @ recommender.items.weight.T + recommender.item_bias
    torch.testing.assert_close(scores, expected)


def test_without_a_bias_vectors_have_the_encoders_width() -> None:
    recommender = build(item_bias=False)
    assert recommender.item_vectors().shape == (ITEMS + 1, 8)
    assert recommender.user_vectors(torch.zeros(2, 8)).shape == (2, 8)


def test_the_padding_row_is_zero_without_a_gradient() -> None:
    recommender = build()
    batch = collate_queries(*draw_queries(2, 6))
    recommender.encode_positions(batch).users.sum().backward()  # type: ignore[no-untyped-call]
    assert (recommender.items.weight[0] == 0).all()
    assert recommender.items.weight.grad is not None
    assert (recommender.items.weight.grad[0] == 0).all()


def test_the_output_is_the_last_position_with_a_bias_coordinate() -> None:
    recommender = build()
    batch = collate_queries(draw_queries(6)[0])
    last = recommender.user_vectors(recommender.encode_positions(batch).users[:, -1])
    torch.testing.assert_close(recommender(batch).user, last, rtol=0, atol=1e-5)
    swept = recommender.sweep(batch, batch.query_times[0, -1:])
    torch.testing.assert_close(swept.user, last, rtol=0, atol=1e-5)


def test_a_long_interval_is_read_as_the_longest_one() -> None:
    recommender = build()
    recommender.longest_interval = 40.0
    batch = collate_queries(draw_queries(6)[0])

    def encode(days: float) -> torch.Tensor:
        late = batch.times[0, -1:] + days
        query_times = torch.cat((batch.query_times[0, :-1], late)).unsqueeze(0)
        found: torch.Tensor = recommender(batch._replace(query_times=query_times)).user
        torch.testing.assert_close(recommender.sweep(batch, late).user, found, rtol=0, atol=1e-5)
        return found

    assert torch.equal(encode(4_000.0), encode(40.0))
    assert not torch.allclose(encode(39.0), encode(40.0))


def test_the_config_rebuilds_a_model_of_the_same_shape() -> None:
    config = RecommenderConfig(items=ITEMS, actions=("buy",), encoder=ENCODER)
    again = RecommenderConfig.model_validate_json(config.model_dump_json())
    assert again == config
    again.build().load_state_dict(config.build().state_dict())


def test_repeat_scores_are_added_in_log_space() -> None:
    scores, repeats = torch.randn(4, ITEMS + 1) * 3, torch.randn(4, 7) * 3
    rows = torch.randint(0, ITEMS + 1, (4, 7))
    repeats[0, 2:] = -math.inf
    repeats[1] = -math.inf
    found = add_repeat_scores(scores, repeats, rows)
    for line in range(4):
        for row in range(ITEMS + 1):
            total = math.exp(scores[line, row]) + sum(
                math.exp(repeats[line, position])
                for position in range(7)
                if rows[line, position] == row
            )
            assert found[line, row].item() == pytest.approx(math.log(total), abs=1e-5)


@pytest.mark.parametrize("size", [-500.0, 500.0])
def test_repeat_scores_do_not_overflow(size: float) -> None:
    scores = torch.full((1, 4), size)
    found = add_repeat_scores(scores, torch.tensor([[size, size]]), torch.tensor([[2, 2]]))
    assert found[0].tolist() == pytest.approx([size, size, size + math.log(3), size])


def test_a_negligible_repeat_score_changes_nothing() -> None:
    scores = torch.tensor([[0.0, 1.0, 2.0]])
    found = add_repeat_scores(scores, torch.tensor([[-1000.0]]), torch.tensor([[1]]))
    assert torch.equal(found, scores)
