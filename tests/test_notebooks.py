"""The notebooks of examples/ run from the first cell to the last, and are committed without outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parent.parent / "examples"
# What must be in the outputs: words, and how many pictures.
NOTEBOOKS: dict[str, tuple[list[str], int]] = {
    "compare_rankers": (["Comparison", "\\begin{tabular}", "PBMTS", "p_holm"], 1),
    "your_own_ranker": (["Comparison", "EpsilonGreedy", "mine, explores more"], 1),
    "log_to_live_ranker": (["these pages are simulated", "pbm", "clicks on 100 pages", "document 0"], 1),
    "figure_and_assumption": (["15 of 90 jobs", "opposite after 5,000", "TopFTRL"], 2),
}


def _outputs(notebook: Any) -> list[Any]:
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def test_every_notebook_is_known() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.ipynb")} == set(NOTEBOOKS)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_committed_without_outputs(name: str) -> None:
    notebook = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    assert not _outputs(notebook)
    assert all(cell.get("execution_count") is None for cell in notebook.cells)
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (
        "JUPYTER_CONFIG_DIR",
        "JUPYTER_DATA_DIR",
        "JUPYTER_RUNTIME_DIR",
        "IPYTHONDIR",
        "RANKLOOP_DATA",
    ):
        (tmp_path / variable).mkdir()
        monkeypatch.setenv(variable, str(tmp_path / variable))  # nobody's own settings, and no real data
    monkeypatch.delenv("MPLBACKEND", raising=False)
    work = tmp_path / "work"
    work.mkdir()
    notebook = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
    client = NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(work)}}
    )
    client.create_kernel_manager()
    assert client.km is not None
    client.km.ip = "127.0.0.1"
    client.execute()

    outputs = _outputs(notebook)
    text = "".join(
        str(output.get("text", "")) + str(output.get("data", {}).get("text/html", output.get("data", {})))
        for output in outputs
    )
    words, pictures = NOTEBOOKS[name]
    for word in words:
        assert word in text, f"{word!r} is not in what {name} shows"
    assert sum("image/png" in output.get("data", {}) for output in outputs) == pictures
    assert [output.text for output in outputs if output.get("name") == "stderr"] == []
