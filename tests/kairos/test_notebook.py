"""docs/notebook.ipynb runs, and has the outputs of a run."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

from tests.architecture.repository import ROOT

NOTEBOOK = Path(ROOT / "docs" / "notebook.ipynb")
MOST_BYTES = 400_000


def read_notebook() -> NotebookNode:
    return nbformat.read(NOTEBOOK, as_version=4)


def list_output_types(notebook: NotebookNode) -> list[list[str]]:
    """The kinds of output of each cell of code."""
    return [
        sorted(kind for output in cell.outputs for kind in output.get("data", {"stream": ""}))
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def test_the_notebook_was_executed_from_top_to_bottom() -> None:
    cells = [cell for cell in read_notebook().cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert NOTEBOOK.stat().st_size < MOST_BYTES
    assert "/tmp/" not in NOTEBOOK.read_text("utf-8")


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore")  # of the kernel's own packages
def test_the_notebook_runs_and_shows_what_it_did() -> None:
    recorded, notebook = read_notebook(), read_notebook()
    client = NotebookClient(
        notebook, timeout=240, resources={"metadata": {"path": str(NOTEBOOK.parent)}}
    )
    client.execute()  # raises the error of a cell
    assert list_output_types(notebook) == list_output_types(recorded)
    assert "image/png" in {kind for kinds in list_output_types(notebook) for kind in kinds}
