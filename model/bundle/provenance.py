"""The entries of a manifest's provenance that the service and the retraining gate read.

Provenance has no fixed form: older releases wrote fewer entries, and other trainers may write their
own. Each entry is therefore read by itself, and a missing one is an error of its own.
"""

from dataclasses import dataclass
from typing import Annotated, Generic, Literal, TypeVar, final

from pydantic import Field, FiniteFloat, JsonValue, TypeAdapter, ValidationError

from model.bundle.kernels import KernelCurve
from model.bundle.manifest import Manifest
from model.errors import ProvenanceError

Value = TypeVar("Value")

Name = Literal["epochs", "initial_kernels", "index_recall", "p95_seconds"]

_Count = Annotated[int, Field(ge=0, lt=2**53)]


@dataclass(frozen=True, slots=True)
class Epoch:
    """One pass over the training events.

    Attributes:
        epoch: counted from 1.
        loss: mean over its batches.
        validation: metrics on the validation questions after it; empty where there were none.
        seconds: wall time, without validation.
    """

    epoch: _Count
    loss: FiniteFloat
    validation: dict[str, FiniteFloat]
    seconds: FiniteFloat


@final
class ProvenanceEntry(Generic[Value]):
    """The name and type of one entry of a provenance."""

    def __init__(self, name: Name, adapter: TypeAdapter[Value]) -> None:
        self.name: Name = name
        self._adapter = adapter

    def write(self, value: Value) -> dict[str, JsonValue]:
        """Convert the entry to its form in a manifest."""
        return {self.name: self._adapter.dump_python(value, mode="json")}

    def read(self, manifest: Manifest) -> Value:
        """Read the entry of a manifest.

        Raises:
            ProvenanceError: if the manifest has no such entry, or one of another type.
        """
        if self.name not in manifest.provenance:
            raise ProvenanceError(
                f"the bundle was published without {self.name} in its provenance; train again to "
                "have it"
            )
        try:
            return self._adapter.validate_python(manifest.provenance[self.name])
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            where = ".".join(map(str, (self.name, *first["loc"])))[:200]
            raise ProvenanceError(
                f"the bundle's provenance cannot be read at {where} ({first['msg']}); train again "
                "to have it"
            ) from error


EPOCHS = ProvenanceEntry("epochs", TypeAdapter(tuple[Epoch, ...]))
"""The epochs of the fit that was measured, first to last; empty for counting models."""

INITIAL_KERNELS = ProvenanceEntry("initial_kernels", TypeAdapter(tuple[KernelCurve, ...]))
"""The kernels before training: of the fresh weights, or of those that a warm start copied."""

INDEX_RECALL = ProvenanceEntry(
    "index_recall", TypeAdapter(Annotated[float, Field(strict=True, ge=0, le=1)])
)
"""Mean share of the exact ten best items that the index finds."""

P95_SECONDS = ProvenanceEntry(
    "p95_seconds", TypeAdapter(Annotated[FiniteFloat, Field(strict=True, ge=0)])
)
"""The 95th percentile of the latency of a recommendation, on one thread of the training machine."""
