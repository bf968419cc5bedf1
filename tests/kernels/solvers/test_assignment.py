"""The compiled assignment against SciPy's and against all lists there are."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from rankloop.kernels.lists import assign, assignment_scratch, best_list

SHAPES = st.integers(1, 9).flatmap(lambda n: st.tuples(st.integers(1, n), st.just(n)))


def _best(gains: NDArray[np.float64]) -> tuple[float, NDArray[np.int64]]:
    items = np.full(len(gains), -1)
    return best_list(gains, items), items


def _check(gains: NDArray[np.float64]) -> None:
    worth, items = _best(gains)
    positions, columns = linear_sum_assignment(gains, maximize=True)
    scale = max(1.0, float(np.abs(gains).max()))
    assert len(set(items.tolist())) == len(items)
    assert items.min() >= 0
    assert items.max() < gains.shape[1]
    assert worth == pytest.approx(gains[np.arange(len(items)), items].sum(), abs=1e-12 * scale)
    assert worth == pytest.approx(gains[positions, columns].sum(), abs=1e-9 * scale)


@given(SHAPES.flatmap(lambda shape: hnp.arrays(np.float64, shape, elements=st.floats(-1e6, 1e6))))
def test_any_gains(gains: NDArray[np.float64]) -> None:
    _check(gains)


@given(
    SHAPES.flatmap(lambda shape: hnp.arrays(np.float64, shape, elements=st.sampled_from([-1.0, 0.0, 1.0])))
)
def test_gains_with_many_ties(gains: NDArray[np.float64]) -> None:
    _check(gains)


@pytest.mark.parametrize(("m", "n"), [(1, 1), (1, 500), (30, 30), (40, 200), (10, 3000)])
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_larger_lists(m: int, n: int, scale: float) -> None:
    rng = np.random.default_rng(m * n)
    _check(scale * rng.normal(size=(m, n)))
    _check(scale * np.outer(rng.random(m), rng.random(n)))  # of product form, as position-based clicks


def test_no_list_is_better() -> None:
    rng = np.random.default_rng(3)
    for n in range(1, 6):
        for m in range(1, n + 1):
            gains = rng.normal(size=(m, n))
            totals = [gains[np.arange(m), list(items)].sum() for items in permutations(range(n), m)]
            assert _best(gains)[0] == pytest.approx(max(totals), abs=1e-12)


def test_room_can_be_used_again() -> None:
    rng = np.random.default_rng(4)
    space, items = assignment_scratch(3, 6), np.empty(3, np.int64)
    for part in space:
        part[...] = 7  # what an earlier call may have left there
    for _ in range(20):
        gains = rng.normal(size=(3, 6))
        assign(gains, items, space)
        assert items.tolist() == _best(gains)[1].tolist()
