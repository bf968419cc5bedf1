"""A reader who goes down the list and stops when satisfied: err."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankloop.measures.inputs import Rows
from rankloop.measures.measure import Measure


def _err(measure: Measure, rows: Rows) -> NDArray[np.float64]:
    from rankloop.kernels import measures as kernels

    m = rows.orders.shape[1]
    cutoff = m if measure.cutoff is None else min(measure.cutoff, m)
    return kernels.err_rows(*rows, cutoff, measure.max_grade or 1)


err = Measure(family="err", is_loss=False, linear=False, cutoffs="optional", score=_err, max_grade=1)
"""Expected reciprocal rank: the mean of 1/rank of the item a reader stops at, or 0 for one who never stops. The
chance to stop at an item is (2^relevance - 1) / 2^max_grade; `err.graded(4)` is for grades 0 to 4."""
