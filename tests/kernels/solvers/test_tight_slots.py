"""Tight slots: those that a plain loop would find, in the same order."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from rankloop.kernels.vectors import find_tight_slots


@numba.njit(error_model="numpy")
def _find(u: Any, rows: Any, most: float, tight: Any) -> int:
    return find_tight_slots(u, rows, most, tight)


@pytest.mark.parametrize("n", [8, 24])
@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
def test_tight_slots(n: int, share: float) -> None:
    rng = np.random.default_rng(n)
    u = np.where(rng.random(n) < share, rng.normal(size=n), 0.0)
    rows = np.where(rng.random(n) < share, 1.5, rng.random(n))
    if share == 0.2:
        rows[3], rows[5], u[6] = np.nan, 1.25, -0.0
    expected = [s for s in range(n) if u[s] != 0.0 or not rows[s] <= 1.25]
    tight = np.full(n, -1)
    assert _find(u, rows, 1.25, tight) == len(expected)
    assert tight[: len(expected)].tolist() == expected


def test_without_room() -> None:
    u, rows, tight = np.ones(16), np.zeros(16), np.zeros(16, np.int64)
    assert _find(u, rows, 1.0, tight[:15].copy()) == -1
    assert _find(u, rows, 1.0, tight) == 16
