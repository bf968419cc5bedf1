"""Gains divided by the most that the relevance allows: ndcg, average_precision."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels import discounts
from rankloop.kernels.discounts import by_logarithm
from rankloop.measures.inputs import Rows
from rankloop.measures.measure import Measure


def _average_precision(measure: Measure, rows: Rows) -> NDArray[np.float64]:
    from rankloop.kernels import measures as kernels

    m = rows.orders.shape[1]
    return kernels.average_precision_rows(*rows, m if measure.cutoff is None else min(measure.cutoff, m))


ndcg = Measure(
    family="ndcg", is_loss=False, linear=False, kind=discounts.NDCG, cutoffs="optional", weights=by_logarithm
)
"""dcg divided by its largest value over all orders, at the same cut-off; 1 when nothing is relevant."""

average_precision = Measure(
    family="average_precision",
    is_loss=False,
    linear=False,
    binary=True,
    cutoffs="optional",
    score=_average_precision,
    max_grade=1,
)
"""Mean over the relevant items of the share of relevant ones down to their rank; 1 when there is none."""
