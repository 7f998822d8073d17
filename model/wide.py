"""The wide part of a recommender: features counted from events, beside the encoder.

"Wide" as in wide and deep learning (Cheng et al. 2016): the score of an item is a sum of what the
encoder computes and of counted features, whose weights the user vector sets. It starts at the
quality of the counts, and the network learns what they cannot say.
"""

from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from model.batch import SequenceBatch
from model.config import Config
from model.followers import Followers
from model.layers.added_scores import AddedScores
from model.layers.calendar_phase import CalendarPhase
from model.layers.follower_scores import FollowerScorer
from model.layers.repeat_scores import HistoryQueries, RepeatScorer
from model.popularity import FEATURES
from model.popularity_table import PopularityFeatures, PopularityTable


class WideConfig(Config):
    """The counted features of the score, and the calendar phase of the query time."""

    popularity: bool = True
    """How often each item was chosen before the query time, over several half-lives."""
    repeats: bool = True
    """How often and how recently the user chose each item, also at this hour and on this weekday
    in the time zone of the data, where users return to items."""
    followers: bool = True
    """What followed the last events, counted over all users."""
    calendar: bool = True
    """The phase of the query time in the hour, the day, the week and the year, in the time zone of
    the data."""

    def build(self, *, items: int, dim: int, time_zone: str = "UTC") -> "WidePart":
        """Build the module for a catalog of `items` and user vectors of width `dim`.

        Args:
            time_zone: of the calendar phase and of repeats, a name of the IANA database.
        """
        return WidePart(
            dim=dim,
            has_popularity=self.popularity,
            repeats=RepeatScorer(items=items, dim=dim, time_zone=time_zone)
            if self.repeats
            else None,
            followers=FollowerScorer(dim=dim) if self.followers else None,
            calendar=CalendarPhase(dim=dim, time_zone=time_zone) if self.calendar else None,
        )


@dataclass(frozen=True, eq=False)
class EventCounts:
    """What a wide part reads beside the batch, counted from events. Shared by copies of a model."""

    popularity: PopularityTable
    followers: Followers

    def __deepcopy__(self, memo: dict[int, object]) -> "EventCounts":
        return self

    def keep_for_serving(self) -> "EventCounts":
        """Keep what counts all users, and look popularity up as it is needed."""
        return EventCounts(PopularityTable(self.popularity.popularity), self.followers.keep_first())

    @property
    def device(self) -> torch.device:
        """The device of the followers."""
        return self.followers.rows.device

    def to(self, device: torch.device) -> "EventCounts":
        """Copy the followers to a device; the popularity follows when it is looked up."""
        return EventCounts(self.popularity, self.followers.to(device))


class WideOutput(NamedTuple):
    """The output of a wide part for some queries.

    Attributes:
        users: the user vectors, with the calendar phase of the query time added.
        calendar: what was added to the user vectors; None without a calendar.
        popularity: the popularity features of all items; their weights are `WidePart.gates(users)`.
        repeats: scores of the items of the history; None without repeats.
        followers: scores of what followed the last events; None without followers.
    """

    users: Float[Tensor, "queries dim"]
    calendar: Float[Tensor, "queries dim"] | None
    popularity: PopularityFeatures
    repeats: AddedScores | None
    followers: AddedScores | None


@final
class WidePart(nn.Module):
    """Counted features of the score.

    An item's score is `scale (user . item) + gates(user) . popularity(item, T)`, to which the
    scores of repeats and followers are added in log space: the parts are alternatives that explain
    an event, so their probabilities add up.

    Paper: Cheng et al. 2016 (wide and deep); Ren et al. 2019 for repeats beside the catalog.
    DIFFERS(paper): the weights of wide features depend on the user's state.
    """

    def __init__(
        self,
        *,
        dim: int,
        has_popularity: bool,
        repeats: RepeatScorer | None,
        followers: FollowerScorer | None,
        calendar: CalendarPhase | None,
    ) -> None:
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(0.2).log())
        self.gate_proj = nn.Linear(dim, FEATURES) if has_popularity else None
        if self.gate_proj is not None:
            nn.init.zeros_(self.gate_proj.weight)
            with torch.no_grad():
                # The geometric mean of the shares; the last feature is no share.
                self.gate_proj.bias.fill_(1 / (FEATURES - 1))
                self.gate_proj.bias[-1] = 0.0
        self.repeats = repeats
        self.followers = followers
        self.calendar = calendar

    def gates(self, users: Float[Tensor, "*shape dim"]) -> Float[Tensor, "*shape features"]:
        """Compute the weights of the popularity features."""
        if self.gate_proj is None:
            return users.new_zeros(*users.shape[:-1], FEATURES)
        weights: Tensor = self.gate_proj(users)
        return weights

    def forward(
        self,
        users: Float[Tensor, "queries dim"],
        batch: SequenceBatch,
        queries: HistoryQueries,
        counts: EventCounts,
    ) -> WideOutput:
        """Compute the counted features at each query, whose user vectors are `users`."""
        instants = queries.find_instants(batch)
        popularity = counts.popularity.look_up(instants)
        calendar: Tensor | None = None
        if self.calendar is not None:
            calendar = self.calendar(instants) * queries.given.unsqueeze(-1)
            users = users + calendar
        repeats = followers = None
        if self.repeats is not None:
            scores = self.repeats(users, batch, queries, popularity)
            repeats = AddedScores(batch.rows[queries.sample], scores)
        if self.followers is not None:
            followers = self.followers(users, batch, queries, counts.followers)
        return WideOutput(users, calendar, popularity, repeats, followers)
