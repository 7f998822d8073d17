import json
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.clock import to_datetime
from model.errors import EventSourceError
from training.data.columns import EVENT_SCHEMA, ITEM_SCHEMA
from training.data.sources import read_events, read_items, read_stored_events

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
NOON_SECONDS = 1_769_860_800
NOON_MICROSECONDS = NOON_SECONDS * 1_000_000


def write(file: Path, text: str) -> Path:
    file.write_text(text, encoding="utf-8")
    return file


def write_parquet(folder: Path, **columns: object) -> Path:
    file = folder / "events.parquet"
    defaults = {"user_id": ["u"], "item_id": ["i"], "timestamp": [NOON]}
    pl.DataFrame({**defaults, **columns}).write_parquet(file)
    return file


def refusal(location: str | Path) -> str:
    with pytest.raises(EventSourceError) as caught:
        read_events(location)
    return str(caught.value)


# Every kind of file


def test_every_kind_of_file_gives_the_same_events(tmp_path: Path) -> None:
    expected = pl.DataFrame(
        {
            "user_id": ["007", "8"],
            "item_id": ["a", "b"],
            "timestamp": [NOON, NOON],
            "action": ["event", "rating"],
            "value": [None, 4.5],
        },
        schema=EVENT_SCHEMA,
    )
    parquet = tmp_path / "events.parquet"
    expected.write_parquet(parquet)
    rows = [
        ("007", "a", "2026-01-31T12:00:00Z", "", ""),
        ("8", "b", str(NOON_SECONDS), "rating", "4.5"),
    ]
    names = tuple(EVENT_SCHEMA)
    comma, tab = (
        write(tmp_path / name, "\n".join(mark.join(row) for row in (names, *rows)) + "\n")
        for name, mark in (("events.csv", ","), ("events.tsv", "\t"))
    )
    lines = [
        {"user_id": "007", "item_id": "a", "timestamp": "2026-01-31T12:00:00Z"},
        {
            "user_id": 8,
            "item_id": "b",
            "timestamp": NOON_SECONDS,
            "action": "rating",
            "value": 4.5,
        },
    ]
    json_lines = write(tmp_path / "events.jsonl", "\n".join(json.dumps(line) for line in lines))
    for file in (parquet, comma, tab, json_lines):
        assert read_events(file).equals(expected), file.name


LOOKALIKES = (
    "007",
    "7",
    "1e5",
    "100000",
    "1.0",
    "NaN",
    "null",
    "NA",
    "true",
    " 8",
    "8 ",
    "8",
    "-0",
)
"""Ids that a reader of numbers, of missing values or of trimmed text would change."""


@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "byte order mark"])
@pytest.mark.parametrize("name", ["events.csv", "events.tsv", "events.jsonl"])
def test_ids_are_read_as_they_are(tmp_path: Path, name: str, mark: str) -> None:
    separator = {"events.csv": ",", "events.tsv": "\t"}.get(name)
    if separator is None:
        rows = [{"user_id": it, "item_id": it, "timestamp": NOON_SECONDS} for it in LOOKALIKES]
        text = "\n".join(json.dumps(row) for row in rows)
    else:
        names = separator.join(("user_id", "item_id", "timestamp"))
        lines = (separator.join((it, it, str(NOON_SECONDS))) for it in LOOKALIKES)
        text = "\n".join((names, *lines))
    file = write(tmp_path / name, mark + text)
    if mark and separator is None:
        assert "line 1" in refusal(file)
        return
    assert read_events(file)["user_id"].to_list() == list(LOOKALIKES)
    assert read_events(file)["item_id"].to_list() == list(LOOKALIKES)
    items = read_items(file)
    assert items["item_id"].to_list() == list(LOOKALIKES)


@pytest.mark.parametrize("number", ["1e5", "1.0", "true", '["7"]'])
def test_an_id_that_is_no_whole_number_is_refused(tmp_path: Path, number: str) -> None:
    event = f'"item_id": "i", "timestamp": {NOON_SECONDS}'
    lines = [f'{{"user_id": "007", {event}}}', f'{{"user_id": {number}, {event}}}']
    message = refusal(write(tmp_path / "events.jsonl", "\n".join(lines)))
    assert "an id is text or a whole number" in message


