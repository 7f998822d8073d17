"""Inference with an open bundle: recommendations, rankings, sweeps, similar items."""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.batch import KnownHistory
from model.bundle.bundle import Bundle
from model.bundle.item_map_file import ItemMap
from model.bundle.kernels import KernelCurve, compute_kernel_curves
from model.catalog import RECENT_DAYS, Catalog
from model.errors import NoItemSpaceError
from model.history import Query
from model.inference.answers import (
    Constraints,
    OcclusionUnit,
    RankedItems,
    Recommendation,
    ScoredItem,
    Sweep,
)
from model.inference.explanation import explain_ranking
from model.inference.filling import fill_up, to_items
from model.inference.item_map import draw_map
from model.inference.query import collate_at, prepare_query, read_history
from model.inference.ranking import (
    Ranking,
    Stages,
    encode_histories,
    rank_encoded,
    skip_timing,
)
from model.inference.reasons import add_reasons
from model.inference.scoring import score_rows
from model.inference.selection import find_seen, select_rows
from model.inference.steps import Steps, complete
from model.inference.sweep import AllowedAt, HistoryLimits, sweep
from model.interfaces import EncoderOutput
from model.layers.derived import freeze
from model.popularity import CountedEvents

_STEP_ROWS = 16_384
"""Items that are compared with one in one step."""


