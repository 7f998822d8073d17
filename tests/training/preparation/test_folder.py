"""Folders on this machine and at URLs; files appear whole or not at all."""

import sys
import threading
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pytest

from model.errors import EventSourceError, MissingPackageError
from tests.training.preparation.worlds import prepare_into
from training.data.sources import format_location, is_database, is_file_url, read_events
from training.preparation.events import PreparedEvents
from training.preparation.folder import Folder, open_location


@pytest.fixture(params=["path", "url"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    return Folder(str(tmp_path) if request.param == "path" else f"memory://{uuid4().hex}")


def test_files_are_written_listed_and_removed(folder: Folder) -> None:
    assert folder.names() == []
    folder.write("a/2", b"two")
    folder.write("a/1", b"one")
    folder.write("b", b"before")
    folder.write("b", b"after")
    assert folder.names("a") == ["1", "2"]
    assert (folder.names(), folder.folders()) == (["b"], ["a"])
    assert folder.read("b") == b"after"
    assert folder.has("a/1")
    assert not folder.has("a")
    folder.remove("a")
    folder.remove("a")
    assert folder.folders() == []
    with pytest.raises(FileNotFoundError):
        folder.read("a/1")


def test_what_a_killed_process_left_is_no_file(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    partial = tmp_path / f".shard.{uuid4().hex}"
    partial.write_bytes(b"half")
    (tmp_path / ".hidden").write_bytes(b"of somebody else")
    assert folder.names() == []
    folder.remove_partial()
    assert [path.name for path in tmp_path.iterdir()] == [".hidden"]


def test_files_are_listed_while_others_are_written(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    folder.write("pieces/kept", b"kept")
    is_over = threading.Event()

    def write_on() -> None:
        while not is_over.is_set():
            with suppress(OSError):  # what it writes is removed meanwhile
                folder.write("pieces/other", b"of a task that runs twice", lasting=False)

    writing = threading.Thread(target=write_on)
    writing.start()
    try:
        for _ in range(300):
            assert "kept" in folder.names("pieces")
        folder.remove("pieces")
    finally:
        is_over.set()
        writing.join()
    assert not (tmp_path / "pieces" / "kept").exists()


def test_urls_of_files_are_no_databases() -> None:
    urls = ["s3://bucket/events", "file:///events", "memory://events", "simplecache::s3://b/e"]
    databases = ["sqlite:///kairos.db", "postgresql+psycopg://host/kairos", "mysql://host/kairos"]
    assert all(map(is_file_url, urls))
    assert not any(map(is_database, urls))
    assert all(map(is_database, databases))
    assert not any(map(is_file_url, [*databases, "events.parquet", "/events/*.csv"]))


def test_a_missing_package_of_a_url_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'kairos\[scale\]'"):
        open_location("s3://bucket/events")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("ftp://bob:secret@host/events", "ftp://host/events"),
        ("https://bob:secret@host:80/e.parquet", "https://host:80/e.parquet"),
        ("https://secret@host/e.parquet", "https://host/e.parquet"),
        ("https://host/e.parquet?X-Signature=secret", "https://host/e.parquet"),
        ("s3://KEY:SEC/RET@bucket/e", "s3://bucket/e"),
        ("simplecache::s3://KEY:secret@bucket/e", "simplecache::s3://bucket/e"),
    ],
)
def test_credentials_in_a_url_are_refused_and_not_shown(
    url: str, shown: str, tmp_path: Path
) -> None:
    assert format_location(url) == shown
    for refused in (
        lambda: open_location(url),
        lambda: read_events(url),
        lambda: prepare_into(url, tmp_path / "prepared"),
        lambda: prepare_into(tmp_path, url),
        lambda: PreparedEvents.open(url),
    ):
        with pytest.raises(EventSourceError) as caught:
            refused()
        assert "secret" not in str(caught.value).lower()
        assert "RET" not in str(caught.value)


def test_locations_without_credentials_are_shown_whole() -> None:
    for location in (
        "s3://bucket/part-?.parquet",
        "s3://bucket/a@b/month=1/*.parquet",
        "http://host:8080/a@b",
        "abfs://container@account.dfs.core.windows.net/events",
        "events/a@b:c",
    ):
        assert format_location(location) == location
