"""Caser against its filters, one image at a time."""

import torch
from torch import Tensor, nn

from model.encoders.caser import Caser, CaserConfig
from model.interfaces import SequenceEncoder
from tests.contracts.histories import collate_queries, draw_queries
from tests.contracts.sequence_encoder import SequenceEncoderContract, assert_same, vectors


class CaserContract(SequenceEncoderContract):
    config: CaserConfig  # type: ignore[misc]
    uses_time = False

    def test_users_follow_the_formulas(self, encoder: SequenceEncoder) -> None:
        assert isinstance(encoder, Caser)
        batch = collate_queries(*draw_queries(9, 2))
        items = vectors(encoder, batch)
        users = encoder.encode_positions(batch, items).users
        weights = {name: tensor.double() for name, tensor in encoder.state_dict().items()}
        for position in range(9):
            image = torch.zeros(self.config.window, encoder.dim, dtype=torch.float64)
            for line in range(self.config.window):
                if position - line >= 0:
                    image[-1 - line] = items[0, position - line].double()
            assert_same(users[0, position].double(), self.reference_user(weights, image))

    def reference_user(self, weights: dict[str, Tensor], image: Tensor) -> Tensor:
        features = []
        for column in image.T:  # one number per vertical filter and dimension
            features.append(weights["vertical.weight"] @ column + weights["vertical.bias"])
        for number in range(self.config.window):
            height = number + 1
            kernels = weights[f"horizontal.{number}.weight"].transpose(1, 2)
            for kernel, bias in zip(kernels, weights[f"horizontal.{number}.bias"], strict=True):
                activations = [
                    float((image[top : top + height] * kernel).sum() + bias)
                    for top in range(self.config.window - number)
                ]
                features.append(torch.tensor([max(0.0, *activations)], dtype=torch.float64))
        joined = torch.cat(features)
        return (weights["out_proj.weight"] @ joined + weights["out_proj.bias"]).clamp(min=0)

    def test_only_items_in_the_window_have_an_effect(self, encoder: SequenceEncoder) -> None:
        batch = collate_queries(draw_queries(9)[0])
        items = vectors(encoder, batch)
        oldest = 9 - self.config.window
        before, within = items.clone(), items.clone()
        before[:, :oldest] += 1
        within[:, oldest] += 1
        user = encoder(batch, items).user
        assert torch.equal(encoder(batch, before).user, user)
        assert not torch.equal(encoder(batch, within).user, user)


class TestCaser(CaserContract):
    config = CaserConfig(dim=16, vertical=3, horizontal=8, max_history=40)


class TestWindowOfOneItem(CaserContract):
    config = CaserConfig(dim=16, window=1, max_history=40)


def test_filters_exist_for_every_number_of_successive_items() -> None:
    encoder = CaserConfig(dim=8, window=4).build()
    heights = [part.kernel_size for part in encoder.horizontal if isinstance(part, nn.Conv1d)]
    assert heights == [(1,), (2,), (3,), (4,)]
