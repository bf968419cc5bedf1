"""TopFTRL: follow the regularised leader over lists, from the relevance of the top.

G_hat sums unbiased estimates of the gains. The leader p, the mean discount of each item, maximises
p . G_hat - beta |p|^2 / 2 over the permutahedron, and a list with these means is shuffled within nested parts. With
chance explore[l] the item at place l of the order is moved forward to position k, where its relevance is revealed.

The regret of a round is at most `cost`: what a wrong estimate may cost, plus exploration. beta grows by KAPPA cost /
(distance of the leader to a fixed list), so the regulariser costs at most KAPPA times as much. The page
docs/rankers/TopFTRL.md derives all that. Arrays of the state are by place in the order, but for G_hat.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.jit import hot
from rankloop.kernels.measures import exp2_gain
from rankloop.kernels.permutahedron import (
    chance,
    draw_places,
    find_breaks,
    first_chances,
    lead,
    plant,
    sort_again,
)
from rankloop.kernels.random import uniform

KAPPA = 0.15  # the share of a round's cost that the regulariser may cost
NEAREST = 0.1  # of the largest distance: nearer to a fixed list than that, beta grows no faster
CAUTION = 1.3  # what exploration is taken to cost, as a multiple of the most that it can


class TopFTRLParams(NamedTuple):
    """The measure, and what feedback means."""

    f: NDArray[np.float64]  # discounts, falling; the last is 0
    k: int
    exponential: bool  # g(r) = 2**r - 1 instead of r
    largest_gain: float
    farthest: float  # the distance of the even mixture of all lists to a fixed list


class TopFTRLState(NamedTuple):
    """What was learnt, and the lists that follow from it."""

    t: NDArray[np.int64]  # rounds learnt
    G_hat: NDArray[np.float64]  # by item
    beta: NDArray[np.float64]
    order: NDArray[np.int64]  # items by falling G_hat
    breaks: NDArray[np.float64]  # until which u there is a break after this place
    explore: NDArray[np.float64]  # the chance that this place is moved forward
    observed: NDArray[np.float64]  # the chance that the relevance of this place is counted
    cost: NDArray[np.float64]  # bound on the regret of the next round


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """A list with the leader's means, one item perhaps moved forward. Memo: the chance that each one counts, or 0."""
    _, tree, places, _ = scratch
    m, k = len(items), params.k
    draw_places(state.breaks, uniform(key, 0), key, places)
    plant(state.breaks, state.explore, tree)
    left = uniform(key, 1)
    explored: bool = left < tree.before[m]
    moved = -1
    if explored:
        moved = m - 1
        for place in range(m):
            left -= state.explore[place]
            if left < 0.0:
                moved = place
                break
        _move_forward(moved, k - 1, places)
    for position in range(m):
        place = places[position]
        items[position] = state.order[place]
        found = chance(state.breaks, state.explore, k, place, position, tree)
        propensities[position] = min(max(found, 1e-300), 1.0)
    for position in range(k):
        place = places[position]
        counts = not explored or place == moved or position < k - 1
        memo[0][position] = state.observed[place] if counts else 0.0
    return explored


@hot
def _move_forward(place: int, to: int, places: Any) -> None:
    position = 0
    while places[position] != place:
        position += 1
    while position > to:
        places[position] = places[position - 1]
        position -= 1
        places[position] = place


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
    """Add the estimates, let beta grow, and find the next leader."""
    half = 0.5 * params.largest_gain
    for position in range(params.k):
        if memo[0][position] > 0.0:
            gain = exp2_gain(feedback[position]) if params.exponential else feedback[position]
            state.G_hat[items[position]] += (gain - half) / memo[0][position]
    state.t[0] += 1
    sort_again(state.G_hat, state.order)
    if params.farthest > 0.0:
        state.beta[0] = _next_beta(params, state, scratch[0])
    prepare(params, state, scratch)


@hot
def _next_beta(params: Any, state: Any, room: Any) -> Any:
    # The distance grows with beta, so the second step is the smaller one, and its product with the distance at its end
    # is at most KAPPA * cost.
    beta, nearest = state.beta[0], NEAREST * params.farthest
    grown = beta
    for _ in range(2):
        distance = lead(state.G_hat, state.order, params.f, grown, room)
        grown = beta + KAPPA * state.cost[0] / max(distance, nearest)
    return grown


