"""That the code of the README is found, and that a type error in it would be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.typed_examples import ROOT, python_of


def test_every_python_block_is_checked_at_its_own_line() -> None:
    readme = (ROOT / "README.md").read_text()
    code = python_of(readme)
    assert readme.count("```python") >= 3
    assert "from rankloop import" in code
    shown, kept = readme.splitlines(), code.splitlines()
    assert len(shown) == len(kept)
    assert all(line in ("", shown[i]) for i, line in enumerate(kept))
    compile(code, "README.md", "exec")


def test_what_the_service_answers_is_known_to_a_type_checker(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "from rankloop import AsyncClient, Client\n"
        "shown = Client().rank('a')\n"
        "shown.items.append('b')\n"
        "shown.itens\n"
        "Client().rank('a', decision=1)\n"
        "async def later() -> int:\n"
        "    return await AsyncClient().rank('a')\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--level", "error", "--pythonpath", sys.executable, wrong],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    found = [line for line in done.stdout.splitlines() if " error: " in line]
    assert [line.partition("wrong.py:")[2].partition(":")[0] for line in found] == ["4", "5", "7"], (
        done.stdout
    )
