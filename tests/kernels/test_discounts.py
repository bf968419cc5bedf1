"""Discounts by rank, by hand."""

from __future__ import annotations

import math

import numpy as np

from rankloop.kernels import discounts


def test_dcg_divides_by_the_logarithm_of_one_more_than_the_rank() -> None:
    expected = [1 / math.log2(1 + rank) for rank in range(1, 8)]
    np.testing.assert_allclose(discounts.by_logarithm(7), expected, rtol=1e-15)
    assert discounts.by_logarithm(3)[2] == 0.5
    assert discounts.by_logarithm(7)[6] == 1 / 3
    np.testing.assert_array_equal(discounts.by_logarithm(3_000)[:2_000], discounts.by_logarithm(2_000))


def test_the_others() -> None:
    assert discounts.by_rank(3).tolist() == [1.0, 2.0, 3.0]
    assert discounts.evenly(2).tolist() == [1.0, 1.0]
