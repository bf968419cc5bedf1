"""The tables on the page of the surrogates are what its code prints."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

from rankloop import surrogates

PAGE = (Path(__file__).parents[2] / "docs" / "concepts" / "surrogates.md").read_text()


def test_the_page_prints_its_table() -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        names: dict[str, object] = {}
        for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S):
            exec(block, names)
    printed = [line for line in out.getvalue().splitlines() if line.startswith("|")]
    head = "| surrogate | estimate | k | guess | before learning | learnt |\n|---|---|---|---|---|---|\n"
    table = PAGE.partition(head)[2].partition("\n\n")[0].splitlines()
    assert table == printed


def test_the_page_knows_every_surrogate() -> None:
    for name in surrogates.names():
        assert f"| `{name}` |" in PAGE
