"""Lays out the events of a source by user, in shards; see `training.preparation.manifest`.

Files are written into a folder of their own, named by what is read and how it is divided, and the
manifest names that folder last. A preparation that is killed leaves the manifest as it was, and the
next one of the same source goes on with the parts that it had done.
"""

import fcntl
import hashlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from glob import has_magic
from pathlib import PurePath

import polars as pl

from model.errors import EventSourceError
from training.data.database_source import count_events, find_last_event, read_erasures
from training.data.sources import (
    MARKERS,
    PREPARED_MANIFEST,
    STARTED,
    SUFFIXES,
    drop_written,
    find_fixed_directory,
    format_location,
    holds_events,
    is_database,
    is_file_url,
    is_marker,
    list_files,
)
from training.engines import Engine
from training.preparation.folder import Folder, open_location
from training.preparation.manifest import Manifest, Part, Plan, Started
from training.preparation.stages import (
    SHARD_KIND,
    VOCABULARY,
    BuildTask,
    BuiltShard,
    LostEventsError,
    PartitionTask,
    build_shard,
    encode_table,
    merge_vocabularies,
    name_vocabulary,
    partition,
    read_written,
)

SHARD_EVENTS = 1_000_000
"""Events of a shard where their number is not given: a shard is sorted in memory."""

RANGE_EVENTS = 500_000
"""Keys of a database that one task reads."""

GROUP_BYTES = 16_000_000
"""Bytes of the files that one task reads together."""

_EVENT_BYTES = 5
"""Bytes of a compressed event in a file."""

MOST_SHARDS = 4_096

_FOLDER = re.compile(r"[0-9a-f]{16}")


def prepare(
    source: str,
    directory: str,
    engine: Engine,
    *,
    shards: int | None = None,
    on_task: Callable[[str, int], None] = lambda _, __: None,
) -> Manifest:
    """Lay out the events of a source by user, in a directory or at a URL.

    Where the directory holds the events of the same source from earlier, and it has only grown by
    files whose names follow, or by events of a database, only these are read.

    Args:
        source: a file, a directory or a glob of files, on this machine or at a URL; or a database.
        shards: how many; by default that of an earlier preparation of the same source, or one per
            million events.
        on_task: called when a task is done, with the name of its stage and the number of its tasks.

    Raises:
        EventSourceError: if an event is invalid, the source has no events, the directory holds
            other files, or another preparation writes into it.
    """
    folder = Folder.at(directory)
    with _lock(folder):
        before = Manifest.read(folder)
        if before is None:
            _require_own(folder)
        plan, earlier = _plan(source, before, shards, Started.read(folder))
        if earlier is not None and earlier.plan == plan:
            manifest = earlier
        else:
            folder.write(STARTED, Started(plan=plan).model_dump_json().encode())
            manifest = _run(plan, source, folder, engine, earlier, on_task)
            _publish(manifest, folder, before)
        _clean(folder, manifest)
    return manifest


@contextmanager
def _lock(folder: Folder) -> Iterator[None]:
    """Lock out other preparations into a directory of this machine; there are no locks at a URL."""
    path = folder.path("")
    if path is None:
        yield
        return
    path.mkdir(parents=True, exist_ok=True)
    directory = os.open(path, os.O_RDONLY)
    try:
        # On a file system without locks, as at a URL, the counts of events tell that two ran.
        with suppress(OSError):
            _lock_directory(directory, folder)
        yield
    finally:
        os.close(directory)


def _lock_directory(directory: int, folder: Folder) -> None:
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise EventSourceError(
            "one preparation at a time writes into a directory, but another one writes into "
            f"{folder.location}; wait until it has ended, or name another directory"
        ) from error


def _require_own(folder: Folder) -> None:
    is_started = Started.read(folder) is not None
    foreign = [name for name in folder.names("") if not (is_started and name == STARTED)]
    foreign += [name for name in folder.folders() if not _FOLDER.fullmatch(name)]
    if foreign:
        raise EventSourceError(
            "events are prepared into a directory of their own, but "
            f"{folder.location} holds {foreign[0]!r}; name a new one"
        )


