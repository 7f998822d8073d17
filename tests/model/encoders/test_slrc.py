"""SLRC: a base intensity plus the excitation by past purchases."""

import math

import numpy as np
import torch

from model.encoders.slrc import SLRC, SLRCConfig
from model.history import Event, Query
from model.interfaces import SequenceEncoder
from model.layers.repurchase_kernel import LEAST_WIDTH, UNIT_DAYS
from model.recommender import RecommenderConfig
from tests.contracts.histories import DAY, ITEMS, START, collate_queries, draw_queries
from tests.contracts.sequence_encoder import SequenceEncoderContract, encode, vectors


class TestSLRC(SequenceEncoderContract):
    config = SLRCConfig(dim=16, max_history=40)
    uses_time = False  # The user vector is the base; repeat scores are tested below.

    def test_the_user_is_a_map_of_the_mean_item_vector(self, encoder: SequenceEncoder) -> None:
        assert isinstance(encoder, SLRC)
        batch = collate_queries(*draw_queries(3, 7))
        items = vectors(encoder, batch)
        user = encoder(batch, items).user
        torch.testing.assert_close(user[0], encoder.base(items[0, :3].mean(0)))
        torch.testing.assert_close(user[1], encoder.base(items[1].mean(0)))

    def test_the_excitation_depends_on_the_query_time(self, encoder: SequenceEncoder) -> None:
        events = (Event("i1", START), Event("i2", START + 3 * DAY))
        soon, late = (
            encode(encoder, Query(events, START + days * DAY)).repeat_scores for days in (4, 90)
        )
        assert soon is not None
        assert late is not None
        assert (soon - late).abs().min() > 1e-3

    def test_a_withheld_query_time_reads_as_an_interval(self, encoder: SequenceEncoder) -> None:
        assert isinstance(encoder, SLRC)
        with torch.no_grad():
            encoder.log_withheld.fill_(math.log(14 / UNIT_DAYS))
        events = (Event("i1", START), Event("i2", START + 3 * DAY))
        withheld = encode(encoder, Query(events, START + 99 * DAY, query_time_withheld=True))
        given = encode(encoder, Query(events, START + 17 * DAY))
        assert withheld.repeat_scores is not None
        assert given.repeat_scores is not None
        torch.testing.assert_close(withheld.repeat_scores, given.repeat_scores)


def test_scores_are_logarithms_of_the_intensities_of_the_paper() -> None:
    torch.manual_seed(0)
    recommender = RecommenderConfig(items=ITEMS, encoder=SLRCConfig(dim=8)).build().eval()
    encoder = recommender.encoder
    assert isinstance(encoder, SLRC)
    assert recommender.item_bias is not None
    with torch.no_grad():
        recommender.item_bias.normal_()
        encoder.kernel.shared.normal_()
        encoder.kernel.offsets.normal_()
    query = draw_queries(9)[0]
    batch = collate_queries(query)
    with torch.no_grad():
        scores = recommender.score_catalog(batch)[0, 1:].double().numpy()
    table = (encoder.kernel.shared + encoder.kernel.offsets).detach().double().numpy()
    items = recommender.items.weight.detach().double().numpy()
    rows = batch.rows[0].tolist()
    mapped = encoder.base.weight.detach().double().numpy() @ items[rows].mean(0)
    user = mapped + encoder.base.bias.detach().double().numpy()
    intensities = np.exp(items @ user + recommender.item_bias.detach().double().numpy())
    for row, event in zip(rows, query.history, strict=True):
        days = (query.query_time - event.at) / DAY
        intensities[row] += _excite(days / UNIT_DAYS, *table[row])
    np.testing.assert_allclose(scores, np.log(intensities[1:]), rtol=0, atol=1e-4)


def _excite(
    interval: float,
    log_alpha: float,
    logit: float,
    log_mean: float,
    centre: float,
    log_width: float,
) -> float:
    """Compute alpha ((1 - pi) Exp + pi Normal) as the paper writes it."""
    pi = 1 / (1 + math.exp(-logit))
    beta, sigma = (math.exp(one) + LEAST_WIDTH for one in (log_mean, log_width))
    exponential = math.exp(-interval / beta) / beta
    z = (interval - centre) / sigma
    normal = math.exp(-0.5 * z * z) / (sigma * math.sqrt(2 * math.pi))
    return math.exp(log_alpha) * ((1 - pi) * exponential + pi * normal)


def test_lifetimes_start_at_the_repeat_intervals_of_items() -> None:
    encoder = SLRCConfig(dim=8).build(items=3)
    users = torch.arange(400).repeat_interleave(2)
    rows = 1 + users % 2
    days = torch.where(rows == 1, 10, 40) * (torch.arange(800) % 2)
    encoder.start_from(rows, START + DAY * days, users)
    weights = encoder.state_dict()
    centres = (weights["kernel.shared"] + weights["kernel.offsets"])[:, 3] * UNIT_DAYS
    # Of all items, of two items with 200 repeats each, and of one without any.
    torch.testing.assert_close(centres, torch.tensor([25.0, 10, 40, 25]), rtol=0, atol=0.5)
    assert math.isclose(weights["log_withheld"].exp() * UNIT_DAYS, 25, abs_tol=15.1)
