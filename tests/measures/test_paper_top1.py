"""The numbers printed in Chaudhuri and Tewari (2015): Table 1 and the vectors in the proof of Lemma 11."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from numpy.typing import NDArray

from rankloop import measures
from rankloop.measures import Measure

LOG2_3 = np.log2(3.0)

# Rows: the rank of objects 1, 2, 3. Columns: the relevance of objects 1, 2, 3.
TABLE_1 = """
      000 001 010 011 100 101 110 111
 123    0   3   2   5   1   4   3   6
 132    0   2   3   5   1   3   4   6
 213    0   3   1   4   2   5   3   6
 231    0   1   3   4   2   3   5   6
 312    0   2   1   3   3   5   4   6
 321    0   1   2   3   3   4   5   6
"""

# Erratum A18: the list is missing in the text and was recovered from the signal matrices.
RECOVERED = "0000 0001 0010 0100 1000 0011 0101 1001 0110 1010 1100 0111 1011 1101 1110 1111"


def digits(text: str) -> list[int]:
    return [int(digit) for digit in text]


def order_of(ranks: str) -> list[int]:
    """The paper gives each object's rank, an order gives each rank's object."""
    return [ranks.index(str(rank)) for rank in range(1, len(ranks) + 1)]


def row(measure: Measure, ranks: str, columns: list[str]) -> NDArray[np.float64]:
    return np.asarray(measure(order_of(ranks), [digits(column) for column in columns]))


@pytest.mark.judges("2015-011")
def test_table_1_in_full() -> None:
    header, *rows = TABLE_1.strip().splitlines()
    columns = header.split()
    assert len(columns) == 8
    assert len(rows) == 6
    for ranks, *losses in (line.split() for line in rows):
        assert row(measures.sum_loss, ranks, columns).tolist() == [float(loss) for loss in losses]


@pytest.mark.judges("2015-004")
def test_reading_table_1_as_orders_would_be_wrong() -> None:
    """Erratum A2: 231 and 312 are each other's inverse, so mixing the two readings up swaps two rows."""
    assert order_of("231") == [2, 0, 1]
    assert measures.sum_loss(order_of("231"), [0, 0, 1]) == 1
    assert measures.sum_loss([1, 2, 0], [0, 0, 1]) == 2


def three_objects() -> list[str]:
    return TABLE_1.split()[:8]


def test_lemma_11_ndcg() -> None:
    first, last = (row(measures.ndcg, ranks, three_objects()) for ranks in ("123", "321"))
    two_of_three = 3 / (2 * (1 + 1 / LOG2_3))
    half_lost = (1 + LOG2_3 / 2) / (1 + LOG2_3)
    np.testing.assert_allclose(first, [1, 1 / 2, 1 / LOG2_3, half_lost, 1, two_of_three, 1, 1], rtol=1e-14)
    np.testing.assert_allclose(last, [1, 1, 1 / LOG2_3, 1, 1 / 2, two_of_three, half_lost, 1], rtol=1e-14)
    c = LOG2_3 / (2 * (1 + LOG2_3))
    np.testing.assert_allclose(first - last, [0, -1 / 2, 0, -c, 1 / 2, 0, c, 0], atol=1e-14)


def test_lemma_11_map() -> None:
    first, last = (row(measures.average_precision, ranks, three_objects()) for ranks in ("123", "321"))
    np.testing.assert_allclose(first, [1, 1 / 3, 1 / 2, 7 / 12, 1, 5 / 6, 1, 1], rtol=1e-14)
    np.testing.assert_allclose(last, [1, 1, 1 / 2, 1, 1 / 3, 5 / 6, 7 / 12, 1], rtol=1e-14)
    np.testing.assert_allclose(first - last, [0, -2 / 3, 0, -5 / 12, 2 / 3, 0, 5 / 12, 0], atol=1e-14)


def test_lemma_11_auc() -> None:
    first, last = (row(measures.auc, ranks, RECOVERED.split()) for ranks in ("1234", "4321"))
    third, half, quarter = 1 / 3, 1 / 2, 1 / 4
    printed = [0, 1, 2 / 3, third, 0, 1, 3 / 4, half, half, quarter, 0, 1, 2 / 3, third, 0, 0]
    assert first.tolist() == printed
    printed = [0, 0, third, 2 / 3, 1, 0, quarter, half, half, 3 / 4, 1, 0, third, 2 / 3, 1, 0]
    assert last.tolist() == printed
    printed = [0, 1, third, -third, -1, 1, half, 0, 0, -half, -1, 1, third, -third, -1, 0]
    np.testing.assert_allclose(first - last, printed, atol=1e-15)


@pytest.mark.judges("2015-012", "2015-053")
@pytest.mark.parametrize("n_items", [1, 2, 3, 4, 5])
def test_sum_loss_exceeds_pairwise_loss_by_a_constant_for_binary_relevance(n_items: int) -> None:
    orders = list(permutations(range(n_items)))
    for relevance in product([0, 1], repeat=n_items):
        s = sum(relevance)
        difference = measures.sum_loss(orders, relevance) - measures.pairwise_loss(orders, relevance)
        assert np.all(difference == s * (s + 1) / 2)
        assert measures.pairwise_loss.offset(relevance) == -s * (s + 1) / 2


@pytest.mark.judges("2015-008", "2015-012")
def test_but_not_for_graded_relevance() -> None:
    """Erratum A4: with grades 0, 1, 2 and three items the difference depends on the order for 12 of 27 vectors."""
    orders = list(permutations(range(3)))
    depends = [
        np.ptp(measures.sum_loss(orders, relevance) - measures.pairwise_loss(orders, relevance)) > 0
        for relevance in product([0, 1, 2], repeat=3)
    ]
    assert sum(depends) == 12
