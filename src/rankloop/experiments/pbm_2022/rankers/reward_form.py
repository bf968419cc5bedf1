"""FTRL-PBM with the bare reward estimator, -click / x: unbiased, unsafe, and therefore not offered (erratum C14)."""

from __future__ import annotations

from typing import Any

from rankloop.compiled import RankerKernels
from rankloop.kernels.jit import hot
from rankloop.rankers import ftrl_pbm
from rankloop.rankers.ftrl_pbm import WithoutPlan


@hot
def learn_from_rewards(
    params: Any,
    state: Any,
    context: Any,
    scratch: Any,
    items: Any,
    propensities: Any,
    memo: Any,
    feedback: Any,
) -> None:
    """As FTRL-PBM but for the estimate: a click of an item that was unlikely there is a large negative loss."""
    for j in range(len(items)):
        feedback[j] += 1.0  # (1 - (1 + click)) / x = -click / x
    ftrl_pbm.learn_in_full(params, state, context, scratch, items, propensities, memo, feedback)
    for j in range(len(items)):
        feedback[j] -= 1.0


class RewardFTRLPBM(WithoutPlan):
    """To see what goes wrong; use `FTRLPBM`."""

    def __init__(self, *, n_items: int, n_positions: int) -> None:
        super().__init__(n_items=n_items, n_positions=n_positions)
        self.kernels = RankerKernels(ftrl_pbm.rank_in_full, learn_from_rewards)
