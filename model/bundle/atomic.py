"""Writing files and directories atomically: after a crash each is there whole, or not at all."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path


def write_directory(temporary: Path, write: Callable[[Path], str]) -> Path:
    """Fill a temporary directory, flush it to disk, and rename it.

    Args:
        temporary: must not exist; removed if `write` fails.
        write: fills the directory and returns its final name, beside `temporary`.
    """
    temporary.mkdir(parents=True)
    try:
        final = temporary.with_name(write(temporary))
        for file in temporary.iterdir():
            flush(file)
        flush(temporary)
        temporary.rename(final)
        flush(final.parent)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return final


def replace_file(file: Path, temporary: Path, content: bytes) -> None:
    """Write a temporary file beside `file`, flush it to disk, and rename it over `file`."""
    try:
        temporary.write_bytes(content)
        flush(temporary)
        temporary.replace(file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    flush(file.parent)


def flush(path: Path) -> None:
    """Wait until a file's content, or a directory's entries, survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
