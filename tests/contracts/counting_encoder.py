"""What every encoder that counts promises, beside what every encoder promises."""

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
"""In all: item 1 three times, 2 three times, 3 once, 4 twice and alone in the last week."""


def fit_counts(encoder: SequenceEncoder) -> Tensor:
    assert isinstance(encoder, CountingEncoder)
    return encoder.fit_counts(ROWS, TIMES, USERS)


def scores(encoder: SequenceEncoder, *item_rows: int) -> Tensor:
    """The score of every row after meeting these items, a day apart."""
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
    """The rows of the first items, best first, equal ones in the order of their rows."""
    return (1 + scores(encoder, *item_rows)[1:].argsort(descending=True, stable=True)).tolist()


class CountingEncoderContract(SequenceEncoderContract):
    uses_time = False

    @classmethod
    def build(cls) -> SequenceEncoder:
        encoder = super().build()
        fit_counts(encoder)
        return encoder

    def test_what_was_counted_is_all_there_is_to_learn(self, encoder: SequenceEncoder) -> None:
        assert list(encoder.parameters()) == []

    def test_every_item_of_the_catalogue_is_scored(self, encoder: SequenceEncoder) -> None:
        assert fit_counts(encoder).shape == (ITEMS + 1,)
        assert scores(encoder, 1, 2).isfinite().all()
