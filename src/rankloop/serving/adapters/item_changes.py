"""Items that come and go while a ranker runs: how what was learnt is carried into a ranker with other items.

A newcomer starts level with the best item: it is shown near the top and sinks if it does not hold. Rankers here
compare *sums* over time, so one that began at zero, or in the middle, would have to outlive the past of the others
before it was seen. Exploration treats it like any other from the first round.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankloop.base import Ranker, Ranking

Origin = NDArray[np.int64]  # of each new item: its number before, -1 for a newcomer


def carry(old: Ranker, new: Ranker, origin: Origin) -> None:
    """Fill the fresh ranker `new` with what `old` knows; ValueError where the algorithm has no way to do that."""
    move = _CARRIERS.get(type(old).__name__)
    if move is None:
        raise ValueError(f"{type(old).__name__} cannot change its items while it runs")
    move(old, new, origin)


def sums(values: NDArray[np.float64], origin: Origin) -> NDArray[np.float64]:
    """Summed gains for the new items: kept where known, the largest for newcomers.

    >>> sums(np.array([3.0, 1.0]), np.array([1, -1]))
    array([1., 3.])
    """
    carried = values[np.maximum(origin, 0)] if len(values) else np.zeros(len(origin))
    return np.where(origin >= 0, carried, values.max() if len(values) else 0.0)


def _carry_rtop1f(old: Any, new: Any, origin: Origin) -> None:
    # The new blocks have another length: sums count blocks, so they are counted anew, as when a horizon doubles.
    epoch = min(int(old.state.epoch[0]), len(new.params.horizons) - 1)
    length = _block_length(old, int(old.state.epoch[0])) / _block_length(new, epoch)
    new.state.s_hat[:] = sums(old.state.s_hat * length, origin)
    t = min(int(old.state.t[0]), int(new.params.horizons[epoch]))
    # A fresh block: what the present one has seen so far is of other slots.
    block = int(t / _block_length(new, epoch))
    while _block_end(new, epoch, block) - t < new.n_slots:
        block += 1
    new.state.epoch[0], new.state.block[0], new.state.t[0] = epoch, block, t
    new.state.left[0] = _block_end(new, epoch, block) - t


def _block_length(ranker: Any, epoch: int) -> float:
    return float(ranker.params.horizons[epoch] / ranker.params.blocks[epoch])


def _block_end(ranker: Any, epoch: int, block: int) -> int:
    return (block + 1) * int(ranker.params.horizons[epoch]) // int(ranker.params.blocks[epoch])


def _carry_ftpl(old: Any, new: Any, origin: Origin) -> None:
    new.state.r_sum[:] = sums(old.state.r_sum, origin)
    new.state.t[:] = old.state.t


def _carry_ftrl_pbm(old: Any, new: Any, origin: Origin) -> None:
    # Losses, so the best is the least. Where all items are shown, positions come and go with them.
    there = np.minimum(np.arange(new.n_positions), old.n_positions - 1)
    new.state.L_hat[:] = -np.stack([sums(-old.state.L_hat[j], origin) for j in there])
    for name in ("seen", "lost"):
        known = getattr(old.state, name)
        if known.size:
            getattr(new.state, name)[:] = np.where(origin >= 0, known[there][:, np.maximum(origin, 0)], 0.0)
    new.state.t[:] = old.state.t
    _settle(new)


def _settle(ranker: Any) -> None:
    """The leader that follows from the losses; usually `learn` finds it."""
    from rankloop.kernels.solvers import tsallis

    state, t = ranker.state, float(ranker.state.t[0])
    room = ranker.scratch(ranker.n_positions)[0]
    if tsallis.newton(t, state.L_hat, state.u, state.v, state.x, state.rows, room) < 0:
        tsallis.recover(t, state.L_hat, state.u, state.v, state.x, state.rows, room)


_CARRIERS: dict[str, Callable[[Any, Any, Origin], None]] = {
    "RTop1F": _carry_rtop1f,
    "FTPL": _carry_ftpl,
    "FTRLPBM": _carry_ftrl_pbm,
}


def translate(ranker: Any, ranking: Ranking, before: Origin) -> Ranking | None:
    """A ticket from before the items changed, for the ranker as it is now; None where it tells nothing.

    before: of each shown position, the item's number now, -1 where it was retired.
    """
    kind = type(ranker).__name__
    if kind == "FTRLPBM" and len(before) == ranker.n_positions and (before >= 0).all():
        return Ranking(before, ranking.propensities, ranking.memo, ranking.explored)
    if kind != "RTop1F" or before[0] < 0:
        return None
    kept = before[before >= 0]
    rest = np.setdiff1d(np.arange(ranker.n_positions), kept)
    memo = tuple(part.copy() for part in ranking.memo)
    if ranker.params.k > 1:
        memo[0][0] = 0.0  # slots are other items now: the round counts, what was explored does not
    return Ranking(np.concatenate([kept, rest]).astype(np.int64), None, memo, ranking.explored)
