"""Output of the command line: tables, and errors with an exit code."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from model.errors import KairosError, format_error
from training.evaluation.counting import CountingSettings
from training.evaluation.report import Report

EXIT_FAILURE = 1
"""Exit code of a failed command; usage errors exit with 2."""

EXIT_INCOMPLETE = 3
"""Exit code of a command that did its work, but not for all of its input."""

console = Console(stderr=True)
"""Messages for people go to standard error, results for programs to standard output."""

_CLIENTS_OF_URLS = {"aiobotocore", "aiohttp", "azure", "botocore", "gcsfs", "google", "s3fs"}
"""Packages by which fsspec reads and writes URLs."""


@contextmanager
def exit_on_error() -> Iterator[None]:
    """Print an expected error as one line, and exit with `EXIT_FAILURE`."""
    try:
        yield
    except ValidationError as error:
        from app.settings import format_settings_error  # noqa: PLC0415 - needed here only

        _print_error(format_settings_error(error))
        raise typer.Exit(EXIT_FAILURE) from error
    except (KairosError, OSError) as error:
        _print_error(format_error(error))
        raise typer.Exit(EXIT_FAILURE) from error
    except Exception as error:
        # Optional packages, which this one may not import.
        if type(error).__module__.partition(".")[0] not in _CLIENTS_OF_URLS:
            raise
        _print_error(
            f"files at a URL must be reachable, but the client of their store failed ({error}); "
            "check the URL, the endpoint and the credentials"
        )
        raise typer.Exit(EXIT_FAILURE) from error


def _print_error(message: str) -> None:
    console.quiet = False  # an error may be of one process of several
    print_message(f"[bold red]error[/] {escape(message)}")


def print_message(message: str) -> None:
    """Print a line with markup to standard error, without wrapping it."""
    console.print(message, highlight=False, soft_wrap=True)


def print_dashboard_link(link: str) -> None:
    """Print the address of the dashboard, but only on a terminal: it may hold a token.

    What goes elsewhere is collected as a log.
    """
    if sys.stderr.isatty():
        print_message(f"[bold]dashboard[/] {escape(link)}")
    else:
        print_message("[bold]dashboard[/]: the command kairos dashboard prints its link")


def print_table(table: Table) -> None:
    """Print a table to standard output, at least 120 columns wide without a terminal."""
    Console(file=sys.stdout, width=None if sys.stdout.isatty() else 120).print(table)


def print_report(report: Report) -> None:
    """Print the metrics of a run to standard output, one row per ranker."""
    questions = f"{report.rows['model']['questions']:,.0f}"
    table = Table(title=f"{questions} test questions, whole catalog ranked")
    columns = ("hit_rate@10", "ndcg@10", "recall@10", "mrr", "accuracy")
    table.add_column("ranker")
    for column in columns:
        table.add_column(column, justify="right")
    table.add_column("model's lead in ndcg@10 (95 %)", justify="right")
    for name, row in report.rows.items():
        ahead = report.ahead.get(name)
        lead = "" if ahead is None else f"{ahead.mean:+.4f} ({ahead.low:+.4f}, {ahead.high:+.4f})"
        table.add_row(name, *(f"{row[column]:.4f}" for column in columns), lead)
    print_table(table)
    print_message(
        "model: popularity up to the last training event (frozen); model_withheld: the same "
        "without the query time; model_live: popularity up to each query; the lead over "
        "counting_live is that of model_live"
    )
    if report.counting is not None:
        print_message(f"counting: {_format_counting(report.counting)}")
    for name, row in report.after_a_gap.items():
        if name == "model" and row["questions"]:
            print_message(
                f"after a gap: ndcg@10 {row['ndcg@10']:.4f} on {row['questions']:.0f} of "
                f"{report.rows['model']['questions']:.0f} questions; "
                f"cold targets {report.cold_targets:.2%}"
            )


def _format_counting(settings: CountingSettings) -> str:
    half_life, window = settings.half_life_days, settings.window_days
    own = "no decay" if half_life is None else f"half-life of {half_life:g} days"
    counted = "window of all events" if window is None else f"window of {window:g} days"
    return f"{own}, weight of popularity {settings.weight:g}, {counted}"
