"""Sources of events and items: files of four kinds, or the service's database.

Every source yields one schema, in the order of the source; `training.data.dataset` sorts it.

- `user_id`, `item_id`: text, never empty and never read as a number: `007` and `1e5` stay as they
  are. Whole numbers of a typed column or of JSON are taken as their digits.
- `timestamp`: microseconds, UTC. Read from aware datetimes, RFC 3339 texts with an offset, or epoch
  seconds, whole or decimal.
- `action`: text; "event" by default. Optional.
- `value`: a finite number or null. Optional.

`read_stored_events` also reads what else the service stores of an event. Other columns are ignored.
"""

import csv
import glob
import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from itertools import takewhile
from pathlib import Path, PurePath
from typing import TypeVar

import polars as pl

from training.data.columns import (
    EVENT_SCHEMA,
    ITEM_SCHEMA,
    STORED_EVENT_SCHEMA,
    RawTable,
    UnreadableSourceError,
    parse_events,
    parse_items,
    parse_stored_events,
    read_object,
)
from training.data.database_source import (
    format_database_name,
    read_database_events,
    read_database_items,
)
from training.data.erasures import Erasures

AnyPath = TypeVar("AnyPath", bound=PurePath)

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_JSON_LINES = (".jsonl", ".ndjson")
SUFFIXES = (".parquet", *_SEPARATORS, *_JSON_LINES)

PREPARED_MANIFEST = "manifest.json"
PREPARED_FORMAT = "kairos-events-"
"""How the format of prepared events begins, which their manifest names first."""

STARTED = "started.json"
"""The file of a directory that Kairos has begun to write; removed once its manifest is there."""

RECOMMENDATIONS_FORMAT = "kairos-recommendations-"
"""How the format of recommendations for everyone begins, which their manifest names first."""

MARKERS = (PREPARED_MANIFEST, STARTED)
"""The files that tell a directory that Kairos writes from one of events."""

_SECRETS = re.compile(
    # A user with a password, but neither a port nor a container of Azure; a token; a query.
    r"(?<=://)[^/@:]*:(?!\d+/).*@|(?:(?<=http://)|(?<=https://))[^/@]*@|\?[\w.~%-]+=.*"
)
"""Credentials in a URL of files."""

CHUNK_ROWS = 1_000_000
"""Rows of a Parquet file that are read at a time where events may not fit into memory."""


def read_events(
    location: str | Path,
    until: int | None = None,
    *,
    known_by: int | None = None,
    erasures: Erasures | None = None,
) -> pl.DataFrame:
    """Read the events at a location, in `EVENT_SCHEMA` and in source order.

    Args:
        location: a file, a directory or a glob of files; or a database URL. The suffix gives the
            format: `.parquet`, `.csv` and `.tsv` with a header, `.jsonl`. The files of a directory,
            and of those in it, are read in the order of their names.
        until: leave out events later than this instant (epoch microseconds, UTC).
        known_by: leave out events that arrived later than this instant (epoch microseconds, UTC),
            where the source records arrival: databases do, files do not.
        erasures: users to leave out of files; a database leaves out its own erased users.

    Raises:
        EventSourceError: if an event is invalid; the message names file, row and column.

    Example:
        >>> read_events("demo/events.parquet").columns
        ['user_id', 'item_id', 'timestamp', 'action', 'value']
    """
    if is_database(location):
        events = read_database_events(str(location), until, known_by=known_by)
    else:
        parts = [_parse_file(file, parse_events) for file in list_files(location)]
        events = pl.concat([EVENT_SCHEMA.to_frame(), *parts])
        if until is not None:
            events = events.filter(pl.col("timestamp").to_physical() <= until)
    return events if erasures is None else erasures.drop_erased(events)


def read_stored_events(location: str | Path) -> pl.DataFrame:
    """Read the events of files in `STORED_EVENT_SCHEMA`, such as an export; columns may be missing.

    Raises:
        EventSourceError: if an event is invalid; the message names file, row and column.
    """
    parts = [_parse_file(file, parse_stored_events) for file in list_files(location)]
    return pl.concat([STORED_EVENT_SCHEMA.to_frame(), *parts])


