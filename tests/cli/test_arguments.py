"""Arguments that no command can use are refused with the rule, before anything is done."""

import pytest
from typer.testing import CliRunner

from cli.main import app


@pytest.mark.parametrize(
    "command", [["keys", "revoke"], ["backup"], ["export-events", "--output"], ["train", "--data"]]
)
def test_an_argument_that_is_no_utf8_is_refused(command: list[str]) -> None:
    result = CliRunner().invoke(app, [*command, "caf\udce9"])
    assert result.exit_code == 2
    assert "an argument is text in UTF-8" in result.output


def test_the_audit_shows_a_bounded_number_of_entries() -> None:
    result = CliRunner().invoke(app, ["audit", "--limit", "9" * 20])
    assert result.exit_code == 2
    assert "100000" in result.output