@pytest.mark.parametrize("ids", ['"user\\u005fid":1e5', '"user_id":1e5,"user_id":"7"'])
def test_an_id_is_checked_however_its_key_is_written(tmp_path: Path, ids: str) -> None:
    lines = [f'{{{it},"item_id":"i","timestamp":0}}' for it in ('"user_id":"7"', ids)]
    message = refusal(write(tmp_path / "events.jsonl", "\n".join(lines)))
    assert "line 2, column 'user_id': an id is text or a whole number, but got 100000.0" in message


def test_the_rows_of_a_source_keep_their_order(tmp_path: Path) -> None:
    file = write_parquet(
        tmp_path, user_id=["u"] * 4, item_id=["d", "a", "c", "b"], timestamp=[NOON] * 4
    )
    assert read_events(file)["item_id"].to_list() == ["d", "a", "c", "b"]


def test_a_directory_is_read_in_the_order_of_its_names(tmp_path: Path) -> None:
    for name in ("2.csv", "1.csv", "10.csv"):
        write(tmp_path / name, f"user_id,item_id,timestamp\nu,{name},0\n")
    write(tmp_path / "README.md", "not a source")
    assert read_events(tmp_path)["item_id"].to_list() == ["1.csv", "10.csv", "2.csv"]


def test_a_glob_chooses_among_files(tmp_path: Path) -> None:
    for name in ("may-1.csv", "may-2.csv", "june-1.csv"):
        write(tmp_path / name, f"user_id,item_id,timestamp\nu,{name},0\n")
    assert len(read_events(str(tmp_path / "may-*.csv"))) == 2


def test_extra_columns_are_ignored(tmp_path: Path) -> None:
    assert read_events(write_parquet(tmp_path, colour=["red"])).columns == list(EVENT_SCHEMA)


def test_whole_number_ids_become_text(tmp_path: Path) -> None:
    events = read_events(write_parquet(tmp_path, user_id=[1], item_id=[2**53 + 1]))
    assert events.row(0)[:2] == ("1", "9007199254740993")


def test_events_later_than_until_are_left_out(tmp_path: Path) -> None:
    file = write_parquet(
        tmp_path,
        user_id=["u", "u"],
        item_id=["at", "after"],
        timestamp=[NOON, to_datetime(NOON_MICROSECONDS + 1)],
    )
    assert read_events(file, until=NOON_MICROSECONDS)["item_id"].to_list() == ["at"]


def test_a_file_without_rows_gives_no_events(tmp_path: Path) -> None:
    events = read_events(write(tmp_path / "events.csv", "user_id,item_id,timestamp\n"))
    assert events.schema == EVENT_SCHEMA
    assert events.is_empty()


# Times


@given(at=st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)))
def test_decimal_epoch_seconds_are_exact_to_the_microsecond(
    tmp_path_factory: pytest.TempPathFactory, at: datetime
) -> None:
    folder = tmp_path_factory.mktemp("seconds")
    file = write(folder / "e.csv", f"user_id,item_id,timestamp\nu,i,{at.timestamp():.6f}\n")
    assert read_events(file)["timestamp"].to_list() == [at]


@pytest.mark.parametrize(
    "written",
    [
        "2026-01-31T12:00:00Z",
        "2026-01-31t12:00:00z",
        "2026-01-31 12:00:00+00:00",
        "2026-01-31T14:00:00.000+02:00",
        "2026-01-31T05:00:00-07:00",
        str(NOON_SECONDS),
        f"{NOON_SECONDS}.0",
    ],
)
def test_an_instant_may_be_written_in_several_ways(tmp_path: Path, written: str) -> None:
    file = write(tmp_path / "e.csv", f"user_id,item_id,timestamp\nu,i,{written}\n")
    assert read_events(file)["timestamp"].to_list() == [NOON]


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_datetimes_of_any_unit_and_zone_are_the_same_instant(
    tmp_path: Path, unit: pl._typing.TimeUnit, zone: str
) -> None:
    stamps = pl.Series([NOON]).dt.convert_time_zone(zone).dt.cast_time_unit(unit)
    assert read_events(write_parquet(tmp_path, timestamp=stamps))["timestamp"].to_list() == [NOON]


