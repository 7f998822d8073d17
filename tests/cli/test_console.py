"""Errors that a command prints as one line."""

import pytest
import typer

from cli.console import EXIT_FAILURE, exit_on_error


class NoCredentialsError(Exception):
    """An error of the client of an object store, which is no OSError."""

    __module__ = "botocore.exceptions"


def test_an_error_of_the_client_of_a_url_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as raised, exit_on_error():
        raise NoCredentialsError("Unable to locate credentials")
    assert raised.value.exit_code == EXIT_FAILURE
    printed = capsys.readouterr().err
    assert "Unable to locate credentials" in printed
    assert "check the URL, the endpoint and the credentials" in printed
    assert len(printed.splitlines()) == 1


def test_an_error_of_ours_that_none_expects_is_shown_whole() -> None:
    with pytest.raises(ZeroDivisionError), exit_on_error():
        raise ZeroDivisionError
