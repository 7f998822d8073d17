"""The `kairos erase-user` command."""

import asyncio
import codecs
import sys
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer
from pydantic import TypeAdapter, ValidationError

from cli.activation import get_current_actor
from cli.console import EXIT_INCOMPLETE, exit_on_error, print_message
from cli.options import Database, resolve_database_url, resolve_erasure_log
from model.errors import KairosError

if TYPE_CHECKING:
    from app.db.erasure_log import ErasureLog
    from app.db.erasures import Erasure

_TIMEOUT_SECONDS = 600.0
_MOST_LINES = 20
"""Line numbers of one message."""


def erase_user_command(
    user_id: Annotated[
        str,
        typer.Argument(
            help="The user; - reads ids from standard input, one per line, so that they do not "
            "appear in the process list."
        ),
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")] = False,
    database: Database = None,
) -> None:
    """Erase users: all events and recommendation records; later trainings leave the users out.

    Later imports and requests with the erased events are rejected. A repetition is safe. Exits with
    3 if nothing was stored of a user who was not erased before: the id may be wrong.
    """
    from migrations.run import require_upgraded  # noqa: PLC0415 - the service loads slowly

    with exit_on_error():
        url = resolve_database_url(database)
        is_piped = user_id == "-"
        if is_piped and not yes:
            raise KairosError(
                "a confirmation reads standard input, but the ids come from there; add --yes"
            )
        line_of = _read_user_ids(sys.stdin.buffer) if is_piped else {_validate(user_id, ""): 0}
        if not yes:
            typer.confirm("Erase this user permanently?", abort=True)
        require_upgraded(url)
        erasures = _erase(url, line_of, resolve_erasure_log(url))
        typer.echo(_summarise(erasures))
        unknown = [line_of[it] for it, erasure in erasures.items() if erasure.is_unknown]
        if unknown:
            print_message(f"[bold yellow]warning[/] {_explain_unknown(unknown, is_piped=is_piped)}")
            raise typer.Exit(EXIT_INCOMPLETE)


def _read_user_ids(stream: BinaryIO) -> dict[str, int]:
    """Read one id per line, exactly as it is; returns the line of each different id.

    Raises:
        KairosError: if there is no line, or a line is no id; the message gives its number.
    """
    line_of: dict[str, int] = {}
    for number, line in enumerate(_iterate_lines(stream.read()), start=1):
        place = f", line {number}"
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise KairosError(
                f"standard input{place}: ids are UTF-8, but byte {error.start + 1} of the line is "
                f"0x{line[error.start]:02x}; convert the list. Nobody was erased"
            ) from error
        line_of.setdefault(_validate(text, f"standard input{place}: "), number)
    if not line_of:
        raise KairosError(
            "standard input holds one id per line, but there was none; check the command before "
            "the pipe"
        )
    return line_of


def _iterate_lines(content: bytes) -> Iterator[bytes]:
    """Split at line feeds only: ids may contain other separators of lines."""
    lines = content.removeprefix(codecs.BOM_UTF8).split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    for line in lines:
        yield line.removesuffix(b"\r")


def _validate(user_id: str, place: str) -> str:
    from app.http.types import Id  # noqa: PLC0415 - the service's modules load slowly

    try:
        return TypeAdapter(Id).validate_python(user_id)
    except ValidationError as error:
        raise KairosError(
            f"{place}a user id is 1 to 256 characters of Unicode, none of them a control "
            f"character, but this one of {len(user_id)} characters is not; give the id that was "
            "sent with the events. Nobody was erased"
        ) from error


def _erase(url: str, line_of: Mapping[str, int], log: "ErasureLog") -> "dict[str, Erasure]":
    """Erase users one by one, each in its own transaction.

    Raises:
        KairosError: if an erasure failed; the message counts those that did not.
    """
    from app.db.database import Database as Connections  # noqa: PLC0415
    from app.users.service import erase_users_data  # noqa: PLC0415

    erasures: dict[str, Erasure] = {}
    # No caller of a service waits: a user with a million events may take a while.
    connections = Connections(url, threads=1, queue=0, timeout_seconds=_TIMEOUT_SECONDS)
    try:
        # The audit events are logged to standard output, which is for the result here.
        with redirect_stdout(sys.stderr):
            asyncio.run(
                erase_users_data(
                    connections,
                    line_of,
                    actor=get_current_actor(),
                    log=log,
                    on_erased=erasures.__setitem__,
                )
            )
    except KairosError as error:
        raise KairosError(
            f"{len(erasures):,} of {len(line_of):,} users were erased, then: {error}. Run the "
            "command again with the same ids"
        ) from error
    finally:
        connections.close()
    return erasures


def _summarise(erasures: "Mapping[str, Erasure]") -> str:
    every = erasures.values()
    users = sum(erasure.has_deleted for erasure in every)
    before = sum(not it.has_deleted and not it.is_unknown for it in every)
    unknown = sum(erasure.is_unknown for erasure in every)
    parts = [
        f"{users} {'user' if users == 1 else 'users'} erased: "
        f"{sum(it.events for it in every)} events and "
        f"{sum(it.recommendations for it in every)} recommendations deleted"
    ]
    if before:
        parts.append(f"{before} erased before")
    if unknown:
        parts.append(f"nothing stored of {unknown}")
    return ", ".join(parts)


def _explain_unknown(lines: list[int], *, is_piped: bool) -> str:
    where = "the user"
    if is_piped:
        shown = ", ".join(map(str, lines[:_MOST_LINES]))
        more = f" and {len(lines) - _MOST_LINES:,} more" if len(lines) > _MOST_LINES else ""
        where = f"the {'user' if len(lines) == 1 else 'users'} of line {shown}{more}"
    return (
        f"an erasure should find something, but nothing was stored of {where}; compare the id with "
        "the one that was sent with the events, to the letter. Events with it from before now are "
        "refused from now on"
    )