@pytest.mark.parametrize(
    ("written", "rule"),
    [
        ("", "an event needs an instant"),
        ("2026-01-31T12:00:00", "needs an offset"),
        ("2026-01-31", "is RFC 3339"),
        ("2026-02-30T12:00:00Z", "is RFC 3339"),
        ("0000-01-01T00:00:00Z", "in the years 1 to 9999"),
        ("yesterday", "is RFC 3339"),
        ("nan", "must be finite"),
        ("-inf", "must be finite"),
        ("1769860800000", "are in seconds"),
        ("1e300", "are in seconds"),
    ],
)
def test_a_time_that_is_no_instant_is_refused(tmp_path: Path, written: str, rule: str) -> None:
    file = write(tmp_path / "e.csv", f"user_id,item_id,timestamp\nu,i,0\nu,i,{written}\n")
    message = refusal(file)
    assert rule in message
    assert f"{file}, line 3, column 'timestamp'" in message


def test_naive_datetimes_are_refused(tmp_path: Path) -> None:
    message = refusal(write_parquet(tmp_path, timestamp=[NOON.replace(tzinfo=None)]))
    assert "row 1, column 'timestamp': an instant needs an offset from UTC" in message


def test_datetimes_beyond_the_calendar_are_refused(tmp_path: Path) -> None:
    stamps = pl.Series([2**62]).cast(pl.Datetime("ms", "UTC"))
    assert "within the years 1 to 9999" in refusal(write_parquet(tmp_path, timestamp=stamps))


# What is refused, and how


@pytest.mark.parametrize("column", ["user_id", "item_id"])
@pytest.mark.parametrize(
    "ids", [["x", None], ["x", ""], [None, None], [1, None]], ids=["null", "empty", "all", "number"]
)
def test_a_row_without_an_id_is_refused(tmp_path: Path, column: str, ids: list[object]) -> None:
    both = {"user_id": ["u", "u"], "item_id": ["i", "i"], "timestamp": [NOON, NOON]}
    message = refusal(write_parquet(tmp_path, **{**both, column: ids}))
    assert f"column {column!r}: an id must not be empty" in message


@pytest.mark.parametrize("ids", [[1.5], [True], [NOON]])
def test_an_id_that_is_neither_text_nor_whole_number_is_refused(
    tmp_path: Path, ids: list[object]
) -> None:
    assert "an id is text or a whole number" in refusal(write_parquet(tmp_path, user_id=ids))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "much"])
def test_a_value_that_is_no_finite_number_is_refused(tmp_path: Path, value: object) -> None:
    message = refusal(write_parquet(tmp_path, value=[value]))
    assert "row 1, column 'value': a value is a finite number" in message


def test_a_missing_column_is_named_with_those_present(tmp_path: Path) -> None:
    message = refusal(write(tmp_path / "e.csv", "user,item_id,timestamp\nu,i,0\n"))
    assert (
        "a column 'user_id' is required, but the columns are: user, item_id, timestamp" in message
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"u,i,2025-01-01,,", "line 3: a row has at most the 3 fields of the header, but this one"),
        (b'u,"i,2025-01-01', "line 3: a field that begins with a quote ends with one"),
        (b"u,caf\xe9,2025-01-01", "a file is text in UTF-8"),
    ],
)
def test_a_row_that_cannot_be_read_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "events.csv"
    file.write_bytes(b"user_id,item_id,timestamp\nu,i,2025-01-01T00:00:00Z\n" + content + b"\n")
    with pytest.raises(EventSourceError, match=message) as raised:
        read_events(file)
    assert "infer_schema" not in str(raised.value)
    assert "truncate_ragged_lines" not in str(raised.value)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "events.csv").touch()
    with pytest.raises(EventSourceError, match="a file has a header, but this one is empty"):
        read_events(tmp_path / "events.csv")


def test_a_line_number_counts_the_lines_inside_quotes(tmp_path: Path) -> None:
    text = 'user_id,item_id,timestamp\n"two\nlines",i,0\nu,,0\n'
    assert "line 4, column 'item_id'" in refusal(write(tmp_path / "e.csv", text))