def read_items(location: str | Path) -> pl.DataFrame:
    """Read the items at a location, in `ITEM_SCHEMA`; titles and categories are optional.

    In CSV, categories are joined by `|`.

    Raises:
        EventSourceError: if an item is invalid; the message names file, row and column.
    """
    if is_database(location):
        return read_database_items(str(location))
    parts = [_parse_file(file, parse_items) for file in list_files(location)]
    return pl.concat([ITEM_SCHEMA.to_frame(), *parts])


def format_location(location: str | Path) -> str:
    """Format a location for reports and errors, without a password.

    Example:
        >>> format_location("https://user:password@host/events?signature=1")
        'https://host/events'
    """
    text = str(location)
    if is_database(location):
        return format_database_name(text)
    return _SECRETS.sub("", text) if "://" in text else text


def is_database(location: str | Path) -> bool:
    """Return whether a location is a database URL."""
    return "://" in str(location) and not is_file_url(location)


def is_file_url(location: str | Path) -> bool:
    """Return whether a location is a URL of files, such as `s3://bucket/events`."""
    scheme, mark, _ = str(location).partition("://")
    if not mark:
        return False
    from fsspec import available_protocols  # noqa: PLC0415 - slow to import

    return scheme.split("::")[0] in available_protocols()


def is_manifest(content: bytes) -> bool:
    """Return whether a file's content is the manifest of prepared events; others have one, too."""
    return f'"{PREPARED_FORMAT}'.encode() in content[:200]


def is_marker(content: bytes) -> bool:
    """Return whether a file of one of the names `MARKERS` is of a directory that Kairos writes."""
    return is_manifest(content) or f'"{RECOMMENDATIONS_FORMAT}'.encode() in content[:200]


def stream_file_events(file: Path, name: str) -> Iterator[pl.DataFrame]:
    """Read the events of one file in chunks, in `EVENT_SCHEMA` and in the order of the file.

    A Parquet file is read in parts, and a file of another kind as a whole.

    Args:
        name: of the file in errors.

    Raises:
        EventSourceError: if an event is invalid; the message names row and column.
    """
    if file.suffix != ".parquet":
        yield _parse_file(file, parse_events)
        return
    try:
        scan = pl.scan_parquet(file, glob=False, hive_partitioning=False)
        present = scan.collect_schema().names()
        # Others are not read; where one is missing, the error lists all of them.
        if {"user_id", "item_id", "timestamp"} <= {*present}:
            scan = scan.select(name for name in present if name in EVENT_SCHEMA)
        rows = scan.select(pl.len()).collect().item()
        for begin in range(0, max(rows, 1), CHUNK_ROWS):
            frame = scan.slice(begin, CHUNK_ROWS).collect(engine="streaming")
            yield parse_events(RawTable(name, frame, partial(_number_row, begin)))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _explain_unreadable(name, error) from error


def _number_row(begin: int, row: int) -> str:
    return f"row {begin + row + 1}"


def list_files(location: str | Path) -> list[Path]:
    """List the files of a location on this machine, in the order in which they are read.

    Raises:
        EventSourceError: if there is none.
    """
    if is_file_url(location):
        raise UnreadableSourceError(
            format_location(location),
            "files are read from this machine",
            "this is the URL of an object store or another machine",
            "run kairos prepare on it first",
        )
    path = Path(location)
    manifest = path / PREPARED_MANIFEST
    if manifest.is_file() and is_manifest(manifest.read_bytes()):
        raise UnreadableSourceError(
            str(location),
            "a directory of events holds files of them",
            "this one holds events that kairos prepare has laid out",
            "give it to kairos train, evaluate, or recommend with --engine",
        )
    if path.is_dir():
        found = [file for file in path.rglob("*") if holds_events(file.relative_to(path))]
    elif path.is_file():
        found = [path]
    else:
        path = Path(find_fixed_directory(str(location)))
        found = [Path(name) for name in glob.glob(str(location), recursive=True)]
    found = drop_written(found, path, _is_marked)
    if not found:
        raise UnreadableSourceError(
            str(location),
            f"a source is a file, a directory or a glob of files ending in {', '.join(SUFFIXES)}",
            "nothing like that is there",
            "check the path",
        )
    return sorted(found, key=lambda file: file.as_posix())


def find_fixed_directory(pattern: str) -> str:
    """Return the part of a glob before the first directory or name that holds a wildcard."""
    names = pattern.split("/")
    return "/".join(takewhile(lambda name: not glob.has_magic(name), names))


