"""Impressions counted by cell in a hash table: each cell a whole number, probed from its hash onwards.

A row of the table is the cell, -1 where there is none, and its counts: impressions in the lower half of the number,
clicks in the upper half, so that a row takes one addition and one line of the processor's memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankloop.kernels.jit import apart, inlined

CLICK = 1 << 32
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio
_HALF = np.uint64(32)


@inlined
def _place(table: Any, cell: int) -> Any:
    """The row of a cell, or the empty one where it belongs; the number of rows is a power of two."""
    last = len(table) - 1
    mixed = np.uint64(cell) * _SPREAD
    row = np.int64((mixed ^ (mixed >> _HALF)) & np.uint64(last))
    while table[row, 0] != cell and table[row, 0] >= 0:
        row = (row + 1) & last
    return row


@apart
def count(table: Any, cells: Any, clicks: Any) -> int:
    """Count impressions, with 0 or 1 clicks each; returns how many cells are new. There must be room for all."""
    new = 0
    for i in range(len(cells)):
        row = _place(table, cells[i])
        if table[row, 0] < 0:
            table[row, 0] = cells[i]
            table[row, 1] = 0
            new += 1
        table[row, 1] += 1 + CLICK * clicks[i]
    return new


@apart
def move(table: Any, larger: Any) -> None:
    """Copy every cell to a larger table, which is empty."""
    for i in range(len(table)):
        if table[i, 0] >= 0:
            row = _place(larger, table[i, 0])
            larger[row, 0] = table[i, 0]
            larger[row, 1] = table[i, 1]
