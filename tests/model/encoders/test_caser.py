import torch
from torch import Tensor, nn

from model.encoders.caser import Caser, CaserConfig
from model.interfaces import SequenceEncoder
from tests.contracts.histories import draw_queries, laid_out
from tests.contracts.sequence_encoder import SequenceEncoderContract, assert_same, vectors


class CaserContract(SequenceEncoderContract):
    config: CaserConfig  # type: ignore[misc]
    reads_time = False

    def test_the_filters_of_the_paper_one_image_at_a_time(self, encoder: SequenceEncoder) -> None:
        assert isinstance(encoder, Caser)
        batch = laid_out(*draw_queries(9, 2))
        items = vectors(encoder, batch)
        users = encoder.states(batch, items).users
        weights = {name: tensor.double() for name, tensor in encoder.state_dict().items()}
        for place in range(9):
            image = torch.zeros(self.config.window, encoder.dim, dtype=torch.float64)
            for line in range(self.config.window):
                if place - line >= 0:
                    image[-1 - line] = items[0, place - line].double()
            assert_same(users[0, place].double(), self.read_slowly(weights, image))

    def read_slowly(self, weights: dict[str, Tensor], image: Tensor) -> Tensor:
        read = []
        for column in image.T:  # one number per vertical filter and dimension
            read.append(weights["vertical.weight"] @ column + weights["vertical.bias"])
        for number in range(self.config.window):
            height = number + 1
            kernels = weights[f"horizontal.{number}.weight"].transpose(1, 2)
            for kernel, bias in zip(kernels, weights[f"horizontal.{number}.bias"], strict=True):
                fits = [
                    float((image[top : top + height] * kernel).sum() + bias)
                    for top in range(self.config.window - number)
                ]
                read.append(torch.tensor([max(0.0, *fits)], dtype=torch.float64))
        joined = torch.cat(read)
        return (weights["read_out.weight"] @ joined + weights["read_out.bias"]).clamp(min=0)

    def test_only_the_items_of_the_image_are_read(self, encoder: SequenceEncoder) -> None:
        batch = laid_out(draw_queries(9)[0])
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


class TestImageOfOneItem(CaserContract):
    config = CaserConfig(dim=16, window=1, max_history=40)


def test_there_are_filters_for_every_number_of_successive_items() -> None:
    encoder = CaserConfig(dim=8, window=4).build()
    heights = [part.kernel_size for part in encoder.horizontal if isinstance(part, nn.Conv1d)]
    assert heights == [(1,), (2,), (3,), (4,)]
