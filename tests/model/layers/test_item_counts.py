import math

import torch

from model.layers.item_counts import popularity_bias

MET = torch.tensor([2, 2, 2, 1, 4])


def test_more_events_are_a_larger_bias_and_equally_many_an_equal_one() -> None:
    bias = popularity_bias(MET, items=5)
    assert bias[2] > bias[1]
    assert bias[1] == bias[4]
    assert bias[1] > bias[3]
    assert bias[3] == bias[5]


def test_popularity_never_weighs_as_much_as_one_event() -> None:
    for most in (0.5, 1e-6):
        masses = popularity_bias(MET, items=5, at_most=most).exp()[1:]
        torch.testing.assert_close(masses.max(), torch.tensor(most))
        assert (masses > 0).all()


def test_an_item_never_met_still_has_a_finite_bias() -> None:
    assert math.isfinite(popularity_bias(torch.tensor([1]), items=3)[3])
