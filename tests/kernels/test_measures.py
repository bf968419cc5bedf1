"""The compiled functions, called the way a compiled loop calls them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankloop import measures
from rankloop.kernels import measures as kernels
from rankloop.measures import Measure
from tests.measures import cases
from tests.measures.cases import SEPARABLE, Floats, Ints, by_name, rankings

quick = settings(max_examples=40)


def expected_gain(measure: Measure, r: Floats, discount: Floats) -> tuple[Floats, float]:
    """The gain and the offset in numpy."""
    s, m = r.sum(), len(r)
    if measure.family in ("sum_loss", "precision"):
        return r, 0.0
    if measure.family == "dcg":
        return 2**r - 1, 0.0
    if measure.family == "ndcg":
        return ((2**r - 1) / (discount @ np.sort(2**r - 1)[::-1]), 0.0) if s > 0 else (r, 1.0)
    n = s * (m - s) if measure.family == "auc" else 1.0
    return (r / n, -s * (s + 1) / 2 / n) if n > 0 else (np.zeros(m), 0.0)


@pytest.mark.parametrize("measure", SEPARABLE, ids=by_name)
@quick
@given(data=st.data())
def test_gain(measure: Measure, data: st.DataObject) -> None:
    _, relevance = data.draw(rankings(1 if measure.family in ("pairwise_loss", "auc") else 4))
    discount, out = measure.discount(len(relevance)), np.full(len(relevance), np.nan)
    offset = kernels.gain(measure.kind, relevance, discount, out)
    g, expected_offset = expected_gain(measure, relevance, discount)
    np.testing.assert_allclose(out, g, rtol=1e-13)
    assert offset == pytest.approx(expected_offset, rel=1e-13)


@pytest.mark.parametrize("n_grades", [2, 31, 80])
@pytest.mark.parametrize("cutoff", [3, 200])
def test_ideal_for_few_and_for_many_grades(n_grades: int, cutoff: int) -> None:
    """Grades are counted off one by one; 0.1 steps keep the powers of two apart."""
    relevance = np.random.default_rng(n_grades).permutation(np.arange(160) % n_grades * 0.1)
    discount = measures.dcg.at(cutoff).discount(160)
    z = discount @ np.sort(2**relevance - 1)[::-1]
    assert kernels.ideal(relevance, discount) == pytest.approx(z, rel=1e-12)


@quick
@given(rankings(max_grade=4), st.integers(1, 15), st.integers(4, 6))
def test_the_rest(case: tuple[Ints, Floats], k: int, top: int) -> None:
    order, relevance = case
    labels = np.minimum(relevance, 1.0)
    ap = cases.average_precision(order, labels, k, 1)
    assert kernels.average_precision(order, labels, k) == pytest.approx(ap, rel=1e-12)
    assert kernels.err(order, relevance, k, top) == pytest.approx(
        cases.err(order, relevance, k, top), rel=1e-12
    )
    assert kernels.pairwise_loss(order, relevance) == cases.pairwise_loss(order, relevance, k, top)
    assert kernels.total(order, relevance, np.ones(len(order))) == relevance.sum()


@pytest.mark.parametrize("r", [0.0, 1e-12, 0.5, 1.0, 1.5, 2.0, 31.0])
def test_exp2_gain(r: float) -> None:
    assert kernels.exp2_gain(r) == pytest.approx(float(np.expm1(r * np.log(2))), rel=1e-13)


@quick
@given(st.lists(st.lists(st.integers(-1, 4), min_size=4, max_size=4), min_size=1, max_size=3))
def test_first_fault(rows: list[list[int]]) -> None:
    faults = [
        i * 4 + j
        for i, row in enumerate(rows)
        for j, item in enumerate(row)
        if item not in range(4) or item in row[:j]
    ]
    assert kernels.first_fault(np.array(rows)) == (faults[0] if faults else -1)


def test_naming_a_measure_starts_no_compiler() -> None:
    program = "import sys; from rankloop.measures import get; get('ndcg@5').discount(9); print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
