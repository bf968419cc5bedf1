"""Tables as JSON lines: an impression or a count on each line, by the names of its columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from rankloop.data.clicks import json_lines
from rankloop.data.clicks.columns import COLUMNS
from rankloop.data.clicks.pages import SHOWN

_LINES = 100  # that are looked at for the names of the columns


def json_header(path: Path) -> list[str]:
    """The names on the first lines."""
    names: dict[str, None] = {}
    for number, block in json_lines.line_blocks(path):
        for place, line in islice(json_lines.lines(path, number, block), _LINES):
            names |= dict.fromkeys(json_lines.parse(path, place, line))
        break
    return list(names)


def is_json_table(path: Path, columns: Mapping[str, str]) -> bool:
    """Whether the first line of JSON lines is a row, with an item of its own, and not a page with a list of them."""
    for number, block in json_lines.line_blocks(path):
        for place, line in json_lines.lines(path, number, block):
            first = json_lines.parse(path, place, line)
            lists = any(isinstance(first.get(name), list) for name in SHOWN)
            return not lists and any(name in first for name in (columns.get("item", ""), *COLUMNS["item"]))
    return False


def json_batches(
    path: Path, wanted: Mapping[str, str], watch: Callable[[float], None]
) -> Iterator[pl.DataFrame]:
    """The wanted columns under our names, a block of lines at a time."""
    for number, block in json_lines.line_blocks(path, watch):
        frame = _parsed(path, number, block, wanted)
        yield _one_by_one(path, number, block, wanted) if frame is None else frame


def _parsed(path: Path, number: int, block: bytes, wanted: Mapping[str, str]) -> pl.DataFrame | None:
    place, line = next(json_lines.lines(path, number, block), (number, "{}"))
    first = json_lines.parse(path, place, line)
    types = {theirs: json_lines.type_of(first.get(theirs)) for theirs in wanted.values()}
    frame = json_lines.parse_block(block, types)
    if frame is None or any(kind.is_nested() for kind in frame.schema.values()):
        return None
    return frame.select(pl.col(theirs).alias(ours) for ours, theirs in wanted.items())


def _one_by_one(path: Path, number: int, block: bytes, wanted: Mapping[str, str]) -> pl.DataFrame:
    rows: dict[str, list[str | None]] = {ours: [] for ours in wanted}
    for place, line in json_lines.lines(path, number, block):
        fields = json_lines.parse(path, place, line)
        for ours, theirs in wanted.items():
            rows[ours].append(_text(fields.get(theirs)))
    return pl.DataFrame(rows, schema=dict.fromkeys(wanted, pl.String))


def _text(value: Any) -> str | None:
    """A value as a CSV file would have it; nothing for lists and objects."""
    return None if value is None or isinstance(value, list | dict) else str(value)
