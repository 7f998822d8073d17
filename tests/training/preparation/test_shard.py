"""Shards that were changed after they were prepared are refused."""

from pathlib import Path
from uuid import uuid4

import pytest

from model.errors import EventSourceError
from tests.training.preparation.worlds import odd_world, prepare_into, write_parts
from training.engines import open_engine
from training.preparation.events import PreparedEvents
from training.preparation.prepare import prepare


@pytest.mark.parametrize("change", [lambda content: content[:-1], lambda content: content + b"0"])
def test_a_shard_of_another_length_is_refused(tmp_path: Path, change: object) -> None:
    source = write_parts(odd_world(300), tmp_path / "source")
    prepared = prepare_into(source, tmp_path / "prepared")
    file = tmp_path / "prepared" / prepared.manifest.shards[2].name
    assert callable(change)
    file.write_bytes(change(file.read_bytes()))
    with pytest.raises(EventSourceError, match=r"another length.*prepare the events again"):
        PreparedEvents.open(str(tmp_path / "prepared")).open_shard(2)


def test_a_changed_file_at_a_url_is_refused(tmp_path: Path) -> None:
    source = write_parts(odd_world(300), tmp_path / "source")
    url = f"memory://{uuid4().hex}"
    with open_engine("local") as engine:
        manifest = prepare(str(source), url, engine, shards=2)
    prepared = PreparedEvents.open(url)
    for name in (manifest.shards[1].name, manifest.vocabulary):
        content = bytearray(prepared.folder.read(name))
        content[-1] ^= 1
        prepared.folder.write(name, bytes(content))
    for read in (
        lambda: prepared.open_shard(1),
        lambda: prepared.shards,
        lambda: prepared.vocabulary,
    ):
        with pytest.raises(EventSourceError, match="prepare the events again"):
            read()
