"""Cells in a hash table: the same counts as by dictionary, while it grows and when it is full."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from rankloop import data
from rankloop.data.clicks import cell_table
from rankloop.kernels import cell_table as kernel


def test_counts_are_those_of_a_dictionary_however_often_the_table_grows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = cell_table._empty
    monkeypatch.setattr(cell_table, "_empty", lambda size: made(min(size, 16) if size == 1 << 18 else size))
    rng = np.random.default_rng(4)
    table = cell_table.CellTable({"query": (-3, 4), "item": (10**12, 10**12 + 60), "position": (1, 5)})
    shown: Counter[tuple[int, int, int]] = Counter()
    clicked: Counter[tuple[int, int, int]] = Counter()
    for size in (0, 1, 7, 100, 900):
        query, item = rng.integers(-3, 5, size), 10**12 + rng.integers(61, size=size)
        position, hits = rng.integers(1, 6, size), rng.integers(2, size=size, dtype=np.uint8)
        table.count({"query": query, "item": item, "position": position.astype(np.int8)}, hits)
        for cell, hit in zip(zip(query, item, position, strict=True), hits, strict=True):
            shown[cell] += 1
            clicked[cell] += int(hit)
    assert len(table.table) > 16
    cells = table.cells()
    assert cells.height == table.used == len(shown)
    found = cells.select("query", "item", "position", "rows", "hits").rows()
    assert [row[:3] for row in found] == sorted(shown)
    assert {row[:3]: row[3:] for row in found} == {cell: (shown[cell], clicked[cell]) for cell in shown}


def test_cells_that_belong_to_one_row_of_the_table_stay_apart() -> None:
    table = cell_table._empty(8)
    same = [cell for cell in range(2_000) if _home(cell, 8) == 6][:5]  # past the end, from the front again
    cells = np.array(same * 3, np.int64)
    assert kernel.count(table, cells, np.ones(15, np.uint8)) == 5
    assert kernel.count(table, cells, np.zeros(15, np.uint8)) == 0
    held = {int(cell): int(counts) for cell, counts in table if cell >= 0}
    assert held == dict.fromkeys(same, 6 + 3 * kernel.CLICK)


def _home(cell: int, rows: int) -> int:
    mixed = cell * 0x9E3779B97F4A7C15 % 2**64
    return (mixed ^ (mixed >> 32)) % rows


def test_a_table_that_is_full_is_added_up_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pl.DataFrame(
        {"item": [1, 2, 1] * 50, "position": [1, 2, 2] * 50, "click": [True, False, None] * 50}
    )
    frame.write_parquet(tmp_path / "log.parquet")
    monkeypatch.setattr(cell_table, "_BATCH", 10)
    monkeypatch.setattr(cell_table, "_MOST_ROWS", 25)
    log = data.read_clicks(tmp_path / "log.parquet")
    assert log.shown.tolist() == [50, 50]
    assert log.clicked.tolist() == [50, 0]
    assert log.bad_rows == {"a click that is not 0 or 1": 50}
    assert log.n_rows == 100