def _plan(
    source: str, earlier: Manifest | None, shards: int | None, started: Plan | None
) -> tuple[Plan, Manifest | None]:
    """Divide a source into parts; also return the earlier preparation if the plan continues it.

    Args:
        started: the plan of a preparation that was interrupted.
    """
    name = format_location(source)
    if started is not None and started.source == name and shards in (None, started.shards):
        is_over = earlier is not None and earlier.plan == started
        if not is_over and is_database(source) and _is_unchanged(started, source):
            goes_on = earlier is not None and started.continues(earlier.plan)
            return started, earlier if goes_on else None
    if earlier is not None and earlier.plan.source != name:
        earlier = None
    usual = None if earlier is None else earlier.plan.shards
    if is_database(source):
        # Ranges begin where those of an earlier preparation ended, unless some of its events were
        # erased since, or others became visible late: keys are not given in the order of commits.
        if earlier is not None and not _holds_all(earlier, source):
            earlier = None
        done = () if earlier is None else earlier.plan.parts
        begin, last = (done[-1].last if done else 0), find_last_event(source)
        starts = range(begin, last, RANGE_EVENTS)
        new = (Part(after=after, last=min(after + RANGE_EVENTS, last)) for after in starts)
        parts = (*done, *new)
        events = stored = count_events(source, last)
        erasures = read_erasures(source).identify()
    else:
        parts, erasures, stored = tuple(_list_parts(source)), "", 0
        events = sum(map(_guess_events, parts)) if shards is None else 0
    if shards is None:
        shards = usual or min(max(-(-events // SHARD_EVENTS), 1), MOST_SHARDS)
    plan = Plan(source=name, shards=shards, erasures=erasures, stored=stored, parts=parts)
    return plan, earlier if earlier is not None and plan.continues(earlier.plan) else None


def _holds_all(earlier: Manifest, address: str) -> bool:
    """Return whether a preparation holds all events of a database up to the last that it read."""
    last = earlier.plan.parts[-1].last if earlier.plan.parts else 0
    return count_events(address, last) == earlier.events


def _is_unchanged(plan: Plan, address: str) -> bool:
    """Return whether a database still has the events that an interrupted preparation planned."""
    if not plan.parts or read_erasures(address).identify() != plan.erasures:
        return False
    return count_events(address, plan.parts[-1].last) == plan.stored


def _guess_events(part: Part) -> int:
    """Read the number of events where a file says it, or else guess it by its bytes."""
    if part.name.endswith(".parquet") and not is_file_url(part.name):
        rows = pl.scan_parquet(part.name, glob=False, hive_partitioning=False).select(pl.len())
        with suppress(pl.exceptions.PolarsError):  # reading it will explain what is wrong
            return int(rows.collect().item())
    return part.size // _EVENT_BYTES


def _list_parts(source: str) -> Iterator[Part]:
    """Yield the files of a source."""
    if not is_file_url(source):
        for file in list_files(source):
            state = file.stat()
            stamp = f"{state.st_mtime_ns}"
            yield Part(name=str(file.absolute()), size=state.st_size, stamp=stamp)
        return
    files, path = open_location(source)
    files.invalidate_cache()
    if has_magic(path):
        found = files.glob(path, detail=True)
    elif files.isdir(path):
        found = files.find(path, detail=True)
    else:
        found = {path: files.info(path)} if files.isfile(path) else {}
    root = PurePath(find_fixed_directory(path))
    names = [
        PurePath(name)
        for name, entry in found.items()
        if entry["type"] == "file" and holds_events(_relate(name, path))
    ]

    def is_marked(directory: PurePath) -> bool:
        markers = (f"{directory}/{name}" for name in MARKERS)
        # A glob finds only what it names.
        return any(
            is_marker(files.cat_file(marker))
            for marker in markers
            if marker in found or (has_magic(path) and files.isfile(marker))
        )

    kept = {f"{name}": found[f"{name}"] for name in drop_written(names, root, is_marked)}
    if not kept:
        raise EventSourceError(
            f"a source is a file, a directory or a glob of files ending in {', '.join(SUFFIXES)}, "
            f"but at {format_location(source)} is none; check the URL"
        )
    for name, entry in sorted(kept.items()):
        changed = entry.get("ETag") or entry.get("LastModified") or entry.get("mtime") or ""
        address = files.unstrip_protocol(name)
        yield Part(name=address, size=int(entry["size"]), stamp=str(changed))


def _relate(name: str, directory: str) -> PurePath:
    """Return the name of a file below a directory; the last part of that of another file."""
    file = PurePath(name)
    is_below = PurePath(directory) in file.parents
    return file.relative_to(directory) if is_below else PurePath(file.name)


def _run(
    plan: Plan,
    source: str,
    folder: Folder,
    engine: Engine,
    earlier: Manifest | None,
    on_task: Callable[[str, int], None],
) -> Manifest:
    """Read the parts that were not read earlier, and write the shards."""
    first_new = 0 if earlier is None else len(earlier.plan.parts)
    name = plan.name_folder(first_new)
    target = _name_target(folder, name)
    done = {f"parts/{name}" for name in target.names("parts")}
    address = source if is_database(source) else None
    new = [*enumerate(plan.parts)][first_new:]
    partitions = [PartitionTask(address, parts, plan.shards, target) for parts in _group(new)]
    missing = [task for task in partitions if name_vocabulary(task.number) not in done]
    for _ in engine.run(partition, missing):
        on_task("partition", len(missing))
    with _forget_lost(target):
        counts, vocabulary = _read_counts(target, partitions, folder, earlier)
        if vocabulary.is_empty():
            raise EventSourceError(
                f"a source holds events, but {plan.source} has none; check the location"
            )
        table = encode_table(vocabulary)
        target.write(VOCABULARY, table)
        builds = [
            BuildTask(
                number=number,
                target=target,
                name=name,
                events=counts.get(f"{number}", 0)
                + (0 if earlier is None else earlier.shards[number].events),
                earlier=None if earlier is None else (folder, earlier.shards[number]),
            )
            for number in range(plan.shards)
        ]
        built: list[BuiltShard] = []
        for shard in engine.run(build_shard, builds):
            built.append(shard)
            on_task("sort", len(builds))
    return _describe(plan, name, vocabulary, table, built)


@contextmanager
def _forget_lost(target: Folder) -> Iterator[None]:
    """Where files of a stage are lost, let the next preparation read all parts again."""
    try:
        yield
    except LostEventsError:
        _remove_stages(target)
        raise


def _remove_stages(target: Folder) -> None:
    for stage in ("parts", "pieces"):
        target.remove(stage)


def _name_target(folder: Folder, name: str) -> Folder:
    return Folder(f"{folder.location.rstrip('/')}/{name}")


def _group(parts: list[tuple[int, Part]]) -> Iterator[tuple[tuple[int, Part], ...]]:
    """Group small files that follow each other: every task writes a file per shard."""
    group: list[tuple[int, Part]] = []
    size = 0
    for number, part in parts:
        if group and (size + part.size > GROUP_BYTES or not part.name):
            yield tuple(group)
            group, size = [], 0
        group.append((number, part))
        size += part.size
    if group:
        yield tuple(group)


def _read_counts(
    target: Folder, partitions: list[PartitionTask], folder: Folder, earlier: Manifest | None
) -> tuple[dict[str, int], pl.DataFrame]:
    """Read the numbers of new events by shard, and the vocabulary of all events."""
    counted = merge_vocabularies(
        read_written(target, name_vocabulary(task.number)) for task in partitions
    )
    of_shard = pl.col("kind") == SHARD_KIND
    counts = dict(counted.filter(of_shard).select("text", "events").iter_rows())
    new = counted.filter(~of_shard)
    if earlier is None:
        return counts, new
    return counts, merge_vocabularies([read_written(folder, earlier.vocabulary), new])


def _describe(
    plan: Plan, name: str, vocabulary: pl.DataFrame, table: bytes, built: list[BuiltShard]
) -> Manifest:
    built.sort(key=lambda shard: shard.entry.name)
    counts = dict(vocabulary.group_by("kind").len().iter_rows())
    return Manifest(
        plan=plan,
        folder=name,
        events=sum(shard.entry.events for shard in built),
        users=sum(shard.entry.users for shard in built),
        items=counts["item_id"],
        actions=counts["action"],
        vocabulary=f"{name}/{VOCABULARY}",
        vocabulary_sha256=hashlib.sha256(table).hexdigest(),
        first_at=min(shard.first_at for shard in built if shard.first_at is not None),
        last_at=max(shard.last_at for shard in built if shard.last_at is not None),
        shards=tuple(shard.entry for shard in built),
    )


def _publish(manifest: Manifest, folder: Folder, before: Manifest | None) -> None:
    """Write the manifest, unless another preparation has written one since this one began."""
    # That one has removed the folder of this one.
    if Manifest.read(folder) not in (before, manifest):
        raise EventSourceError(
            "one preparation at a time writes into a directory, but another one has ended in "
            f"{folder.location} meanwhile; run kairos prepare again"
        )
    folder.write(PREPARED_MANIFEST, manifest.model_dump_json(indent=2).encode() + b"\n")


def _clean(folder: Folder, manifest: Manifest) -> None:
    """Remove all that is not of a preparation."""
    for name in folder.folders():
        if name != manifest.folder and _FOLDER.fullmatch(name):
            folder.remove(name)
    target = _name_target(folder, manifest.folder)
    _remove_stages(target)
    folder.remove(STARTED)
    for place in (target, folder):
        place.remove_partial()
