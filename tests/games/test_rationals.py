"""Exact arithmetic against five-line versions in fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankloop.games.rationals import RowSpace, eliminate, fraction, log_discount


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_fraction_rounds_to_the_float_it_was_made_of(x: float) -> None:
    assert float(fraction(x)) == x


def test_simple_numbers_become_simple_fractions() -> None:
    assert [fraction(x) for x in (0.1, 1 / 3, 2, "2/7", np.float64(0.75), np.int64(3), True)] == [
        Fraction(1, 10),
        Fraction(1, 3),
        2,
        Fraction(2, 7),
        Fraction(3, 4),
        3,
        1,
    ]


@pytest.mark.parametrize("bad", ["x", None, float("nan"), float("inf"), "1/0", [1]])
def test_what_is_no_number_is_refused(bad: object) -> None:
    with pytest.raises(ValueError, match="number"):
        fraction(bad)


def test_log_discounts_are_right_and_keep_their_identities() -> None:
    for rank in range(1, 300):
        assert float(log_discount(rank)) == pytest.approx(1 / math.log2(1 + rank), rel=1e-15)
    assert log_discount(7) == Fraction(1, 3)
    assert log_discount(26) * 3 == log_discount(2)  # 27 = 3^3
    assert log_discount(4) != log_discount(3)


def _rank(rows: np.ndarray) -> int:
    left, rank = [[Fraction(int(x)) for x in row] for row in rows], 0
    for column in range(rows.shape[1]):
        pivot = next((i for i in range(rank, len(left)) if left[i][column]), None)
        if pivot is not None:
            left[rank], left[pivot] = left[pivot], left[rank]
            for i in range(rank + 1, len(left)):
                factor = left[i][column] / left[rank][column]
                left[i] = [a - factor * b for a, b in zip(left[i], left[rank], strict=True)]
            rank += 1
    return rank


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_row_spaces(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 2, (rng.integers(1, 9), rng.integers(1, 8)))
    space = RowSpace(rows)
    assert len(space.chosen) == _rank(rows)
    inside = rng.integers(-3, 4, len(rows)) @ rows
    coefficients = space.coefficients(inside)
    assert coefficients is not None
    assert (sum(c * rows[i] for c, i in zip(coefficients, space.chosen, strict=True)) == inside).all()
    anywhere = rng.integers(-3, 4, rows.shape[1])
    is_in = _rank(np.vstack([rows, anywhere])) == _rank(rows)
    assert (space.coefficients(anywhere) is not None) == is_in
    if not is_in:
        direction = np.array(space.unseen(anywhere), dtype=object)
        assert (rows.astype(object) @ direction == 0).all()
        assert anywhere @ direction != 0


def test_elimination_keeps_the_rows() -> None:
    rng = np.random.default_rng(3)
    matrix = rng.integers(-4, 5, (4, 7)).astype(object)
    reduced, d, pivots = eliminate(matrix)
    assert (reduced[:, pivots] == d * np.eye(len(pivots), dtype=int)).all()
    assert _rank(np.vstack([matrix, reduced])) == len(pivots)
