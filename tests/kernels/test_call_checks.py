"""The checks of every call, against the same in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from rankloop.kernels.call_checks import ordinary, within


@pytest.mark.parametrize(
    ("items", "revealed", "clicks", "most", "good"),
    [
        ([2, 0, 4], [1.0, 0.0], True, 1.0, True),
        ([2, 0, 4], [0.5, 3.0], False, 3.0, True),
        ([2, 0, 4], [], False, 3.0, True),
        ([2, 0, 4], [0.5, 0.0], True, 1.0, False),
        ([2, 0, 4], [3.5, 0.0], False, 3.0, False),
        ([2, 0, 4], [0.0, -1.0], False, 3.0, False),
        ([2, 0, 4], [0.0, np.nan], True, 1.0, False),
        ([2, 0, 4], [np.inf, 0.0], False, 1e308, False),
        ([2, 0, 5], [1.0, 0.0], True, 1.0, False),
        ([2, -1, 4], [1.0, 0.0], True, 1.0, False),
        ([2, 4, 2], [1.0, 0.0], True, 1.0, False),
    ],
)
def test_what_is_ordinary(
    items: list[int], revealed: list[float], clicks: bool, most: float, good: bool
) -> None:
    seen = np.zeros(5, np.bool_)
    for _ in range(2):
        found = ordinary(np.array(items, np.int64), seen, 5, np.array(revealed, float), clicks, most)
        assert bool(found) is good
        assert not seen.any()


def test_within() -> None:
    values = np.array([0.0, 0.5, 1.0])
    assert within(values, 0.0, 1.0)
    assert within(values[:0], 0.0, 1.0)
    assert not within(values, 0.1, 1.0)
    assert not within(values, 0.0, 0.9)
    assert not within(np.array([0.5, np.nan]), 0.0, 1.0)
    assert within(np.array([-1, 3]), -1, 3)
    assert not within(np.array([-1, 4]), -1, 3)
