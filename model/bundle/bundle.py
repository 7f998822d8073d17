"""A published model in memory: the recommender with everything that serving needs beside it."""

from copy import copy, deepcopy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import final

import polars as pl
from jaxtyping import Float
from pydantic import JsonValue
from torch import Tensor

from model.bundle.index import ItemIndex
from model.bundle.item_map_file import ItemMap
from model.bundle.manifest import Counts, DataWindow, Manifest
from model.catalog import Catalog
from model.errors import ExportError
from model.exported_encoder import ExportedEncoder, export_encoder, measure_difference
from model.recommender import Recommender, RecommenderConfig

_TOLERANCE = 1e-4
"""Between a new program and the weights: what is left to other orders of a sum, many times over."""
_COMPARED_ITEMS = 1_000
UNPUBLISHED = "unpublished"
"""The version of a bundle that was not read from a directory."""


@final
@dataclass(frozen=True, eq=False)
class Bundle:
    """A trained recommender with its catalog, index and manifest.

    Safe to share between threads: nothing changes after construction.

    Attributes:
        version: the name of its directory.
        recommender: on the CPU, in evaluation mode, without gradients.
        index: the item vectors of `recommender`.
        attention_profile: the curves described in `model.bundle.attention_profile`; None where
            the model does not attend, or was published without them.
        item_map: the items in two dimensions; None where the model learns no item vectors, has few
            items, or was published without it.
    """

    version: str
    manifest: Manifest
    catalog: Catalog
    recommender: Recommender
    index: ItemIndex
    attention_profile: pl.DataFrame | None = None
    item_map: ItemMap | None = None

    @classmethod
    def assemble(
        cls,
        *,
        recommender: Recommender,
        config: RecommenderConfig,
        catalog: Catalog,
        data_window: DataWindow,
        counts: Counts,
        metrics: dict[str, float],
        provenance: dict[str, JsonValue],
        attention_profile: pl.DataFrame | None = None,
        item_map: ItemMap | None = None,
    ) -> "Bundle":
        """Index a trained recommender and describe it in a manifest; nothing is written.

        Args:
            recommender: copied, so that the original stays trainable.
            config: what `recommender` was built from.
        """
        own = deepcopy(recommender).cpu().eval().requires_grad_(False)
        own.longest_interval = data_window.days
        if own.counts is not None:
            own.counts = own.counts.keep_for_serving()
        vectors = own.index_vectors().numpy()[1:]
        similarity = own.encoder.similarity
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
            files={},
        )
        index = ItemIndex.build(vectors, similarity)
        return cls(UNPUBLISHED, manifest, catalog, own, index, attention_profile, item_map)

    @cached_property
    def action_rows(self) -> dict[str, int]:
        """The row of each known action in the action table, counted from 1."""
        return {name: row for row, name in enumerate(self.manifest.recommender.actions, start=1)}

    @cached_property
    def mean_item_vector(self) -> Float[Tensor, " static_width"]:
        """The mean of the recommender's `static_vectors` over the catalog."""
        return self.recommender.static_vectors(slice(1, None)).mean(0)

    def with_exported_encoder(self) -> "Bundle":
        """Copy the bundle, with its encoder as a program where the encoder is exportable.

        The copy shares the weights, which must not change from now on.

        Raises:
            ExportError: if there is no such program, or it does not encode as the weights do.
        """
        encoder, max_history = self.recommender.encoder, self.manifest.max_history
        if not encoder.is_exportable or max_history < 2:
            return self
        recommender = copy(self.recommender)
        exported = replace(self, recommender=recommender)
        try:
            recommender.exported = ExportedEncoder(export_encoder(encoder, max_history=max_history))
            difference = exported.measure_exported()
        except Exception as error:  # the exporter and the runtime have no class for all of theirs
            raise ExportError(
                f"an encoder that is exportable becomes a program, but this one fails ({error}); "
                "serve it without one"
            ) from error
        if difference > _TOLERANCE:
            raise ExportError(
                "the program of an encoder must encode as its weights do, but this one differs by "
                f"{difference:.1g}; serve the encoder without it"
            )
        return exported

    def measure_exported(self) -> float:
        """Measure how far the program of the encoder is from its weights; 0 if there is none."""
        recommender = self.recommender
        if recommender.exported is None:
            return 0.0
        return measure_difference(
            recommender.exported,
            recommender.encoder,
            items=recommender.items.weight[1 : _COMPARED_ITEMS + 1],
            max_history=self.manifest.max_history,
            days=self.manifest.data_window.days,
            has_actions=bool(self.action_rows),
        )

    def with_provenance(self, entries: dict[str, JsonValue]) -> "Bundle":
        """Copy the bundle, with more entries in its provenance."""
        provenance = self.manifest.provenance | entries
        return replace(self, manifest=self.manifest.model_copy(update={"provenance": provenance}))
