"""Encoders as programs for ONNX Runtime."""

import pytest
import torch

from model.encoders.self_attention import SelfAttentionConfig
from model.exported_encoder import ExportedEncoder, export_encoder
from model.interfaces import SequenceEncoder
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


@pytest.mark.parametrize("broken", [b"", b"no program", None])
def test_what_is_no_program_is_refused(content: bytes, broken: bytes | None) -> None:
    with pytest.raises(ValueError, match="export the encoder again"):
        ExportedEncoder(content[: len(content) // 2] if broken is None else broken)