def drop_written(
    files: Iterable[AnyPath], root: AnyPath, is_marked: Callable[[AnyPath], bool]
) -> list[AnyPath]:
    """Leave out files that Kairos has written below a directory of events.

    Otherwise recommendations, or prepared events, would be read as events by the next command.

    Args:
        is_marked: whether a directory has one of `MARKERS`; not asked for the root.
    """
    is_known = cache(is_marked)
    return [
        file
        for file in files
        if not any(is_known(parent) for parent in file.parents if root in parent.parents)
    ]


def _is_marked(directory: Path) -> bool:
    files = (directory / name for name in MARKERS)
    return any(file.is_file() and is_marker(file.read_bytes()) for file in files)


def holds_events(name: PurePath) -> bool:
    """Return whether a file below a directory is of events, by its name.

    Names that begin with a dot or an underscore are of what wrote the directory, such as unfinished
    files.
    """
    is_hidden = any(part.startswith((".", "_")) for part in name.parts)
    return name.suffix in SUFFIXES and not is_hidden


def _parse_file(file: Path, parse: Callable[[RawTable], pl.DataFrame]) -> pl.DataFrame:
    try:
        return parse(_read_table(file))
    except (pl.exceptions.PolarsError, OSError, csv.Error) as error:
        raise _explain_unreadable(str(file), error) from error


def _explain_unreadable(name: str, error: Exception) -> UnreadableSourceError:
    return UnreadableSourceError(
        name,
        "a file must have the format of its suffix",
        f"reading it failed: {_join_lines(error)}",
        "repair or rename it",
    )


def _read_table(file: Path) -> RawTable:
    if file.suffix == ".parquet":
        return _read_parquet(file)
    if file.suffix in _SEPARATORS:
        return _read_separated(file, _SEPARATORS[file.suffix])
    if file.suffix in _JSON_LINES:
        return _read_json_lines(file)
    raise UnreadableSourceError(
        str(file),
        f"a file must end in {', '.join(SUFFIXES)}",
        f"this one ends in {file.suffix!r}",
        "convert or rename it",
    )


def _join_lines(error: Exception) -> str:
    return " ".join(str(error).split())


def _read_parquet(file: Path) -> RawTable:
    frame = pl.read_parquet(file, glob=False, hive_partitioning=False)
    return RawTable(str(file), frame, locate=lambda row: f"row {row + 1}")


def _read_separated(file: Path, separator: str) -> RawTable:
    # Everything stays text: an id such as 007 must not lose its zeros.
    try:
        frame = pl.read_csv(file, separator=separator, infer_schema=False, glob=False)
    except pl.exceptions.PolarsError:
        _require_regular_rows(file, separator)
        raise
    _require_distinct_columns(file, separator)

    def locate(row: int) -> str:
        with file.open(newline="", encoding="utf-8") as lines:
            records = csv.reader(lines, delimiter=separator)
            try:
                for _ in range(row + 1):  # the header, and the records before
                    next(records)
            except (csv.Error, StopIteration):
                # Python limits the length of a field, which Polars does not.
                return f"row {row + 1}"
            # Lines are counted rather than records: a quoted field may span several.
            return f"line {records.line_num + 1}"

    return RawTable(str(file), frame, locate)


def _require_regular_rows(file: Path, separator: str) -> None:
    """Refuse the row that makes a file unreadable, by its line.

    Polars names no line, and advises by options of its own.
    """
    begin = 1
    try:
        with file.open(newline="", encoding="utf-8-sig") as lines:
            records = csv.reader(lines, delimiter=separator, strict=True)
            header = next(records, None)
            if header is None:
                raise UnreadableSourceError(
                    str(file), "a file has a header", "this one is empty", "name its columns"
                )
            begin = records.line_num + 1
            for record in records:
                if len(record) > len(header):
                    raise UnreadableSourceError(
                        f"{file}, line {begin}",
                        f"a row has at most the {len(header)} fields of the header",
                        f"this one has {len(record)}",
                        "quote the fields that hold a separator",
                    )
                begin = records.line_num + 1
    except csv.Error as error:
        raise UnreadableSourceError(
            f"{file}, line {begin}",
            "a field that begins with a quote ends with one",
            f"this one does not ({error})",
            "close the quote, or double the quotes within it",
        ) from error
    except UnicodeDecodeError as error:
        raise UnreadableSourceError(
            str(file),
            "a file is text in UTF-8",
            f"this one is not ({error.reason})",
            "save it as UTF-8",
        ) from error


