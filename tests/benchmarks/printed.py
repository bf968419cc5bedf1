"""What a benchmark prints."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

from rich.console import Console


def printed(parts: Iterable[Any]) -> str:
    """The tables and sentences of a benchmark as text, wide enough for each of its rows."""
    console = Console(width=140, file=io.StringIO())
    for part in parts:
        console.print(part)
    return console.file.getvalue()
