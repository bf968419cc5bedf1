"""Exact arithmetic, inequalities and measures, against five-line versions in fractions, and against compiled ones."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankloop import measures
from rankloop.games import Undecided, classify, ranking_game
from rankloop.games.exact import (
    Mixture,
    RowSpace,
    by_simplex,
    decide,
    difference_is_nonzero,
    discounts,
    eliminate,
    exact_value,
    excludes,
    fraction,
    log_discount,
)
from tests.measures.cases import NAMES


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


ROUNDED = Fraction(1, 2**180)  # logarithms have 256 binary digits


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


def _proves(found: object, D: np.ndarray, e: np.ndarray | None, interior: bool) -> bool:
    if isinstance(found, Mixture):
        return excludes(found, D, e)
    p = np.array(found, dtype=object)
    lowest = 1 if interior else 0
    return bool(p.min() >= lowest and (D @ p > 0).all() and (e is None or e @ p == 0))


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**9), st.booleans(), st.booleans())
def test_both_ways_decide_alike(seed: int, with_equality: bool, interior: bool) -> None:
    rng = np.random.default_rng(seed)
    D = rng.integers(-2, 3, (rng.integers(1, 7), rng.integers(2, 7))).astype(object)
    e = None
    if with_equality:
        e = rng.integers(-2, 3, D.shape[1]).astype(object)
        e[0], e[1] = -1, 1  # both signs
    one, other = decide(D, e, interior=interior), by_simplex(D, e, interior=interior)
    assert isinstance(one, Mixture) == isinstance(other, Mixture)
    assert _proves(one, D, e, interior)
    assert _proves(other, D, e, interior)


def test_no_tolerance_decides_a_tie() -> None:
    # p1 > 2 p2 and (2 + sign/tiny) p2 > p1: only with sign = 1 is there a solution, and ever so narrow.
    for tiny, sign in product((1, 10**6, 10**12, 10**30, 10**80), (1, 0, -1)):
        D = np.array([[tiny, -2 * tiny], [-tiny, 2 * tiny + sign]], dtype=object)
        decided = decide(D)
        assert isinstance(decided, Mixture) == (sign < 1)
        assert _proves(decided, D, None, True)


def test_fractions_round_to_the_compiled_values() -> None:
    for name, max_grade in product(NAMES, (1, 3)):
        measure = measures.get(name)
        if measure.binary and max_grade > 1:
            continue
        compiled = measure.graded(max_grade) if measure.family == "err" else measure
        rng = np.random.default_rng(1)
        for _ in range(40):
            order, relevance = rng.permutation(5), rng.integers(0, max_grade + 1, 5)
            exact = exact_value(measure, order.tolist(), relevance.tolist(), max_grade=max_grade)
            assert isinstance(exact, Fraction)
            assert float(exact) == pytest.approx(compiled(order, relevance), abs=1e-13), name


def test_discounts() -> None:
    for name in ("sum_loss", "dcg@3", "precision@2", "ndcg", "auc"):
        measure = measures.get(name)
        exact = [float(d) for d in discounts(measure, 6)]
        np.testing.assert_allclose(exact, measure.discount(6), rtol=1e-15)
    with pytest.raises(ValueError, match="not of the form"):
        discounts(measures.get("err"), 4)


def test_differences_with_a_cut_off_are_decided() -> None:
    def inverse(s: int, cutoff: int) -> Fraction:
        return 1 / sum((log_discount(i) for i in range(1, min(s, cutoff) + 1)), Fraction(0))

    for cutoff, start, order in product((2, 3, 5), (1, 2), range(12)):
        row = [inverse(start + j, cutoff) for j in range(order + 1)]
        while len(row) > 1:
            row = [after - before for before, after in pairwise(row)]
        if start < cutoff and order:
            assert difference_is_nonzero(order, start=start, cutoff=cutoff) == (abs(row[0]) > ROUNDED)
    assert difference_is_nonzero(3, start=2, cutoff=2) is False
    assert difference_is_nonzero(10**5, start=1, cutoff=10**4) is None  # too many terms for the time there is
    with pytest.raises(Undecided, match="a sum of 10000 terms"):
        classify(ranking_game(measure="ndcg@10000", n_items=10**5, k=1))


def test_the_conjecture_holds_as_far_as_the_page_says() -> None:
    # docs/concepts/games.md: n from 2 to 10, m up to 200.
    for n in range(2, 11):
        for m in range(n + 2, 201):
            assert difference_is_nonzero(m - 2, start=1, cutoff=n)
