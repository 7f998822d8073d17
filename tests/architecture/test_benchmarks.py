import json
import subprocess
import sys
from pathlib import Path

PAPERS = Path(__file__).parents[2] / "benchmarks" / "papers"


def test_the_page_of_results_says_what_the_records_say() -> None:
    rendered = subprocess.run(
        [sys.executable, PAPERS / "table.py"], capture_output=True, text=True, check=True
    ).stdout
    assert (PAPERS / "README.md").read_text("utf-8") == rendered, (
        "refresh it: python benchmarks/papers/table.py > benchmarks/papers/README.md"
    )


def test_every_record_names_its_command_its_data_and_its_machine() -> None:
    records = list((PAPERS / "results").glob("*.json"))
    assert records
    for file in records:
        record = json.loads(file.read_text("utf-8"))
        assert record["command"].startswith("python benchmarks/papers/run_recipe.py")
        assert len(record["data"]["sha256"]) == 64
        assert record["machine"]["processor"]
        assert record["runs"]
