"""The measures as fractions agree with the compiled ones, and swaps with what exchanging two items does."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from rankloop import measures
from rankloop.games.exact_measures import discounts, exact_value
from rankloop.games.swaps import Swaps
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


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("m", [2, 3, 5])
def test_a_swap_is_worth_what_its_terms_say_in_every_outcome(name: str, m: int) -> None:
    measure = measures.get(name)
    swaps = Swaps(measure, m)
    table = swaps.terms.table(max(0, m - 2))
    changing = {boundary.rank: boundary.scale for boundary in swaps.boundaries}
    for rank in range(1, m):
        swapped = list(range(m))
        swapped[rank - 1], swapped[rank] = rank, rank - 1
        for r in product((0, 1), repeat=m):
            change = exact_value(measure, range(m), r) - exact_value(measure, swapped, r)
            t, u = sum(r[: rank - 1]), sum(r[rank + 1 :])
            wanted = changing.get(rank, 0) * (r[rank - 1] - r[rank]) * table[t][u]
            assert float(change) == pytest.approx(
                float(wanted), abs=1e-30
            )  # 1/Z is rounded to 256 digits or more
