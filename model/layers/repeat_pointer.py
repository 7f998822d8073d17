"""A pointer network over the history, for data where users return to the same items."""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from model.layers.damped_basis import DampedBasis
from model.layers.fourier_basis import BasisProjection
from model.layers.time_aware_attention import (
    EventBasis,
    HeadPhasors,
    KernelScale,
    QueryBasis,
    TimeAwareQueryKey,
)


@final
class RepeatPointer(nn.Module):
    """Scores every past event as evidence that its item recurs at the query time.

    An item's unnormalised probability is `exp(user . item) + sum over its events of exp(pointer)`:
    the softmax over the catalog gains one candidate per past event, and events of one item add
    up. The pointer's logit depends on the event, its age and the user state, so it can learn how
    often and after how long users return. With a time kernel, the age enters through the kernel;
    where content turns, its only head turns as those of the blocks side by side.

    Paper: the pointer network of Vinyals et al. 2015 and the repeat mode of RepeatNet (Ren et al.
        2019).
    DIFFERS(paper): one softmax over both vocabularies instead of a gate between two modes; the
        logits are those of time-aware attention.
    """

    def __init__(self, *, dim: int, time_dim: int, uses_kernel: bool = False) -> None:
        super().__init__()
        self.query_key = TimeAwareQueryKey(dim=dim, heads=1, time_dim=time_dim)
        self.kernel_scale = KernelScale(heads=1) if uses_kernel else None
        self.bias = nn.Parameter(torch.tensor(0.0))

    def project_keys(
        self,
        contents: Float[Tensor, "batch len dim"],
        events: EventBasis,
        projection: BasisProjection,
        phasors: HeadPhasors | None = None,
    ) -> Float[Tensor, "batch 1 len width"]:
        """Project the events to keys.

        Args:
            phasors: by which content turns, of the heads of the blocks.
        """
        return self.query_key.project_keys(contents, events, projection, _merge(phasors))

    def forward(
        self,
        users: Float[Tensor, "batch queries dim"],
        keys: Float[Tensor, "batch 1 len width"],
        queries: QueryBasis,
        projection: BasisProjection,
        kernel: Float[Tensor, "batch queries len"] | None = None,
        *,
        phasors: HeadPhasors | None = None,
        damped: DampedBasis | None = None,
    ) -> Float[Tensor, "batch queries len"]:
        """Compute the repeat score of each event at each query position, without a mask.

        Args:
            phasors, damped: as `TimeAwareQueryKey.build_rotation` has them.
        """
        rotation = self.query_key.build_rotation(queries, phasors=_merge(phasors), damped=damped)
        projected = self.query_key.project_queries(users, rotation, projection)
        logits = self.query_key.compute_logits(projected, keys, rotation)
        if self.kernel_scale is not None:
            logits = logits + self.kernel_scale(kernel)
        return logits.squeeze(1) + self.bias


def _merge(phasors: HeadPhasors | None) -> Float[Tensor, "#batch instants 1 all_turned"] | None:
    """Put the phasors of several heads side by side, as those of one."""
    return None if phasors is None else phasors.flatten(2).unsqueeze(2)
