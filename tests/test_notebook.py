"""The tour runs from top to bottom, and the outputs saved in it are those of its code."""

import os
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
TOUR = Path(__file__).parents[1] / "examples" / "tour.ipynb"


def test_outputs_are_saved_without_errors():
    notebook = nbformat.read(TOUR, 4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell.outputs]
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 4
    assert sum("text/html" in output.get("data", {}) for output in outputs) >= 4
    assert not [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"]
    assert TOUR.stat().st_size < 400_000


@pytest.mark.slow
def test_the_tour_runs(tmp_path):
    nbclient = pytest.importorskip("nbclient")
    notebook = nbformat.read(TOUR, 4)
    source = str(Path(__file__).parents[1] / "src")
    environment = {"PYTHONPATH": source, "OMP_NUM_THREADS": "1", "TMPDIR": str(tmp_path)}
    client = nbclient.NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    )
    client.execute(env={**os.environ, **environment})
    verdicts = [cell.outputs[0]["data"]["text/plain"] for cell in notebook.cells if cell.source.endswith(".diagnosis")]
    assert "composes" in verdicts[-1]