@final
class Predictor:
    """Runs the recommender of a bundle on queries.

    Safe to share between threads: nothing changes after construction. The recommender must not
    change either: what it derives from its parameters is computed once.
    """

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle
        freeze(bundle.recommender)

    @property
    def version(self) -> str:
        """The version of the bundle."""
        return self.bundle.version

    @property
    def catalog(self) -> Catalog:
        """The catalog of the bundle."""
        return self.bundle.catalog

    @cached_property
    def kernel_curves(self) -> tuple[KernelCurve, ...]:
        """The kernels of the recommender's time encodings, over the days of its training."""
        return compute_kernel_curves(self.bundle.recommender, self.bundle.manifest.data_window.days)

    def count_on(self, later: CountedEvents) -> "Predictor":
        """Build a predictor whose popularity also counts events after those of the training.

        Args:
            later: events after those of the training, in place of any that were counted before.

        Raises:
            ValueError: if the model reads no counts.
        """
        counts = self.bundle.recommender.counts
        if counts is None:
            raise ValueError(
                "only a model with a wide part counts events, but that of "
                f"{self.version} has none; check its `counts`"
            )
        table = counts.popularity.count_on(later)
        # Copies share the weights.
        recommender = copy(self.bundle.recommender)
        recommender.counts = replace(counts, popularity=table)
        vectors = recommender.index_vectors().numpy()[1:]
        index = self.bundle.index.replace_vectors(vectors)
        # What is recommended to users without a history.
        catalog = replace(
            self.catalog, recent_popularity=table.popularity.count_recent(RECENT_DAYS)
        )
        return Predictor(
            replace(self.bundle, recommender=recommender, index=index, catalog=catalog)
        )

    def recommend(
        self,
        query: Query,
        constraints: Constraints,
        *,
        explain: bool = False,
        occlude: OcclusionUnit | None = None,
        occlude_for: str | None = None,
        reasons: bool = False,
        stages: Stages = skip_timing,
    ) -> Recommendation:
        """Recommend the best items for a query, within the constraints.

        Args:
            explain: return the attention weights, and the parts of the items' scores.
            occlude: also return how the score of an item changes without each of the most attended
                events or baskets; implies `explain`.
            occlude_for: the item; by default the best of the recommendation.
            reasons: return what each item's score adds up from, and facts about the item.
            stages: times the stages of the work.

        Raises:
            UnknownItemError: if the catalog does not hold `occlude_for`.
        """
        return complete(
            self.recommend_in_steps(
                query,
                constraints,
                explain=explain,
                occlude=occlude,
                occlude_for=occlude_for,
                reasons=reasons,
                stages=stages,
            )
        )

    def recommend_in_steps(
        self,
        query: Query,
        constraints: Constraints,
        *,
        explain: bool = False,
        occlude: OcclusionUnit | None = None,
        occlude_for: str | None = None,
        reasons: bool = False,
        stages: Stages = skip_timing,
    ) -> Steps[Recommendation]:
        """Recommend as `recommend` does, in steps."""
        bundle = self.bundle
        explain = explain or occlude is not None
        occluded_row = None if occlude_for is None else bundle.catalog.row(occlude_for)
        prepared = prepare_query(bundle, query)
        has_item_space = bundle.recommender.encoder.has_item_space
        selection = select_rows(
            bundle.catalog,
            find_seen(bundle.catalog, query.history, constraints),
            constraints,
            has_item_space=has_item_space,
        )
        warnings = prepared.warnings
        if constraints.diversity and not has_item_space:
            warnings += ("diversity_unavailable",)
        ranking: Ranking | None = None
        encoded: EncoderOutput | None = None
        attention = None
        has_parts = explain and bundle.recommender.wide is not None
        if prepared.batch is not None:
            encoded = yield from encode_histories(bundle.recommender, prepared.batch, stages)
            (ranking,) = yield from rank_encoded(
                bundle.recommender,
                bundle.index,
                prepared.batch,
                encoded,
                [selection],
                mean_vector=bundle.mean_item_vector if has_parts else None,
                stages=stages,
            )
            if explain:
                # Includes the pauses between its steps, as a client waits for them, too.
                with stages("explain"):
                    attention = yield from explain_ranking(
                        bundle,
                        query,
                        prepared.history,
                        ranking,
                        occlude=occlude,
                        occluded_row=occluded_row,
                    )
                if attention is None:
                    warnings += ("attention_unavailable",)
        with stages("filter"):
            items, fallback = fill_up(bundle.catalog, selection, ranking, strict=constraints.strict)
            has_filter = selection.allowed is not None
            if not items and has_filter and not selection.permits_any(bundle.catalog):
                warnings += ("filters_match_nothing",)
        if reasons:
            yield
            with stages("explain"):
                items = yield from add_reasons(bundle, query, prepared, encoded, ranking, items)
        return Recommendation(
            items=items,
            history_used=len(prepared.history.events),
            unknown_item_ids=prepared.history.unknown_item_ids,
            fallback=fallback,
            attention=attention,
            warnings=warnings,
        )

    def rank_items(self, query: Query, item_ids: Sequence[str]) -> RankedItems:
        """Rank given items; by recent popularity where the history has no known event."""
        return complete(self.rank_items_in_steps(query, item_ids))

    def rank_items_in_steps(self, query: Query, item_ids: Sequence[str]) -> Steps[RankedItems]:
        """Rank given items as `rank_items` does, in steps."""
        catalog = self.bundle.catalog
        prepared = prepare_query(self.bundle, query)
        rows = np.unique(catalog.rows(item_ids))
        if prepared.batch is None or not len(rows):
            scores = catalog.recent_popularity[rows - 1].astype(np.float32)
        else:
            scored = yield from score_rows(self.bundle.recommender, prepared.batch, rows)
            scores = scored[0]
        order = np.lexsort((rows, -scores))
        has_history = prepared.batch is not None
        return RankedItems(
            items=to_items(
                catalog, rows[order], scores[order], "model" if has_history else "popular"
            ),
            history_used=len(prepared.history.events),
            unknown_item_ids=prepared.history.unknown_item_ids,
            unranked_item_ids=tuple(
                item_id for item_id in dict.fromkeys(item_ids) if item_id not in catalog
            ),
            fallback=None if has_history else "no_history",
            warnings=prepared.warnings,
        )

    def sweep(
        self,
        query: Query,
        query_times: Sequence[int],
        constraints: Constraints,
        *,
        allowed_at: AllowedAt | None = None,
        limits: HistoryLimits | None = None,
        head: int | None = None,
    ) -> Sweep:
        """Recommend at many query times, each from the events up to then.

        Args:
            query: the history, up to the latest of the query times; its own is not used.
            query_times: epoch microseconds, UTC, in any order.
            allowed_at: if given, the rows that may be recommended at each query time, in place of
                the constraints' own.
            limits: how many of the events each query time uses; all by default.
            head: the index of the head whose weights are returned; by default their mean.

        Raises:
            UnknownHeadError: if the model has no such head.
        """
        return complete(
            self.sweep_in_steps(
                query, query_times, constraints, allowed_at=allowed_at, limits=limits, head=head
            )
        )

    def sweep_in_steps(
        self,
        query: Query,
        query_times: Sequence[int],
        constraints: Constraints,
        *,
        allowed_at: AllowedAt | None = None,
        limits: HistoryLimits | None = None,
        head: int | None = None,
    ) -> Steps[Sweep]:
        """Recommend at many query times as `sweep` does, in steps."""
        return sweep(self.bundle, query, query_times, constraints, allowed_at, limits, head)

    def find_similar(
        self, item_id: str, n: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> tuple[ScoredItem, ...]:
        """Find the items most similar to one; the score is the cosine of their vectors.

        Raises:
            UnknownItemError: if the catalog does not hold the item.
            NoItemSpaceError: if the model learns no item vectors.
        """
        return complete(self.find_similar_in_steps(item_id, n, allowed=allowed))

    def find_similar_in_steps(
        self, item_id: str, n: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> Steps[tuple[ScoredItem, ...]]:
        """Find similar items as `find_similar` does, in steps."""
        row = self.bundle.catalog.row(item_id)
        vectors = self._require_item_space()
        parts = []
        for begin in range(0, len(vectors), _STEP_ROWS):
            compared = vectors[begin : begin + _STEP_ROWS]
            parts.append(torch.cosine_similarity(vectors[row][None], compared).numpy())
            yield
        cosines = np.concatenate(parts)
        candidates = np.arange(1, len(cosines))
        if allowed is not None:
            candidates = candidates[allowed[1:]]
        candidates = candidates[candidates != row]
        best = candidates[np.lexsort((candidates, -cosines[candidates]))[:n]]
        return to_items(self.bundle.catalog, best, cosines[best], "model")

    @cached_property
    def item_map(self) -> ItemMap:
        """The items in two dimensions, by the vectors that `similar` compares.

        That of the bundle or, without one, a projection that is computed once.

        Raises:
            NoItemSpaceError: if the model learns no item vectors.
        """
        if self.bundle.item_map is not None:
            return self.bundle.item_map
        return draw_map(self._require_item_space()[1:], self.bundle.catalog.popularity)

    def look_up_history(self, query: Query) -> KnownHistory:
        """Look up the events of a query that the model reads: the most recent known ones."""
        return read_history(self.bundle, query, max_history=self.bundle.manifest.max_history)

    @torch.inference_mode()
    def encode(self, query: Query, history: KnownHistory) -> EncoderOutput:
        """Run the recommender on a non-empty history at the query time."""
        batch = collate_at(query, [history])
        encoded: EncoderOutput = self.bundle.recommender(batch)
        return encoded

    def _require_item_space(self) -> Tensor:
        """Return the item vectors whose angles measure similarity: no biases, with padding."""
        if not self.bundle.recommender.encoder.has_item_space:
            raise NoItemSpaceError(
                "similar items are those with similar vectors, but the model "
                f"{self.bundle.manifest.recommender.encoder.kind!r} of {self.version} learns none; "
                "choose a model that does"
            )
        return self.bundle.recommender.items.weight
