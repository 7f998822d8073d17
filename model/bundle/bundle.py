"""The published artifact: everything needed to answer, opened only once it is proved sound."""

from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import final

import numpy as np
import polars as pl
import safetensors.torch
import torch
from numpy.typing import NDArray
from pydantic import JsonValue
from safetensors import SafetensorError

from model.batch import KnownHistory, SequenceBatch, collate, look_up
from model.bundle.answer import (
    Answer,
    AttentionOverHistory,
    Constraints,
    Fallback,
    Reason,
    ScoredItem,
)
from model.bundle.attention_profile import read_profile, write_profile
from model.bundle.catalog_file import read_catalog, write_catalog
from model.bundle.index import ItemIndex
from model.bundle.manifest import Counts, DataWindow, Manifest, digest_of
from model.bundle.ranking import Ranking, rank
from model.catalog import Catalog
from model.errors import BundleError
from model.history import Event, Query
from model.interfaces import Encoded
from model.recommender import Recommender, RecommenderConfig

WEIGHTS = "weights.safetensors"
CATALOG = "catalog.parquet"
INDEX = "items.faiss"
PROFILE = "attention_profile.parquet"

BEYOND_WINDOW = 0.1
"""How far past its training data, as a share of their span, a model may be asked unremarked."""


@final
class Bundle:
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
    def write(
        cls,
        directory: Path,
        *,
        recommender: Recommender,
        config: RecommenderConfig,
        catalog: Catalog,
        data_window: DataWindow,
        counts: Counts,
        metrics: dict[str, float],
        provenance: dict[str, JsonValue],
        attention_profile: pl.DataFrame | None = None,
    ) -> str:
        """Fill an empty directory with a bundle, and return the version it must be named."""
        names = [WEIGHTS, CATALOG, INDEX]
        if attention_profile is not None:
            write_profile(attention_profile, directory / PROFILE)
            names.append(PROFILE)
        vectors = recommender.index_vectors().detach().cpu().numpy()[1:]
        similarity = recommender.encoder.similarity
        state = {name: tensor.contiguous() for name, tensor in recommender.state_dict().items()}
        safetensors.torch.save_file(state, directory / WEIGHTS)
        write_catalog(catalog, directory / CATALOG)
        ItemIndex.build(vectors, similarity).save(directory / INDEX)
        manifest = Manifest(
            created_at=datetime.now(UTC),
            recommender=config,
            similarity=similarity,
            width=vectors.shape[1],
            max_history=config.encoder.max_history,
            data_window=data_window,
            counts=counts,
            metrics=metrics,
            provenance=provenance,
            files={name: digest_of(directory / name) for name in names},
        )
        return manifest.write(directory)

    @classmethod
    def open(cls, directory: Path) -> "Bundle":
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
        bundle._check()
        return bundle

    def answer(self, query: Query, constraints: Constraints, *, explain: bool = False) -> Answer:
        """The best items for a query, within the constraints; with attention where explained."""
        history = self.look_up(query)
        excluded = self._excluded(query, constraints)
        warnings = []
        if self._is_beyond_window(query.query_time):
            warnings.append("beyond_training_window")
        if history.truncated:
            warnings.append("history_truncated")
        attention: AttentionOverHistory | None = None
        ranked: list[ScoredItem] = []
        if history.events:
            ranking = self._rank(query, history, constraints, excluded)
            ranked = [
                self._scored(int(row), float(score), "model")
                for row, score in zip(ranking.rows, ranking.scores, strict=True)
            ]
            if explain:
                attention = self._attention(history.events, ranking)
                if attention is None:
                    warnings.append("attention_unavailable")
        fallback: Fallback | None = None if history.events else "no_history"
        missing = constraints.n - len(ranked)
        if missing and not constraints.strict:
            taken = excluded.union(self.catalog.rows(item.item_id for item in ranked).tolist())
            filled = self._from_popularity(missing, constraints, taken)
            if filled and fallback is None:
                fallback = "popular"
            ranked += filled
        return Answer(
            items=tuple(ranked),
            history_used=len(history.events),
            unknown_item_ids=history.unknown_item_ids,
            fallback=fallback,
            attention=attention,
            warnings=tuple(warnings),
        )

    def look_up(self, query: Query) -> KnownHistory:
        """The part of a query's history that this bundle can read."""
        return look_up(
            query,
            self.catalog,
            self._action_rows,
            ignored_actions=self.manifest.recommender.ignored_actions,
            max_history=self.manifest.max_history,
        )

    @torch.inference_mode()
    def encode(self, query: Query, history: KnownHistory) -> Encoded:
        """Run the model on a non-empty history at the query time."""
        encoded: Encoded = self.recommender(self._laid_out(query, history))
        return encoded

    def _laid_out(self, query: Query, history: KnownHistory) -> SequenceBatch:
        """A non-empty history as the model reads it.

        No interval longer than the training data is shown to the model: it has met none, and what
        its frequencies make of one would be arbitrary.
        """
        latest = history.events[-1].at + self.manifest.data_window.length
        return collate([history], [min(query.query_time, latest)], [query.query_time_withheld])

    def _rank(
        self, query: Query, history: KnownHistory, constraints: Constraints, excluded: set[int]
    ) -> Ranking:
        """The best rows by the model, and what it attended to."""
        include = constraints.include
        return rank(
            self.recommender,
            self.index,
            self._laid_out(query, history),
            constraints.n,
            include=None if include is None else self._allowed(include, excluded),
            excluded=excluded,
        )

    def _from_popularity(
        self, n: int, constraints: Constraints, taken: Collection[int]
    ) -> list[ScoredItem]:
        rows: Iterable[int] = self.catalog.rows_by_popularity.tolist()
        if constraints.include is not None:
            allowed = set(self.catalog.rows(constraints.include).tolist())
            rows = (row for row in rows if row in allowed)
        items: list[ScoredItem] = []
        for row in rows:
            if len(items) == n:
                break
            if row not in taken:
                score = float(self.catalog.recent_popularity[row - 1])
                items.append(self._scored(row, score, "popular"))
        return items

    def _excluded(self, query: Query, constraints: Constraints) -> set[int]:
        excluded = set(self.catalog.rows(constraints.exclude).tolist())
        if constraints.exclude_seen:
            seen = self.catalog.rows({event.item_id for event in query.history})
            excluded.update(seen.tolist())
        return excluded

    def _allowed(self, include: frozenset[str], excluded: set[int]) -> NDArray[np.int64]:
        rows = np.sort(self.catalog.rows(include))
        return np.array([row for row in rows if row not in excluded], dtype=np.int64)

    def _scored(self, row: int, score: float, reason: Reason) -> ScoredItem:
        return ScoredItem(
            item_id=self.catalog.item_id(row),
            title=self.catalog.title(row),
            categories=self.catalog.categories[row - 1],
            score=score,
            reason=reason,
        )

    def _attention(
        self, events: tuple[Event, ...], ranking: Ranking
    ) -> AttentionOverHistory | None:
        weights, of_row, intensity = ranking.attention, ranking.of_row, ranking.intensity
        if weights is None:
            return None
        intensities = None
        if intensity is not None:
            names = self.manifest.recommender.groups
            intensities = tuple(zip(names, intensity.tolist(), strict=True))
        return AttentionOverHistory(
            events=events,
            weights=tuple(weights.mean(0).tolist()),
            heads=tuple(tuple(head) for head in weights.tolist()),
            normalised=self.recommender.encoder.is_normalised,
            of_item_id=None if of_row is None else self.catalog.item_id(of_row),
            intensities=intensities,
        )

    def _is_beyond_window(self, query_time: int) -> bool:
        window = self.manifest.data_window
        return query_time > window.last_at + BEYOND_WINDOW * window.length

    def _check(self) -> None:
        """Refuse parts that do not belong together; the last check also warms everything up."""
        vectors = self.recommender.index_vectors().numpy()[1:]
        sizes = {len(self.catalog), len(self.index), len(vectors), self.manifest.counts.items}
        if len(sizes) != 1:
            raise BundleError(
                "catalogue, index, item table and manifest must agree on how many items there are, "
                f"but {self.version} says {sorted(sizes)}; publish again"
            )
        if not all(torch.isfinite(tensor).all() for tensor in self.recommender.parameters()):
            raise BundleError(
                f"weights must be finite, but {self.version} holds NaN or infinity; train again"
            )
        rows = np.arange(1, min(len(self.catalog), 1000) + 1)
        if self.index.width != vectors.shape[1] or not np.array_equal(
            self.index.vectors(rows), vectors[rows - 1]
        ):
            raise BundleError(
                f"an index must hold the item table's vectors, but that of {self.version} does "
                "not; publish again"
            )
        at = self.manifest.data_window.last_at
        probe = Query((Event(self.catalog.item_id(1), at),), at)
        answer = self.answer(probe, Constraints(n=1, exclude_seen=False), explain=True)
        if not np.isfinite(answer.items[0].score):
            raise BundleError(f"scores must be finite, but {self.version} gives {answer.items[0]}")
