"""FTRL-PBM that also adds up what the bounds of the 2022 paper are made of, and keeps the sums at chosen rounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankloop.compiled import RankerKernels
from rankloop.kernels.jit import hot
from rankloop.rankers import ftrl_pbm
from rankloop.rankers.ftrl_pbm import WithoutPlan


@hot
def learn_and_sum(
    params: Any,
    state: Any,
    context: Any,
    scratch: Any,
    items: Any,
    propensities: Any,
    memo: Any,
    feedback: Any,
) -> None:
    """As FTRL-PBM; x_t is added up before it moves on."""
    sums, marks, kept = scratch[2], scratch[3], scratch[4]
    t, place = state.t[0], np.searchsorted(marks, state.t[0])
    m, n = state.x.shape
    for j in range(m):
        for i in range(n):
            sums[0, j, i] += state.x[j, i]
            sums[1, j, i] += np.sqrt(state.x[j, i] / float(t))
    if place < len(marks) and marks[place] == t:
        for j in range(m):
            for i in range(n):
                kept[place, 0, j, i] = sums[0, j, i]
                kept[place, 1, j, i] = sums[1, j, i]
    ftrl_pbm.learn_in_full(params, state, context, scratch, items, propensities, memo, feedback)


class SummedFTRLPBM(WithoutPlan):
    """FTRL-PBM that has, after a play, the sums of x_t and of sqrt(x_t / t) up to each of the rounds `marks`.

    They are in `kept`, marks x 2 x positions x items. The sums are no state: they are for one play, and one only.
    """

    def __init__(self, *, n_items: int, n_positions: int, marks: NDArray[np.int64]) -> None:
        super().__init__(n_items=n_items, n_positions=n_positions)
        self.kernels = RankerKernels(ftrl_pbm.rank_in_full, learn_and_sum)
        self.marks = marks.astype(np.int64)
        self.sums = np.zeros((2, n_positions, n_items))
        self.kept = np.zeros((len(marks), *self.sums.shape))

    def scratch(self, n: int) -> tuple[Any, ...]:
        # Plain arrays here and not fields of the state: numba keeps the types of arguments with the compiled kernels,
        # and a type from this module would have to be found whenever any FTRL-PBM is loaded.
        return *super().scratch(n), self.sums, self.marks, self.kept
