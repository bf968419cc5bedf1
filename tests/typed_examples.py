"""Type-checks the README and the examples as a user would see them, with mypy and pyright; `make lint` runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "typed"


def python_of(markdown: str) -> str:
    """The Python blocks as one program; every line keeps its number, so that an error points into the page.

    >>> python_of("words\\n```python\\nx = 1\\n```\\n```sh\\nls\\n```\\n```python\\ny = x\\n```")
    '\\n\\nx = 1\\n\\n\\n\\n\\n\\ny = x\\n\\n'
    """
    kept, inside = [], False
    for line in markdown.splitlines():
        if line.startswith("```"):
            inside = line.startswith("```python")
            kept.append("")
        else:
            kept.append(line if inside else "")
    return "\n".join(kept) + "\n"


def main() -> int:
    """Check, print what is wrong, and return the number of checkers that found something."""
    BUILD.mkdir(parents=True, exist_ok=True)
    (BUILD / "README.py").write_text(python_of((ROOT / "README.md").read_text()))
    settings = {
        "typeCheckingMode": "standard",
        "pythonVersion": "3.11",
        "include": [str(BUILD / "README.py"), str(ROOT / "examples")],
        "extraPaths": [str(ROOT)],  # of examples that are packages
    }
    (BUILD / "pyrightconfig.json").write_text(json.dumps(settings))
    files = [str(BUILD / "README.py"), *map(str, sorted((ROOT / "examples").glob("*.py")))]
    # One by one would take a minute: the examples share what they import.
    checks = [
        [sys.executable, "-m", "mypy", "--strict", "--allow-redefinition", "--scripts-are-modules", *files],
        [sys.executable, "-m", "basedpyright", "--project", str(BUILD), "--pythonpath", sys.executable],
    ]
    return sum(subprocess.run(check, cwd=ROOT).returncode != 0 for check in checks)


if __name__ == "__main__":
    sys.exit(main())
