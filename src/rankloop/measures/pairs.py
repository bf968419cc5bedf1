"""Losses that count the pairs in the wrong order: pairwise_loss, auc."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels import discounts
from rankloop.kernels.discounts import by_rank
from rankloop.measures.inputs import Rows
from rankloop.measures.measure import Measure


def _pairwise_loss(measure: Measure, rows: Rows) -> NDArray[np.float64]:
    from rankloop.kernels import measures as kernels

    return kernels.pairwise_loss_rows(*rows)


pairwise_loss = Measure(
    family="pairwise_loss",
    is_loss=True,
    linear=False,
    kind=discounts.PAIRS,
    weights=by_rank,
    score=_pairwise_loss,
)
"""Number of pairs whose less relevant item stands higher."""

# Erratum A17: a loss, one minus what is usually called AUC.
auc = Measure(
    family="auc", is_loss=True, linear=False, kind=discounts.AUC, binary=True, weights=by_rank, max_grade=1
)
"""pairwise_loss divided by the number of pairs of unequal relevance; 0 when there is none."""