@hot
def prepare(params: Any, state: Any, scratch: Any) -> None:
    """The lists of the next round, from G_hat, order and beta."""
    room, _, _, (first, before) = scratch
    m, k = len(params.f), params.k
    beta = state.beta[0]
    lead(state.G_hat, state.order, params.f, beta, room)
    find_breaks(params.f, room, state.breaks)
    first_chances(state.breaks, k, first)
    first_chances(state.breaks, k - 1, before)
    for place in range(m):
        state.observed[place] = least_chance(params, beta, place, room)
    total = _share_exploration(state.observed, first, state.explore)
    cost = 0.0
    for place in range(m):
        own = state.explore[place]
        state.observed[place] = (1.0 - total) * first[place] + own + (total - own) * before[place]
        state.observed[place] = min(state.observed[place], 1.0)
        cost += state.observed[place] * beta * _instability(params, beta, place, room, state.observed[place])
        cost += CAUTION * own * params.largest_gain * min(params.f[0] - room.p[place], params.f[k - 1])
    state.cost[0] = cost


@hot
def _slack(params: Any, place: int, room: Any) -> Any:
    # How far an estimate, divided by beta, may move before other blocks notice; and how far p can move until then.
    first, last = room.first[place], room.last[place]
    slack = 1e100
    if first > 0:
        slack = min(slack, room.level[first - 1] - room.level[place])
    if last < len(params.f) - 1:
        slack = min(slack, room.level[place] - room.level[last + 1])
    reach = max(params.f[first] - room.p[place], room.p[place] - params.f[last])
    return slack if params.k == 1 else 0.5 * slack, max(reach, 0.0)


@hot
def least_chance(params: Any, beta: float, place: int, room: Any) -> float:
    """The chance of being observed that minimises what a wrong estimate of this place and its exploration cost."""
    times = 1.0 if params.k == 1 else 2.0
    slack, reach = _slack(params, place, room)
    cost = CAUTION * params.largest_gain * params.f[0]
    square = 2.0 * times * beta * cost
    if reach < slack and beta * reach * reach < 2.0 * times * cost:
        square += beta * beta * (slack - reach) * (slack + reach)
    return times * 0.5 * params.largest_gain / np.sqrt(square) if square > 0.0 else 0.0


@hot
def _instability(params: Any, beta: float, place: int, room: Any, observed: float) -> Any:
    # What an estimate of half the largest gain / observed may add to the regret, divided by beta.
    times = 1.0 if params.k == 1 else 2.0
    slack, reach = _slack(params, place, room)
    delta = times * 0.5 * params.largest_gain / (observed * beta)
    if reach >= slack or delta <= reach:
        found = 0.5 * delta * delta
    else:
        found = reach * delta - 0.5 * reach * reach
        if delta > slack:
            found += 0.5 * (delta - slack) ** 2
    return found / times


@hot
def _share_exploration(least: Any, first: Any, explore: Any) -> float:
    # explore[l] = max(0, least[l] - (1 - total) first[l]) with total their sum: those above zero only become more as
    # the total grows.
    m, total = len(least), 0.0
    for _ in range(m + 1):
        wanted, there = 0.0, 0.0
        for place in range(m):
            if least[place] > (1.0 - total) * first[place]:
                wanted += least[place]
                there += first[place]
        found = (wanted - there) / (1.0 - there) if there < 1.0 else 0.0
        found = min(max(found, 0.0), 1.0)
        if found <= total:
            break
        total = found
    summed = 0.0
    for place in range(m):
        explore[place] = max(0.0, least[place] - (1.0 - total) * first[place])
        summed += explore[place]
    return summed


@hot
def chances_of(params: Any, state: Any, scratch: Any, place: int, row: Any) -> None:
    """Write the chance of `place` at each position of the next list."""
    tree = scratch[1]
    plant(state.breaks, state.explore, tree)
    for position in range(len(row)):
        row[position] = chance(state.breaks, state.explore, params.k, place, position, tree)
