"""The `kairos evaluate` command."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.world import World, kairos


def test_evaluate_prints_the_metrics_of_the_report(world: World, run: Path) -> None:
    printed = kairos(
        *("evaluate", "--events", world.events, "--recipe", world.recipe),
        *("--bundle", run, "--threads", "1"),
    ).output
    for name, row in json.loads((run / "report.json").read_text())["rows"].items():
        (line,) = [line for line in printed.splitlines() if line.split()[1:2] == [name]]
        expected = [f"{row[column]:.4f}" for column in ("hit_rate@10", "ndcg@10", "recall@10")]
        assert [cell.strip() for cell in line.strip("│").split("│")][1:4] == expected
    assert re.search(
        r"^counting: .*, weight of popularity [\d.]+, window of", printed, re.MULTILINE
    )


@pytest.mark.slow
def test_the_recipe_of_the_bundle_is_the_default(world: World, run: Path) -> None:
    arguments = ["evaluate", "--events", world.events, "--bundle", run, "--threads", "1"]
    assert kairos(*arguments).stdout == kairos(*arguments, "--recipe", world.recipe).stdout
