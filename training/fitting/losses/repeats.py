"""Repeat scores: what an encoder adds to the scores of items in a user's own history."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from model import accelerators

_LEAST = -1e4
"""Log-space scores below it add nothing to a sum: -inf has no gradient."""


class RepeatScores(NamedTuple):
    """Log-space scores that a user's past events add to the scores of their items.

    Attributes:
        log_scores: one per user and past event; -inf where an event adds nothing.
        rows: the events' catalog rows.
    """

    log_scores: Float[Tensor, "users len"]
    rows: Int64[Tensor, "users len"]

    def sum_per_user(self) -> Float[Tensor, " users"]:
        """Sum, in log space, what is added for each user; very little where that is nothing."""
        # logsumexp over -inf alone, a user to whom nothing is added, has no gradient.
        return self.log_scores.clamp(min=_LEAST).logsumexp(-1)

    def add_to_targets(
        self,
        scores: Float[Tensor, " targets"],
        targets: Int64[Tensor, " targets"],
        user_of: Int64[Tensor, " targets"],
    ) -> Float[Tensor, " targets"]:
        """Add, in log space, the repeat scores of each target's user to the target's score.

        Args:
            scores: one per target.
            targets: catalog rows.
            user_of: the user of each target.
        """
        if accelerators.needs_fixed_shapes(scores.device):
            is_own = self.rows[user_of] == targets.unsqueeze(1)
            own = torch.where(is_own, self.log_scores[user_of].clamp(min=_LEAST), _LEAST)
            return torch.logaddexp(scores, own.logsumexp(-1))
        # An infinity would have no gradient.
        user, event = (self.log_scores > float("-inf")).nonzero(as_tuple=True)
        target, found = _join(user, self.rows[user, event], user_of, targets)
        own = self.log_scores[user[found], event[found]]
        peak = scores.detach().scatter_reduce(0, target, own.detach(), "amax")
        sums = (scores - peak).exp().index_add(0, target, (own - peak[target]).exp())
        return sums.log() + peak

    def add_to_candidates(
        self,
        scores: Float[Tensor, "users candidates"],
        candidates: Int64[Tensor, "users candidates"],
        *,
        rows: int,
    ) -> Float[Tensor, "users candidates"]:
        """Add the repeat scores to several candidates per user.

        Allocates a table of users x `rows`, where `rows` is the size of the item table.
        """
        peak = self.log_scores.detach().amax(-1, keepdim=True).nan_to_num(neginf=0.0)
        table = self.log_scores.new_zeros(len(self.rows), rows)
        added = table.scatter_add(1, self.rows, (self.log_scores - peak).exp())
        added = added.gather(1, candidates)
        has = added > 0
        log_added = torch.where(has, added, 1.0).log() + peak
        return torch.where(has, torch.logaddexp(scores, log_added), scores)


def _join(
    users: Int64[Tensor, " entries"],
    rows: Int64[Tensor, " entries"],
    sought_users: Int64[Tensor, " sought"],
    sought_rows: Int64[Tensor, " sought"],
) -> tuple[Int64[Tensor, " pairs"], Int64[Tensor, " pairs"]]:
    """Pair what is sought with every entry of the same user and row: indices into both.

    By a search in sorted keys: a user with many targets and events has far fewer pairs than
    combinations.
    """
    width = torch.cat((rows, sought_rows)).amax() + 1
    keys, order = torch.sort(users * width + rows)
    sought = sought_users * width + sought_rows
    begins = torch.searchsorted(keys, sought)
    counts = torch.searchsorted(keys, sought, right=True) - begins
    pair_of = torch.arange(len(sought), device=sought.device).repeat_interleave(counts)
    firsts = counts.cumsum(0) - counts
    within = torch.arange(len(pair_of), device=sought.device) - firsts[pair_of]
    return pair_of, order[begins[pair_of] + within]
