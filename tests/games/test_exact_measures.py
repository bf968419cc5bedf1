"""The measures as fractions agree with the compiled ones."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from rankloop import measures
from rankloop.games.exact_measures import discounts, exact_value
from tests.measures.cases import NAMES


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("max_grade", [1, 3])
def test_fractions_round_to_the_compiled_values(name: str, max_grade: int) -> None:
    measure = measures.get(name)
    if measure.binary and max_grade > 1:
        return
    compiled = measure.graded(max_grade) if measure.family == "err" else measure
    rng = np.random.default_rng(1)
    for _ in range(40):
        order, relevance = rng.permutation(5), rng.integers(0, max_grade + 1, 5)
        exact = exact_value(measure, order.tolist(), relevance.tolist(), max_grade=max_grade)
        assert isinstance(exact, Fraction)
        assert float(exact) == pytest.approx(compiled(order, relevance), abs=1e-13)


@pytest.mark.parametrize("name", ["sum_loss", "dcg@3", "precision@2", "ndcg", "auc"])
def test_discounts(name: str) -> None:
    measure = measures.get(name)
    np.testing.assert_allclose([float(d) for d in discounts(measure, 6)], measure.discount(6), rtol=1e-15)
    with pytest.raises(ValueError, match="not of the form"):
        discounts(measures.get("err"), 4)
