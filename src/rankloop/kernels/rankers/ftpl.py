"""Follow the perturbed leader (Kalai and Vempala 2005) over rankings, with every relevance revealed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.jit import hot
from rankloop.kernels.measures import exp2_gain, gain, is_binary
from rankloop.kernels.random import uniform
from rankloop.kernels.sorting import by_falling_score


class FTPLParams(NamedTuple):
    """The measure's gain, and how far the perturbations reach: 1/epsilon = reach * sqrt(rounds)."""

    reach: float  # in units of the square root of the rounds
    horizon: int  # the rounds, or 0 for those so far
    exponential: bool  # whether a gain is 2^r - 1
    kind: int  # which gain, where it is divided by a number that depends on all labels: of NDCG or of AUC
    discount: NDArray[np.float64]  # by position, which NDCG's divisor needs


class FTPLState(NamedTuple):
    """What users wanted so far."""

    t: NDArray[np.int64]  # rounds learnt
    r_sum: NDArray[np.float64]  # by item: its summed (transformed) relevance


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """M(r_{1:t} + p_t), p_t uniform in [0, 1/epsilon]^m."""
    scores, room = scratch
    reach = params.reach * np.sqrt(params.horizon if params.horizon > 0 else state.t[0] + 1)
    for i in range(len(items)):
        scores[i] = state.r_sum[i] + reach * uniform(key, i)
    by_falling_score(scores, len(items), items, room)
    return False


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
    """r_{1:t} = r_{1:t-1} + r_t."""
    state.t[0] += 1
    exponential = params.exponential and not is_binary(feedback)
    for position in range(len(items)):
        relevance = feedback[position]
        state.r_sum[items[position]] += exp2_gain(relevance) if exponential else relevance


@hot
def learn_normalised(
    params: Any,
    state: Any,
    context: Any,
    scratch: Any,
    items: Any,
    propensities: Any,
    memo: Any,
    feedback: Any,
) -> None:
    """g_{1:t} = g_{1:t-1} + g(r_t), where g divides by what the best order is worth (NDCG), or by the pairs (AUC)."""
    gains = scratch[0]
    state.t[0] += 1
    gain(params.kind, feedback, params.discount, gains)
    for position in range(len(items)):
        state.r_sum[items[position]] += gains[position]
