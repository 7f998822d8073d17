"""Atomic writing of files and directories."""

from pathlib import Path

import pytest

from model.bundle.atomic import replace_file, write_directory


def test_a_directory_gets_the_name_that_its_writer_returns(tmp_path: Path) -> None:
    def write(directory: Path) -> str:
        (directory / "a").write_bytes(b"1")
        return "named"

    assert write_directory(tmp_path / ".new", write) == tmp_path / "named"
    assert [path.name for path in tmp_path.iterdir()] == ["named"]
    assert (tmp_path / "named" / "a").read_bytes() == b"1"


def test_a_failing_writer_leaves_no_directory(tmp_path: Path) -> None:
    def fail(directory: Path) -> str:
        (directory / "a").write_bytes(b"1")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_directory(tmp_path / ".new", fail)
    assert list(tmp_path.iterdir()) == []


def test_a_taken_name_keeps_the_directory_that_has_it(tmp_path: Path) -> None:
    (tmp_path / "named").mkdir()
    (tmp_path / "named" / "old").touch()
    with pytest.raises(OSError, match="not empty"):
        write_directory(tmp_path / ".new", lambda _: "named")
    assert [path.name for path in tmp_path.rglob("*")] == ["named", "old"]


def test_a_failing_replacement_keeps_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "pointer"
    replace_file(file, tmp_path / ".new", b"first")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        replace_file(file, tmp_path / ".new", b"second")
    assert file.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [file]
