"""RTop-1F (2015, Algorithm 1): blocked follow-the-perturbed-leader from the relevance of the top.

The paper draws, at the start of a block, one round for each object. Here every round decides for itself: with n
slots still to explore and l rounds left in the block, explore with probability n / l, a slot drawn evenly from
those left. That is selection sampling: the same law, but nothing has to be remembered between rank and learn, so
rankings may overlap and feedback may come late.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.jit import apart, hot, inlined
from rankloop.kernels.measures import exp2_gain
from rankloop.kernels.random import below, shuffle, uniform
from rankloop.kernels.sorting import by_falling_score

KEEP_REST = 0
RANDOM = 1


class Top1Params(NamedTuple):
    """T, K and 1/epsilon of each epoch (one epoch when the horizon is known), and what feedback means."""

    horizons: NDArray[np.int64]
    blocks: NDArray[np.int64]
    reaches: NDArray[np.float64]  # 1/epsilon
    k: int
    explore: int
    exponential: bool  # g(r) = 2**r - 1 instead of r


class Top1State(NamedTuple):
    """The position in the block, the block's estimate (r_hat), and the sum of all earlier blocks' estimates (s_hat)."""

    epoch: NDArray[np.int64]
    block: NDArray[np.int64]
    t: NDArray[np.int64]
    left: NDArray[np.int64]  # rounds left in this block; below zero while it waits for feedback
    s_hat: NDArray[np.float64]
    r_hat: NDArray[np.float64]
    slots: NDArray[np.int64]  # the first n_open of them are still to be explored in this block
    n_open: NDArray[np.int64]


@inlined
def block_end(params: Any, epoch: int, block: int) -> Any:
    """How many rounds of the epoch have passed when `block`, counted from 0, ends: (block + 1) T // K (erratum A10)."""
    length, rest = divmod(params.horizons[epoch], params.blocks[epoch])
    return (block + 1) * length + (block + 1) * rest // params.blocks[epoch]


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """Alg. 1, lines 11-19. The memo is the chance with which this slot was explored now; 0 where nothing was."""
    explored: bool = uniform(key, 0) * state.left[0] < state.n_open[0]
    if explored and params.explore == RANDOM:
        shuffle(key, 2, len(items), items)
    else:
        _perturbed_leader(params, state, key, scratch, items)
    memo[0][0] = 0.0
    if explored:
        _explore(params, state, key, scratch, items, memo)
    return explored


@inlined
def _perturbed_leader(params: Any, state: Any, key: Any, scratch: Any, items: Any) -> None:
    scores, room = scratch
    reach = params.reaches[state.epoch[0]]
    for i in range(len(items)):
        scores[i] = state.s_hat[i] + reach * uniform(key, 2 + i)  # lines 16-17
    by_falling_score(scores, len(items), items, room)  # lines 18-19, erratum A3


@apart
def _explore(params: Any, state: Any, key: Any, scratch: Any, items: Any, memo: Any) -> None:
    # Lines 12-13. Apart from `rank`, because the rounds that do not explore are quicker without it.
    slot = state.slots[below(key, 1, state.n_open[0])]
    _to_front(slot * params.k, params.k, items, scratch[1])  # erratum A12
    memo[0][0] = 1.0 / max(state.left[0], state.n_open[0])


@inlined
def _to_front(first: int, k: int, items: Any, moved: Any) -> None:
    # Items first .. first+k-1 move to the front; among themselves and among the rest the order stays.
    n_moved = 0
    to = len(items) - 1
    for position in range(len(items) - 1, -1, -1):
        item = items[position]
        if first <= item < first + k:
            moved[n_moved] = item
            n_moved += 1
        else:
            items[to] = item
            to -= 1
    for i in range(n_moved):
        items[i] = moved[n_moved - 1 - i]


@hot
def learn(
    params: Any,
    state: Any,
    context: Any,
    scratch: Any,
    items: Any,
    propensities: Any,
    memo: Any,
    feedback: Any,
) -> None:
    """Alg. 1, lines 14, 21 and 7."""
    slot = items[0] // params.k
    for place in range(state.n_open[0] if memo[0][0] > 0.0 else 0):
        if state.slots[place] == slot:
            for i in range(min(params.k, len(items) - slot * params.k)):
                gain = exp2_gain(feedback[i]) if params.exponential else feedback[i]
                state.r_hat[items[i]] = gain
            last = state.n_open[0] - 1
            state.slots[place] = state.slots[last]
            state.slots[last] = slot
            state.n_open[0] = last
            break
    state.t[0] += 1
    state.left[0] -= 1
    if state.left[0] <= 0 and state.n_open[0] == 0:
        _close_block(params, state)


@apart
def _close_block(params: Any, state: Any) -> None:
    for i in range(len(state.s_hat)):
        state.s_hat[i] += state.r_hat[i]  # line 7
    state.n_open[0] = len(state.slots)
    if state.epoch[0] + 1 < len(params.horizons) and state.t[0] >= params.horizons[state.epoch[0]]:
        _double(params, state)
    while state.left[0] <= 0:
        state.block[0] += 1
        state.left[0] = block_end(params, state.epoch[0], state.block[0]) - state.t[0]


@apart
def _double(params: Any, state: Any) -> None:
    epoch = state.epoch[0]
    # s_hat counts blocks; re-count the past in blocks of the new length, so that it keeps its weight.
    old_length = params.horizons[epoch] / params.blocks[epoch]
    new_length = params.horizons[epoch + 1] / params.blocks[epoch + 1]
    for i in range(len(state.s_hat)):
        state.s_hat[i] *= old_length / new_length
    state.epoch[0] += 1
    state.t[0] = 0
    state.block[0] = -1  # none yet
