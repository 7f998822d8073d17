"""Scores of the items that followed the last events, counted over all users."""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from model.batch import SequenceBatch
from model.followers import Followers
from model.layers.added_scores import AddedScores
from model.layers.repeat_scores import HistoryQueries

LAST_EVENTS = 8
"""The last events of a history whose followers are scored."""

DROPOUT = 0.5
"""Share of the queries that are trained without followers. They explain much from the first step;
without dropout, the encoder would learn only what is left."""

_STARTS_AT = -1.0
_STEP = -0.7


@final
class FollowerScorer(nn.Module):
    """Scores what followed each of the last events of a history.

    A score is the logarithm of the follower's share of what followed the event, plus a level per
    event, which falls with the number of events since, depends on how much was counted and is
    shifted by the user vector.

    Shape: users (queries, dim) -> (queries, last events x kept followers)
    """

    def __init__(self, *, dim: int) -> None:
        super().__init__()
        self.level = nn.Linear(dim, LAST_EVENTS)
        self.exponent = nn.Parameter(torch.ones(()))
        self.confidence = nn.Parameter(torch.zeros(()))
        nn.init.zeros_(self.level.weight)
        with torch.no_grad():
            self.level.bias.copy_(_STARTS_AT + _STEP * torch.arange(LAST_EVENTS))

    def forward(
        self,
        users: Float[Tensor, "queries dim"],
        batch: SequenceBatch,
        queries: HistoryQueries,
        followers: Followers,
    ) -> AddedScores:
        """Score the followers at each query; a follower of two events is listed twice."""
        sample, last = queries.sample, queries.last
        positions = last[:, None] - torch.arange(LAST_EVENTS, device=last.device)
        events = batch.rows[sample[:, None], positions.clamp(min=0)]
        events = torch.where(positions >= 0, events, 0)
        at = batch.count_tables[sample][:, None], events
        rows = followers.rows[at]
        level = self.level(users) + self.confidence * followers.log_counts[at]
        scores = level.unsqueeze(-1) + self.exponent * followers.log_shares[at]
        left_out = rows == 0
        if self.training:
            drawn = torch.rand(len(rows), device=rows.device) < DROPOUT
            left_out = left_out | drawn[:, None, None]
        scores = scores.masked_fill(left_out, float("-inf"))
        return AddedScores(rows.flatten(1), scores.flatten(1))
