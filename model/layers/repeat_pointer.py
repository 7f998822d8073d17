"""Pointing back at the history, for people who return to the same items."""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from model.layers.fourier_basis import ReadOut
from model.layers.kernel_scale import KernelScale
from model.layers.time_aware_attention import Asked, Events, TimeAwareMatch


@final
class RepeatPointer(nn.Module):
    """How much each past event speaks for meeting its own item again at the query time.

    An item's unnormalised mass is `exp(user . item) + sum over its events of exp(pointer)`: the
    softmax over the catalogue gains one candidate per past event, and events of one item add up.
    The pointer reads the event, its age and the user's state, so it can learn how often someone
    comes back and after how long. Where a kernel tells time, the event's age enters through that.

    Paper: the pointer network of Vinyals et al. 2015 and the repeat mode of RepeatNet (Ren et al.
        2019), as one softmax over both vocabularies, with the time-aware match for the pointer.
    """

    def __init__(self, *, dim: int, time_dim: int, reads_kernel: bool = False) -> None:
        super().__init__()
        self.match = TimeAwareMatch(dim=dim, heads=1, time_dim=time_dim)
        self.kernel_scale = KernelScale(heads=1) if reads_kernel else None
        self.bias = nn.Parameter(torch.tensor(0.0))

    def remember(
        self, contents: Float[Tensor, "batch len dim"], events: Events, read_out: ReadOut
    ) -> Float[Tensor, "batch 1 len width"]:
        """The keys of the events that can be pointed at."""
        return self.match.keys(contents, events, read_out)

    def forward(
        self,
        users: Float[Tensor, "batch queries dim"],
        keys: Float[Tensor, "batch 1 len width"],
        asked: Asked,
        read_out: ReadOut,
        kernel: Float[Tensor, "batch queries len"] | None = None,
    ) -> Float[Tensor, "batch queries len"]:
        """The log-mass each query position gives to each event's item; nothing is masked."""
        match = self.match.queries(users, asked, read_out) @ keys.transpose(-1, -2)
        if self.kernel_scale is not None:
            match = match + self.kernel_scale(kernel)
        return match.squeeze(1) + self.bias