def _require_distinct_columns(file: Path, separator: str) -> None:
    """Refuse a header with a name twice: Polars would rename the second of the columns."""
    with file.open(newline="", encoding="utf-8-sig", errors="replace") as lines:
        header = next(csv.reader(lines, delimiter=separator), [])
    doubled = sorted({name for name in header if header.count(name) > 1})
    if doubled:
        raise UnreadableSourceError(
            str(file),
            "every column must have a name of its own",
            f"{doubled[0]!r} appears {header.count(doubled[0])} times",
            "remove or rename the others",
        )


def _read_json_lines(file: Path) -> RawTable:
    if file.stat().st_size == 0:
        frame = pl.DataFrame()
    else:
        try:
            # Types are inferred from all lines; otherwise a late text among numbers would fail.
            frame = pl.read_ndjson(file, infer_schema_length=None)
            if isinstance(frame.schema.get("properties"), pl.Struct):
                # As text: a struct has the fields of all lines, whichever a line has.
                as_text = {"properties": pl.String()}
                frame = pl.read_ndjson(file, schema_overrides=as_text, infer_schema_length=None)
        except pl.exceptions.PolarsError as error:
            raise _find_broken_line(file, error) from error

    _require_ids_as_text(file, frame)

    def locate(row: int) -> str:
        numbers = (number for number, line in _number_lines(file) if line.strip())
        return f"line {[*numbers][row]}"

    return RawTable(str(file), frame, locate)


def _require_ids_as_text(file: Path, frame: pl.DataFrame) -> None:
    """Refuse an id that is neither text nor a whole number, in a column of texts.

    It would become a text that nobody sent: 1e5 would be read as 100000.
    """
    names = [name for name in ("user_id", "item_id") if frame.schema.get(name) == pl.String]
    if not names:
        return
    keys = "|".join(_match_key(name) for name in names)
    suspect = re.compile(rf'"(?:{keys})"\s*:\s*[^"\s]')
    for number, line in _number_lines(file):
        if not suspect.search(line):
            continue
        pairs = None if read_object(line) is None else _read_pairs(line)
        if pairs is None:
            raise _build_line_error(file, number, line)
        for name, value in pairs:
            if name in names and isinstance(value, float | bool | list | dict):
                raise UnreadableSourceError(
                    f"{file}, line {number}, column {name!r}",
                    "an id is text or a whole number",
                    f"got {json.dumps(value)[:80]}",
                    "write it in quotes",
                )


def _match_key(name: str) -> str:
    """Return the pattern of a JSON key, each of whose characters may be escaped."""
    return "".join(f"(?:{letter}|\\\\u(?i:{ord(letter):04x}))" for letter in name)


def _read_pairs(line: str) -> list[tuple[str, object]] | None:
    """Read the keys and values of an object; None if it is nested too deeply.

    Polars takes the first of equal keys, and a dict the last.
    """
    pairs: list[tuple[str, object]] = []

    def keep(read: list[tuple[str, object]]) -> dict[str, object]:
        pairs[:] = read  # the outermost object ends last
        return dict(read)

    try:
        json.loads(line, object_pairs_hook=keep)
    except RecursionError:
        return None
    return pairs


def _find_broken_line(file: Path, error: Exception) -> UnreadableSourceError:
    for number, line in _number_lines(file):
        if line.strip() and read_object(line) is None:
            return _build_line_error(file, number, line)
    return UnreadableSourceError(
        str(file), _LINE, f"reading it failed: {_join_lines(error)}", "repair the file"
    )


_LINE = "each line must be one JSON object"


def _build_line_error(file: Path, number: int, line: str) -> UnreadableSourceError:
    return UnreadableSourceError(
        f"{file}, line {number}", _LINE, f"got {line[:80].rstrip()!r}", "repair the line"
    )


def _number_lines(file: Path) -> Iterator[tuple[int, str]]:
    with file.open(encoding="utf-8", errors="replace", newline="\n") as lines:
        yield from enumerate(lines, start=1)
