"""How a model came about: the parts of a manifest's provenance that others than its trainer read.

Provenance decides no answer and has no fixed form: releases before wrote less, and other trainers
may write what they like. So each part is read by itself, and says why where it cannot be.
"""

from dataclasses import dataclass
from typing import Annotated, Generic, Literal, TypeVar, final

from pydantic import Field, FiniteFloat, JsonValue, TypeAdapter, ValidationError

from model.bundle.kernels import KernelCurve
from model.bundle.manifest import Manifest
from model.errors import ProvenanceError

Told = TypeVar("Told")

Name = Literal["epochs", "initial_kernels", "index_recall", "p95_seconds"]

_Count = Annotated[int, Field(ge=0, lt=2**53)]


@dataclass(frozen=True, slots=True)
class Epoch:
    """One pass over the training events.

    Attributes:
        epoch: counted from 1.
        loss: mean over its batches.
        validation: metrics on the validation questions after it; empty where none were asked.
        seconds: what it took, validation not included.
    """

    epoch: _Count
    loss: FiniteFloat
    validation: dict[str, FiniteFloat]
    seconds: FiniteFloat


@final
class Part(Generic[Told]):
    """One entry of a provenance, under a name."""

    def __init__(self, name: Name, shape: TypeAdapter[Told]) -> None:
        self.name: Name = name
        self._shape = shape

    def write(self, told: Told) -> dict[str, JsonValue]:
        """The entry, as a manifest keeps it."""
        return {self.name: self._shape.dump_python(told, mode="json")}

    def read(self, manifest: Manifest) -> Told:
        """What a manifest tells.

        Raises:
            ProvenanceError: if it tells nothing under this name, or what cannot be read.
        """
        if self.name not in manifest.provenance:
            raise ProvenanceError(
                f"the bundle was published without {self.name} in its provenance; train again to "
                "have it"
            )
        try:
            return self._shape.validate_python(manifest.provenance[self.name])
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            where = ".".join(map(str, (self.name, *first["loc"])))[:200]
            raise ProvenanceError(
                f"the bundle's provenance cannot be read at {where} ({first['msg']}); train again "
                "to have it"
            ) from error


EPOCHS = Part("epochs", TypeAdapter(tuple[Epoch, ...]))
"""Of the fit that was measured, first to last; none where the model counts."""

INITIAL_KERNELS = Part("initial_kernels", TypeAdapter(tuple[KernelCurve, ...]))
"""The kernels before the weights of the bundle learned anything, or as a warm start gave them."""

INDEX_RECALL = Part("index_recall", TypeAdapter(Annotated[float, Field(strict=True, ge=0, le=1)]))
"""Mean share of the exact ten best items that the index finds."""

P95_SECONDS = Part("p95_seconds", TypeAdapter(Annotated[FiniteFloat, Field(strict=True, ge=0)]))
"""Of an answer, end to end where the model was trained, on one thread: 95 of 100 take no longer."""
