"""The published artifact: everything needed to answer, opened only once it is proved sound."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import final

import numpy as np
import polars as pl
import safetensors.torch
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from torch import Tensor

from model.batch import KnownHistory, SequenceBatch, collate, look_up
from model.bundle.attention_profile import read_profile
from model.bundle.catalog_file import read_catalog
from model.bundle.index import ItemIndex
from model.bundle.manifest import CATALOG, INDEX, PROFILE, WEIGHTS, Manifest
from model.catalog import Catalog
from model.errors import BundleError, NoItemSpaceError
from model.history import Query
from model.inference.answers import (
    Answer,
    AttentionOverHistory,
    Constraints,
    Fallback,
    Occlusion,
    RankedItems,
    Reason,
    ScoredItem,
    Sweep,
)
from model.inference.checks import require_sound
from model.inference.item_map import ItemMap, draw
from model.inference.occlusion import faithfulness, most_attended, without
from model.inference.ranking import Ranking, Selection, rank, score_rows
from model.inference.stages import Stages, untimed
from model.inference.sweep import AllowedAt, sweep
from model.interfaces import Encoded
from model.recommender import Recommender

BEYOND_WINDOW = 0.1
"""How far past its training data, as a share of their span, a model may be asked unremarked."""


@final
class Predictor:
    """A trained recommender with its catalogue and index, ready to answer.

    Safe to share between threads: nothing changes after opening.
    """

    def __init__(
        self,
        *,
        version: str,
        manifest: Manifest,
        catalog: Catalog,
        recommender: Recommender,
        index: ItemIndex,
        attention_profile: pl.DataFrame | None = None,
    ) -> None:
        self.version = version
        self.manifest = manifest
        self.catalog = catalog
        self.recommender = recommender.eval().requires_grad_(False)
        self.index = index
        self.attention_profile = attention_profile
        self._action_rows = {
            action: row for row, action in enumerate(manifest.recommender.actions, start=1)
        }

    @classmethod
    def open(cls, directory: Path) -> "Predictor":
        """Verify, load, warm up and self-check a bundle.

        Raises:
            BundleError: saying what is wrong; nothing of the bundle is then used.
        """
        manifest = Manifest.read(directory)
        manifest.verify_files(directory)
        recommender = manifest.recommender.build()
        try:
            weights = safetensors.torch.load_file(directory / WEIGHTS)
            recommender.load_state_dict(weights)
        except (SafetensorError, RuntimeError, OSError) as error:
            raise BundleError(
                f"weights must fit the manifest's configuration, but those of {directory.name} do "
                f"not ({str(error).splitlines()[0]}); publish again"
            ) from error
        bundle = cls(
            version=directory.name,
            manifest=manifest,
            catalog=read_catalog(directory / CATALOG),
            recommender=recommender,
            index=ItemIndex.load(directory / INDEX),
            attention_profile=(
                read_profile(directory / PROFILE) if PROFILE in manifest.files else None
            ),
        )
        require_sound(bundle)
        return bundle

    def answer(
        self,
        query: Query,
        constraints: Constraints,
        *,
        explain: bool = False,
        occlude: bool = False,
        occlude_for: str | None = None,
        stages: Stages = untimed,
    ) -> Answer:
        """The best items for a query, within the constraints.

        Args:
            explain: say what the model attended to.
            occlude: and what the score of an item owes to each of the most attended events.
            occlude_for: which item; by default the best one answered.
            stages: times the parts of the work.

        Raises:
            UnknownItemError: if the catalogue does not hold `occlude_for`.
        """
        occluded_row = None if occlude_for is None else self.catalog.row(occlude_for)
        history = self.look_up(query)
        wanted = self.wanted(query, constraints)
        warnings = self.warnings(query.query_time, truncated=history.truncated)
        if constraints.diversity and not wanted.diversity:
            warnings.append("diversity_unavailable")
        attention: AttentionOverHistory | None = None
        ranked: list[ScoredItem] = []
        if history.events:
            batch = self._laid_out(query, [history])
            (ranking,) = rank(self.recommender, self.index, batch, [wanted], stages=stages)
            ranked = self.scored(ranking.rows, ranking.scores, "model")
            if explain or occlude:
                if occluded_row is None and len(ranking.rows):
                    occluded_row = int(ranking.rows[0])
                with stages("explain"):
                    attention = self._attention(
                        query, history, ranking, occluded_row if occlude else None
                    )
                if attention is None:
                    warnings.append("attention_unavailable")
        with stages("filter"):
            ranked, fallback = self.filled(
                ranked, constraints, wanted, has_history=bool(history.events)
            )
        return Answer(
            items=tuple(ranked),
            history_used=len(history.events),
            unknown_item_ids=history.unknown_item_ids,
            fallback=fallback,
            attention=attention,
            warnings=tuple(warnings),
        )

    def rank_items(self, query: Query, item_ids: Sequence[str]) -> RankedItems:
        """Given items in the model's order; by recent popularity where no history can be used."""
        history = self.look_up(query)
        rows = np.unique(self.catalog.rows(item_ids))
        if not history.events or not len(rows):
            scores = self.catalog.recent_popularity[rows - 1].astype(np.float32)
        else:
            scores = score_rows(self.recommender, self._laid_out(query, [history]), rows)[0]
        order = np.lexsort((rows, -scores))
        reason: Reason = "model" if history.events else "popular"
        return RankedItems(
            items=tuple(self.scored(rows[order], scores[order], reason)),
            history_used=len(history.events),
            unknown_item_ids=history.unknown_item_ids,
            unranked_item_ids=tuple(
                item_id for item_id in dict.fromkeys(item_ids) if item_id not in self.catalog
            ),
            fallback=None if history.events else "no_history",
            warnings=tuple(self.warnings(query.query_time, truncated=history.truncated)),
        )

    def sweep(
        self,
        query: Query,
        query_times: Sequence[int],
        constraints: Constraints,
        *,
        allowed_at: AllowedAt | None = None,
    ) -> Sweep:
        """One history asked about at many instants, each of which sees what had happened by then.

        Args:
            query: the history, up to the latest of the instants; its own query time does not count.
            query_times: epoch microseconds, UTC, in any order.
            allowed_at: if given, which rows may be answered at each instant, in place of what the
                constraints allow.
        """
        return sweep(self, query, query_times, constraints, allowed_at)

    def similar(
        self, item_id: str, n: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> list[ScoredItem]:
        """The items closest to one by the cosine of their vectors, which is the score.

        Raises:
            UnknownItemError: if the catalogue does not hold the item.
            NoItemSpaceError: if the model places no items in a space.
        """
        row = self.catalog.row(item_id)
        vectors = self._item_space()
        cosines = torch.cosine_similarity(vectors[row][None], vectors).numpy()
        candidates = np.arange(1, len(cosines))
        if allowed is not None:
            candidates = candidates[allowed[1:]]
        candidates = candidates[candidates != row]
        best = candidates[np.lexsort((candidates, -cosines[candidates]))[:n]]
        return self.scored(best, cosines[best], "model")

    @cached_property
    def item_map(self) -> ItemMap:
        """The items in two dimensions, by the vectors that `similar` compares; drawn once.

        Raises:
            NoItemSpaceError: if the model places no items in a space.
        """
        return draw(self._item_space()[1:], self.catalog.popularity)

    def look_up(self, query: Query, *, max_history: int | None = None) -> KnownHistory:
        """The part of a query's history that this bundle can read.

        Args:
            max_history: the most events; by default as many as the model reads.
        """
        return look_up(
            query,
            self.catalog,
            self._action_rows,
            ignored_actions=self.manifest.recommender.ignored_actions,
            max_history=max_history or self.manifest.max_history,
        )

    @torch.inference_mode()
    def encode(self, query: Query, history: KnownHistory) -> Encoded:
        """Run the model on a non-empty history at the query time."""
        encoded: Encoded = self.recommender(self._laid_out(query, [history]))
        return encoded

    def latest_query_time(self, history: KnownHistory) -> int:
        """The latest instant that the model is asked about, whatever the query time.

        No interval longer than the training data is shown to the model: it has met none, and what
        its frequencies make of one would be arbitrary.
        """
        return history.events[-1].at + self.manifest.data_window.length

    def _item_space(self) -> Tensor:
        """The vectors whose angles say which items are alike, padding included; without biases."""
        if not self.recommender.encoder.places_items:
            raise NoItemSpaceError(
                "similar items are those with similar vectors, but the model "
                f"{self.manifest.recommender.encoder.kind!r} of {self.version} learns none; "
                "choose a model that does"
            )
        return self.recommender.items.weight

    def scored(
        self, rows: NDArray[np.int64], scores: NDArray[np.float32], reason: Reason
    ) -> list[ScoredItem]:
        """Rows as items."""
        return [
            ScoredItem(
                item_id=self.catalog.item_id(row),
                title=self.catalog.title(row),
                categories=self.catalog.categories[row - 1],
                score=score,
                reason=reason,
            )
            for row, score in zip(rows.tolist(), scores.tolist(), strict=True)
        ]

    def _laid_out(self, query: Query, histories: Sequence[KnownHistory]) -> SequenceBatch:
        """Non-empty histories as the model reads them, all asked about at the query time."""
        return collate(
            histories,
            [min(query.query_time, self.latest_query_time(history)) for history in histories],
            [query.query_time_withheld] * len(histories),
        )

    def wanted(self, query: Query, constraints: Constraints) -> Selection:
        """The constraints as rows of the catalogue, for a query."""
        excluded = set(self.catalog.rows(constraints.exclude).tolist())
        if constraints.exclude_seen:
            seen = self.catalog.rows({event.item_id for event in query.history})
            excluded.update(seen.tolist())
        allowed = constraints.allowed
        if constraints.include is not None:
            included = np.zeros(len(self.catalog) + 1, dtype=np.bool_)
            included[self.catalog.rows(constraints.include)] = True
            allowed = included if allowed is None else allowed & included
        places_items = self.recommender.encoder.places_items
        return Selection(
            constraints.n, allowed, excluded, constraints.diversity if places_items else 0.0
        )

    def filled(
        self,
        ranked: list[ScoredItem],
        constraints: Constraints,
        wanted: Selection,
        *,
        has_history: bool,
    ) -> tuple[list[ScoredItem], Fallback | None]:
        """The model's items, filled up with popular ones unless the constraints are strict."""
        fallback: Fallback | None = None if has_history else "no_history"
        missing = constraints.n - len(ranked)
        if not missing or constraints.strict:
            return ranked, fallback
        is_left = np.ones(len(self.catalog) + 1, dtype=np.bool_)
        if wanted.allowed is not None:
            is_left &= wanted.allowed
        is_left[list(wanted.excluded)] = False
        is_left[self.catalog.rows(item.item_id for item in ranked)] = False
        by_popularity = self.catalog.rows_by_popularity
        rows = by_popularity[is_left[by_popularity]][:missing]
        counts = self.catalog.recent_popularity[rows - 1].astype(np.float32)
        filled = self.scored(rows, counts, "popular")
        return ranked + filled, fallback or ("popular" if filled else None)

    def _attention(
        self, query: Query, history: KnownHistory, ranking: Ranking, occluded_row: int | None
    ) -> AttentionOverHistory | None:
        weights, of_row, intensity = ranking.attention, ranking.of_row, ranking.intensity
        if weights is None:
            return None
        mean = weights.mean(0)
        intensities = None
        if intensity is not None:
            names = self.manifest.recommender.groups
            intensities = tuple(zip(names, intensity.tolist(), strict=True))
        return AttentionOverHistory(
            events=history.events,
            weights=tuple(mean.tolist()),
            heads=tuple(tuple(head) for head in weights.tolist()),
            normalised=self.recommender.encoder.is_normalised,
            of_item_id=None if of_row is None else self.catalog.item_id(of_row),
            intensities=intensities,
            occlusion=(
                None
                if occluded_row is None
                else self._occlusion(query, history, mean.numpy(), occluded_row)
            ),
        )

    def _occlusion(
        self, query: Query, history: KnownHistory, weights: NDArray[np.float32], row: int
    ) -> Occlusion:
        """What the score of a row owes to each of the most attended events, in one batch."""
        changes: list[float | None] = [None] * len(history.events)
        measured = None
        if len(history.events) > 1:
            places = most_attended(weights)
            histories = [history, *(without(history, int(place)) for place in places)]
            batch = self._laid_out(query, histories)
            scores = score_rows(self.recommender, batch, np.array([row]))[:, 0]
            owed = scores[0] - scores[1:]
            for place, change in zip(places.tolist(), owed.tolist(), strict=True):
                changes[place] = change
            measured = faithfulness(weights[places], owed)
        return Occlusion(self.catalog.item_id(row), tuple(changes), measured)

    def warnings(self, query_time: int, *, truncated: bool) -> list[str]:
        """What a caller should know of an answer at an instant, as stable codes."""
        window = self.manifest.data_window
        warnings = []
        if query_time > window.last_at + BEYOND_WINDOW * window.length:
            warnings.append("beyond_training_window")
        if truncated:
            warnings.append("history_truncated")
        return warnings
