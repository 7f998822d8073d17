"""TransRec: one translation from the last item, and scores by distance."""

import torch

from model.encoders.transrec import TransRec, TransRecConfig
from model.interfaces import SequenceEncoder
from model.recommender import RecommenderConfig
from tests.contracts.histories import ITEMS, collate_queries, draw_queries
from tests.contracts.sequence_encoder import SequenceEncoderContract, vectors


class TestTransRec(SequenceEncoderContract):
    config = TransRecConfig(dim=16, max_history=40)
    uses_time = False

    def test_the_user_is_the_last_item_plus_the_translation(self, encoder: SequenceEncoder) -> None:
        assert isinstance(encoder, TransRec)
        batch = collate_queries(*draw_queries(3, 7))
        items = vectors(encoder, batch)
        user = encoder(batch, items).user
        assert torch.equal(user[0], items[0, 2] + encoder.translation)
        assert torch.equal(user[1], items[1, 6] + encoder.translation)


def test_scores_are_bias_minus_squared_distance_in_the_unit_ball() -> None:
    recommender = RecommenderConfig(items=ITEMS, encoder=TransRecConfig(dim=8)).build().eval()
    assert isinstance(recommender.encoder, TransRec)
    assert recommender.item_bias is not None
    with torch.no_grad():
        recommender.items.weight[1:].normal_()
        recommender.item_bias.normal_()
        recommender.encoder.translation.normal_()
    weights = {name: tensor.double() for name, tensor in recommender.state_dict().items()}

    def in_unit_ball(row: int) -> torch.Tensor:
        vector = weights["items.weight"][row]
        return vector / max(1.0, float(vector.norm()))

    batch = collate_queries(draw_queries(4)[0])
    with torch.no_grad():
        scores = recommender.score_catalog(batch)[0].double()
    translated = in_unit_ball(int(batch.rows[0, -1])) + weights["encoder.translation"]
    expected = torch.stack(
        [
            weights["item_bias"][row] - (translated - in_unit_ball(row)).square().sum()
            for row in range(1, ITEMS + 1)
        ]
    )
    # Scores are defined up to a constant per query.
    torch.testing.assert_close(scores[1:] - scores[1], expected - expected[0], rtol=0, atol=1e-5)
