"""Encoders as programs for ONNX Runtime."""

import pickle
from copy import deepcopy
from pathlib import Path

import pytest
import torch

from model.encoders.self_attention import SelfAttention, SelfAttentionConfig
from model.exported_encoder import ExportedEncoder, export_encoder, measure_difference
from model.interfaces import SequenceEncoder
from model.layers.derived import freeze
from tests.contracts.histories import collate_queries, draw_queries
from tests.contracts.operations import CountOperations
from tests.contracts.sequence_encoder import assert_encodes_alike, vectors


@pytest.fixture(scope="module")
def encoder() -> SequenceEncoder:
    torch.manual_seed(0)
    config = SelfAttentionConfig(dim=16, feed_forward=24, damping=True, repeats=True)
    return config.build(actions=2).eval().requires_grad_(False)


@pytest.fixture(scope="module")
def content(encoder: SequenceEncoder) -> bytes:
    return export_encoder(encoder, max_history=200)


@pytest.mark.slow
def test_a_program_encodes_as_its_encoder(encoder: SequenceEncoder, content: bytes) -> None:
    assert_encodes_alike(ExportedEncoder(content), encoder)


def test_a_program_runs_without_operations_of_pytorch(
    encoder: SequenceEncoder, content: bytes
) -> None:
    exported = ExportedEncoder(content)
    batch = collate_queries(*draw_queries(20))
    items = vectors(encoder, batch)
    with CountOperations() as operations:
        exported(batch, items)
    # Views that begin or end as arrays.
    assert operations.number <= 10


def test_phases_after_decades_are_those_of_the_encoder(
    encoder: SequenceEncoder, content: bytes
) -> None:
    batch = collate_queries(*draw_queries(20))
    later = batch._replace(times=batch.times + 7305.25, query_times=batch.query_times + 7305.25)
    items = vectors(encoder, batch)
    torch.testing.assert_close(
        ExportedEncoder(content)(later, items).user, encoder(later, items).user, rtol=0, atol=2e-5
    )


def test_a_program_says_nothing_about_where_it_was_exported(content: bytes) -> None:
    assert b".py" not in content
    assert str(Path.cwd()).encode() not in content


def test_a_copied_program_encodes_alike(encoder: SequenceEncoder, content: bytes) -> None:
    exported = ExportedEncoder(content)
    for copied in (deepcopy(exported), pickle.loads(pickle.dumps(exported))):
        assert_encodes_alike(copied, encoder)


@pytest.mark.parametrize(
    ("changed", "is_same"),
    [("nothing", True), ("frequencies", False), ("positions", False), ("pointer", False)],
)
def test_a_difference_in_any_output_is_measured(
    encoder: SequenceEncoder, content: bytes, changed: str, is_same: bool
) -> None:
    other = deepcopy(encoder).train().eval()
    freeze(other)  # again: training forgets what was derived
    assert isinstance(other, SelfAttention)
    with torch.no_grad():
        if changed == "frequencies":
            # As the exporter rounds numbers that are no tensors.
            frequencies = other.time_encoding.frequencies
            other.derive("frequencies", lambda: frequencies().float().double() * (1 + 1e-6))
        elif changed == "positions":
            assert other.positions is not None
            other.positions.weight[150:] += 3
        elif changed == "pointer":
            assert other.pointer is not None
            other.pointer.bias += 0.5
    difference = measure_difference(
        ExportedEncoder(content),
        other,
        items=torch.randn(30, 16),
        max_history=200,
        days=400.0,
        has_actions=True,
    )
    assert (difference < 1e-5) == is_same


@pytest.mark.parametrize("broken", [b"", b"no program", None])
def test_what_is_no_program_is_refused(content: bytes, broken: bytes | None) -> None:
    with pytest.raises(ValueError, match="export the encoder again"):
        ExportedEncoder(content[: len(content) // 2] if broken is None else broken)
