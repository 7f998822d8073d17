"""The contract of counting encoders, in addition to that of every encoder."""

import torch
from torch import Tensor

from model.history import Event, Query
from model.interfaces import CountingEncoder, SequenceEncoder
from model.recommender import add_repeat_scores
from tests.contracts.histories import DAY, ITEMS, START
from tests.contracts.sequence_encoder import SequenceEncoderContract, encode

USERS = torch.tensor([0, 0, 0, 0, 1, 1, 1, 2, 2])
ROWS = torch.tensor([1, 2, 1, 2, 1, 2, 3, 4, 4])
TIMES = START + DAY * torch.tensor([0, 1, 2, 3, 0, 1, 2, 40, 41])
"""Item 1 three times, 2 three times, 3 once, 4 twice; only 4 in the last week."""


def fit_counts(encoder: SequenceEncoder) -> Tensor:
    assert isinstance(encoder, CountingEncoder)
    return encoder.fit_counts(ROWS, TIMES, USERS)


def scores(encoder: SequenceEncoder, *item_rows: int) -> Tensor:
    """Compute the score of every row after events of these items, a day apart."""
    bias = fit_counts(encoder)
    events = tuple(Event(f"i{row - 1}", START + n * DAY) for n, row in enumerate(item_rows))
    encoded = encode(encoder, Query(events, START + 50 * DAY))
    if encoded.repeat_scores is None:
        return bias
    rows = encoded.repeat_rows
    if rows is None:
        rows = torch.tensor([item_rows])
    return add_repeat_scores(bias[None], encoded.repeat_scores, rows)[0]


def ranking(encoder: SequenceEncoder, *item_rows: int) -> list[int]:
    """Rank the rows, best first; ties in the order of rows."""
    return (1 + scores(encoder, *item_rows)[1:].argsort(descending=True, stable=True)).tolist()


class CountingEncoderContract(SequenceEncoderContract):
    uses_time = False

    @classmethod
    def build(cls) -> SequenceEncoder:
        encoder = super().build()
        fit_counts(encoder)
        return encoder

    def test_it_has_no_parameters(self, encoder: SequenceEncoder) -> None:
        assert list(encoder.parameters()) == []

    def test_every_item_of_the_catalog_has_a_score(self, encoder: SequenceEncoder) -> None:
        assert fit_counts(encoder).shape == (ITEMS + 1,)
        assert scores(encoder, 1, 2).isfinite().all()