def test_a_line_number_counts_the_blank_lines_between_objects(tmp_path: Path) -> None:
    good, bad = '{"user_id":"u","item_id":"i","timestamp":0}', '{"user_id":"u","timestamp":0}'
    file = write(tmp_path / "e.jsonl", f"{good}\n\n{bad}\n")
    assert "line 3, column 'item_id'" in refusal(file)


DEEP = '{"a":' * 5000 + "1" + "}" * 5000


@pytest.mark.parametrize("line", ['{"user_id":', "[1]", "nonsense", '{"value":NaN}', DEEP])
def test_a_line_that_is_no_json_object_is_named(tmp_path: Path, line: str) -> None:
    good = '{"user_id":"u","item_id":"i","timestamp":0}'
    message = refusal(write(tmp_path / "e.jsonl", f"{good}\n{line}\n"))
    assert "line 2: each line must be one JSON object" in message


@pytest.mark.parametrize("properties", ["[1]", "nonsense", '{"price": NaN}', DEEP])
def test_properties_that_are_no_json_object_are_refused(tmp_path: Path, properties: str) -> None:
    columns = {"event_id": ["e"], "action": ["view"], "properties": [properties]}
    write_parquet(tmp_path, **columns)
    with pytest.raises(EventSourceError, match=r"row 1, column 'properties'.*one JSON object"):
        read_stored_events(tmp_path)


@pytest.mark.parametrize("cell", [["x"], b"\xff", {"a": 1}], ids=["list", "bytes", "struct"])
@pytest.mark.parametrize("column", ["action", "value", "received_at", "event_id"])
def test_a_cell_that_is_no_scalar_is_refused(tmp_path: Path, column: str, cell: object) -> None:
    write_parquet(tmp_path, **{column: [cell]})
    with pytest.raises(EventSourceError, match=f"row 1, column '{column}': .*, but got .*; .*"):
        read_stored_events(tmp_path)


@pytest.mark.parametrize("inner", [b"x", [b"x"], {"deep": b"x"}], ids=["flat", "list", "struct"])
def test_properties_that_hold_bytes_are_refused(tmp_path: Path, inner: object) -> None:
    write_parquet(tmp_path, properties=[{"price": inner}])
    with pytest.raises(EventSourceError, match=r"row 1, column 'properties'.*one JSON object"):
        read_stored_events(tmp_path)


@pytest.mark.parametrize("dtype", [pl.Binary, pl.List(pl.String), pl.Struct({"a": pl.Binary})])
def test_a_column_without_values_is_missing(tmp_path: Path, dtype: pl.DataType) -> None:
    names = ("action", "value", "properties", "received_at")
    write_parquet(tmp_path, **{name: pl.Series([None], dtype=dtype) for name in names})
    assert read_stored_events(tmp_path).select(names).row(0) == ("event", None, None, None)


def test_a_long_value_is_shortened_in_a_refusal(tmp_path: Path) -> None:
    assert len(refusal(write_parquet(tmp_path, timestamp=["x" * 1_000_000]))) < 1000


def test_a_row_after_a_huge_cell_is_located(tmp_path: Path) -> None:
    text = f"user_id,item_id,timestamp,note\nu,i,0,{'x' * 200_000}\nu,i,bad,\n"
    assert "row 2, column 'timestamp'" in refusal(write(tmp_path / "e.csv", text))


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    message = refusal(write(tmp_path / "e.csv", "user_id,item_id,item_id,timestamp\nu,i,j,0\n"))
    assert "every column must have a name of its own, but 'item_id' appears 2 times" in message


@pytest.mark.parametrize("name", ["e.parquet", "e.csv", "e.jsonl"])
def test_an_empty_file_is_refused_by_name(tmp_path: Path, name: str) -> None:
    assert name in refusal(write(tmp_path / name, ""))


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    assert "this one ends in '.xlsx'" in refusal(write(tmp_path / "events.xlsx", ""))


def test_a_path_that_leads_nowhere_is_refused(tmp_path: Path) -> None:
    assert "check the path" in refusal(tmp_path / "missing.parquet")


# The service's database


def database(folder: Path, *rows: tuple[object, ...]) -> str:
    file = folder / "kairos.db"
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE events (id, user_id, item_id, action, at, value)")
    connection.execute("CREATE TABLE erased_users (digest, erased_at)")
    connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", rows)
    connection.commit()
    connection.close()
    return f"sqlite:///{file}"


