"""Measures that sum the weight of each position times the gain of its item: sum_loss, dcg, precision."""

from __future__ import annotations

from rankloop.kernels import discounts
from rankloop.kernels.discounts import by_logarithm, by_rank, evenly
from rankloop.measures.measure import Measure

sum_loss = Measure(family="sum_loss", is_loss=True, linear=True, kind=discounts.IDENTITY, weights=by_rank)
"""Sum over items of rank times relevance, ranks counting from 1."""

dcg = Measure(
    family="dcg", is_loss=False, linear=True, kind=discounts.EXP2, cutoffs="optional", weights=by_logarithm
)
"""Discounted cumulative gain: sum over items of (2^relevance - 1) / log2(1 + rank)."""

# Erratum A6: rank <= k, and a sum as in the paper, not a share.
precision = Measure(
    family="precision",
    is_loss=False,
    linear=True,
    kind=discounts.IDENTITY,
    cutoffs="required",
    weights=evenly,
)
"""Sum of the relevance of the first k items, not divided by k."""
