"""An encoder as a program for ONNX Runtime, which encodes a short history several times faster.

PyTorch spends most of a short history's time on the way to its operators. The program runs the same
operators with the parameters as constants, so that its results differ in the last digits only.
"""

import logging
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, final

import jaxtyping
import torch
from jaxtyping import Float
from torch import Tensor, nn

from model.batch import SequenceBatch
from model.interfaces import EncoderOutput, SequenceEncoder
from model.layers.derived import freeze

if TYPE_CHECKING:
    import onnx
    import onnxruntime

_OPSET = 23
"""The first with an operator for the rotations of `model.layers.fourier_basis`."""
_FIELDS = ("rows", "actions", "times", "query_times", "query_given")
"""What an encoder reads of a batch."""
_EXAMPLE_LENGTH = 7


@final
class ExportedEncoder:
    """Encodes single histories as the encoder does that it was exported from.

    Safe to share between threads; each call runs on the thread that makes it.

    Attributes:
        content: the program, in the format of ONNX.

    Raises:
        ValueError: if `content` is no program of an encoder.
    """

    def __init__(self, content: bytes) -> None:
        self.content = content
        self._session = _open_session(content)
        self._inputs = [put.name for put in self._session.get_inputs()]
        self._outputs = [put.name for put in self._session.get_outputs()]
        is_known = {"user"} <= {*self._outputs} <= {*EncoderOutput._fields}
        if self._inputs != ["items", *_FIELDS] or not is_known:
            raise ValueError(
                f"the program of an encoder maps {', '.join(('items', *_FIELDS))} to fields of "
                f"EncoderOutput, but this one maps {', '.join(self._inputs)} to "
                f"{', '.join(self._outputs)}; export the encoder again"
            )

    def __deepcopy__(self, _: dict[int, object]) -> "ExportedEncoder":
        return self

    def __reduce__(self) -> tuple[type["ExportedEncoder"], tuple[bytes]]:
        return ExportedEncoder, (self.content,)

    def __call__(self, batch: SequenceBatch, items: Float[Tensor, "1 len dim"]) -> EncoderOutput:
        """Encode the only history of a batch, on the CPU, at the query time of its last event."""
        fields = (getattr(batch, name).numpy() for name in _FIELDS)
        results = self._session.run(
            None, dict(zip(self._inputs, (items.numpy(), *fields), strict=True))
        )
        tensors = map(torch.from_numpy, results)
        return EncoderOutput(**dict(zip(self._outputs, tensors, strict=True)))


def export_encoder(encoder: SequenceEncoder, *, max_history: int) -> bytes:
    """Export an encoder that `is_exportable`: on the CPU, in evaluation mode, without gradients.

    What it derives from its parameters is kept from then on (`model.layers.derived.freeze`).

    Args:
        max_history: events of the longest history; at least 2.

    Raises:
        Exception: of many kinds, where the exporter has no translation of an operator.
    """
    freeze(encoder)
    program = _SingleHistory(encoder)
    example = _build_example(encoder.dim, min(_EXAMPLE_LENGTH, max_history))
    names = list(program(*example))  # Derives what the program holds as constants, too.
    length = {1: torch.export.Dim("len", min=1, max=max_history)}
    with _quiet(), _without_shape_checks():
        exported = torch.export.export(
            program, example, dynamic_shapes=(length, (length,) * len(_FIELDS))
        )
        traced = torch.onnx.export(
            exported,
            input_names=["items", *_FIELDS],
            output_names=names,
            opset_version=_OPSET,
            # ONNX Runtime optimises when it opens a program.
            optimize=False,
            verbose=False,
        )
    assert traced is not None
    return _strip(traced.model_proto)


@torch.inference_mode()
def measure_difference(
    exported: ExportedEncoder,
    encoder: SequenceEncoder,
    *,
    items: Float[Tensor, "rows dim"],
    max_history: int,
    days: float,
    has_actions: bool,
) -> float:
    """Measure how far the outputs of a program are from those of its encoder.

    Reads the shortest and the longest history, with and without the query time. Intervals grow from
    none, within baskets of two, to a large part of `days`.

    Args:
        items: vectors of some items, at least one.
        days: span of the events that the encoder was trained on.
        has_actions: whether events have actions.

    Returns:
        The largest difference relative to 1 + the expected value; infinite if outputs are missing.
    """
    largest = 0.0
    for length in (1, max_history):
        numbers = torch.arange(length).unsqueeze(0)
        times = days * (numbers // 2 / max(length // 2, 1)).double() ** 3
        vectors = items[numbers % len(items)]
        for is_given in (True, False):
            last = times[:, -1:]
            batch = SequenceBatch(
                rows=numbers % len(items) + 1,
                actions=numbers % 2 if has_actions else numbers * 0,
                times=times,
                query_times=torch.cat((times[:, 1:], last + is_given * days / 7), dim=1),
                query_given=(numbers < length - 1) | is_given,
                lengths=torch.tensor([length]),
                origins=torch.tensor([0]),
                count_tables=torch.tensor([0]),
            )
            found, expected = exported(batch, vectors), encoder(batch, vectors)
            for part, right in zip(found, expected, strict=True):
                if isinstance(right, Tensor):
                    if not isinstance(part, Tensor) or part.shape != right.shape:
                        return math.inf
                    relative = (part - right).abs() / (1 + right.abs())
                    largest = max(largest, float(relative.nan_to_num(math.inf).max()))
    return largest


def _strip(program: "onnx.ModelProto") -> bytes:
    """Serialize a program without what it says about its source, such as paths of this machine."""
    program.ClearField("metadata_props")
    graph = program.graph
    graph.ClearField("metadata_props")
    for part in (*graph.node, *graph.value_info, *graph.input, *graph.output, *graph.initializer):
        part.ClearField("metadata_props")
        part.ClearField("doc_string")
    content: bytes = program.SerializeToString()
    return content


@final
class _SingleHistory(nn.Module):
    """An encoder with tensors as its arguments and its result."""

    def __init__(self, encoder: SequenceEncoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, items: Tensor, *fields: Tensor) -> dict[str, Tensor]:
        rows = fields[0]
        zero = rows[:, 0] * 0
        batch = SequenceBatch(*(*fields, zero + rows.shape[1], zero, zero))
        output = self.encoder(batch, items)._asdict()
        return {name: value for name, value in output.items() if isinstance(value, Tensor)}


def _build_example(dim: int, length: int) -> tuple[Tensor, ...]:
    days = torch.arange(length + 1, dtype=torch.float64).unsqueeze(0)
    rows = torch.ones(1, length, dtype=torch.int64)
    given = torch.ones(1, length, dtype=torch.bool)
    return (torch.zeros(1, length, dim), rows, rows * 0, days[:, :-1], days[:, 1:], given)


def _open_session(content: bytes) -> "onnxruntime.InferenceSession":
    import onnxruntime  # noqa: PLC0415 - where no bundle holds a program, nothing waits for it

    options = onnxruntime.SessionOptions()
    # A history is too short to share between threads.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # What fails is raised.
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # it has a class for each reason, but none for all of them
        raise ValueError(
            f"a program must be readable by ONNX Runtime, but this one is not ({error}); export "
            "the encoder again"
        ) from error


@contextmanager
def _without_shape_checks() -> Iterator[None]:
    """Switch off shape checks at run time, which would bind a program to its example's length."""
    was_disabled = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", was_disabled)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence what the exporter reports about packages that it does not need."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