def test_a_database_gives_its_events_in_order_of_arrival(tmp_path: Path) -> None:
    address = database(
        tmp_path,
        (2, "u", "second", "view", NOON_MICROSECONDS, 1.5),
        (1, "u", "first", None, NOON_MICROSECONDS, None),
    )
    events = read_events(address)
    assert events.schema == EVENT_SCHEMA
    assert events.rows() == [
        ("u", "first", NOON, "event", None),
        ("u", "second", NOON, "view", 1.5),
    ]


def test_a_database_is_read_up_to_and_including_until(tmp_path: Path) -> None:
    rows = [(at, "u", f"i{at}", None, at, None) for at in range(5)]
    events = read_events(database(tmp_path, *rows), until=2)
    assert events["item_id"].to_list() == ["i0", "i1", "i2"]


def test_a_database_is_read_across_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("training.data.database_source.CHUNK_ROWS", 3)
    rows = [(at, "u", f"i{at}", None, at, None) for at in range(10)]
    assert read_events(database(tmp_path, *rows))["item_id"].to_list() == [r[2] for r in rows]


def test_an_empty_database_gives_no_events(tmp_path: Path) -> None:
    assert read_events(database(tmp_path)).schema == EVENT_SCHEMA


def test_an_event_the_database_should_not_hold_is_named(tmp_path: Path) -> None:
    address = database(tmp_path, (41, "u", "i", None, 0, None), (42, "u", "", None, 0, None))
    assert "event 42, column 'item_id'" in refusal(address)


def test_a_database_file_that_does_not_exist_is_not_created(tmp_path: Path) -> None:
    assert "must exist" in refusal(f"sqlite:///{tmp_path / 'absent.db'}")
    assert not (tmp_path / "absent.db").exists()


def test_a_database_without_the_table_is_refused(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "other.db").close()
    assert "no such table" in refusal(f"sqlite:///{tmp_path / 'other.db'}")


@pytest.mark.parametrize("address", ["mysql://host/kairos", "nonsense://", "://"])
def test_an_address_of_another_kind_is_refused(address: str) -> None:
    assert "address" in refusal(address)


def test_a_refusal_never_shows_the_password() -> None:
    message = refusal("postgresql://kairos:hunter2@127.0.0.1:1/kairos?connect_timeout=1")
    assert "hunter2" not in message
    assert "check the address" in message


# Items


def test_items_may_have_titles_and_categories(tmp_path: Path) -> None:
    text = "item_id,title,categories\na,A lamp,home|light\nb,,\n"
    items = read_items(write(tmp_path / "items.csv", text))
    assert items.schema == ITEM_SCHEMA
    assert items.rows() == [("a", "A lamp", ["home", "light"]), ("b", None, [])]


def test_items_need_no_more_than_an_id(tmp_path: Path) -> None:
    file = tmp_path / "items.parquet"
    pl.DataFrame({"item_id": [1, 2]}).write_parquet(file)
    assert read_items(file).rows() == [("1", None, []), ("2", None, [])]


def test_categories_may_be_lists(tmp_path: Path) -> None:
    file = tmp_path / "items.parquet"
    pl.DataFrame({"item_id": ["a", "b"], "categories": [["home"], None]}).write_parquet(file)
    assert read_items(file)["categories"].to_list() == [["home"], []]


def test_an_item_listed_twice_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "items.csv", "item_id\na\na\n")
    with pytest.raises(EventSourceError, match=r"line 3.*an item is listed once"):
        read_items(file)


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ("title", ["x"]),
        ("title", b"\xff"),
        ("title", {"a": 1}),
        ("categories", [["x"]]),
        ("categories", [b"\xff"]),
        ("categories", [{"a": 1}]),
        ("categories", b"\xff"),
    ],
)
def test_an_item_described_by_no_text_is_refused(tmp_path: Path, column: str, cell: object) -> None:
    file = tmp_path / "items.parquet"
    pl.DataFrame({"item_id": ["a"], column: [cell]}).write_parquet(file)
    with pytest.raises(EventSourceError, match=f"row 1, column '{column}': .*, but got .*; "):
        read_items(file)
