"""Runs the notebooks of `examples/`; each becomes a page with its outputs: `python docs/_ext/notebook_pages.py`."""

from __future__ import annotations

import base64
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

DOCS = Path(__file__).resolve().parent.parent
PAGES = DOCS / "notebooks"


def page(name: str) -> None:
    """Run one notebook, and write its page and its pictures."""
    notebook = nbformat.read(DOCS.parent / "examples" / f"{name}.ipynb", as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(
            notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": folder}}
        ).execute()
    parts, pictures = [], 0
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```{{code-block}} python\n{cell.source}\n```")
        for output in cell.outputs:
            data: dict[str, Any] = output.get("data", {})
            if "image/png" in data:
                pictures += 1
                file = PAGES / f"{name}-{pictures}.png"
                file.write_bytes(base64.b64decode(data["image/png"]))
                parts.append(f"![What the cell above draws]({file.name})")
            elif "text/html" in data:
                if table := re.sub(
                    r"\n\s*\n", "\n", data["text/html"]
                ).strip():  # a bar that has ended is empty
                    parts.append(f"```{{raw}} html\n{table}\n```")
            else:
                text = output.get("text", data.get("text/plain", "")).rstrip()
                if text and output.get("name") != "stderr":
                    parts.append(f"```text\n{text}\n```")
    (PAGES / f"{name}.md").write_text("\n\n".join(parts) + "\n")


if __name__ == "__main__":
    PAGES.mkdir(exist_ok=True)
    for one in sys.argv[1:] or sorted(path.stem for path in (DOCS.parent / "examples").glob("*.ipynb")):
        page(one)
        print(one)
