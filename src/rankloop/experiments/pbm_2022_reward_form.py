"""FTRL-PBM with the bare reward estimator, -click / x: unbiased, unsafe, and therefore not offered (erratum C14)."""

from __future__ import annotations

from typing import Any

from rankloop.compiled import RankerKernels
from rankloop.kernels import ftrl_pbm, tsallis
from rankloop.kernels.jit import hot
from rankloop.rankers import FTRLPBM


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
        state.L_hat[j, items[j]] -= feedback[j] / propensities[j]
    state.t[0] += 1
    t, room = float(state.t[0]), scratch[0]
    if tsallis.newton(t, state.L_hat, state.u, state.v, state.x, state.rows, room) < 0:
        failure = tsallis.recover(t, state.L_hat, state.u, state.v, state.x, state.rows, room)
        state.fallbacks[0] += 1
        state.fallbacks[1] += failure == 2


class RewardFTRLPBM(FTRLPBM):
    """To see what goes wrong; use `FTRLPBM`."""

    def __init__(self, *, n_items: int, n_positions: int) -> None:
        super().__init__(n_items=n_items, n_positions=n_positions)
        self.kernels = RankerKernels(ftrl_pbm.rank, learn_from_rewards)
