"""TopFTRL: rank fixed items from the relevance of the top, without a horizon, among friends and adversaries.

G_hat sums unbiased estimates of the gains. The leader p, the mean discount of each item, maximises p . G_hat - beta
|p|^2 / 2 over the permutahedron, and a list with these means is shuffled within nested parts. With chance
explore[l] the item at place l of the order is moved forward to position k, where its relevance is revealed.

The regret of a round is at most `cost`: what a wrong estimate may cost, plus exploration. beta grows by KAPPA cost
/ (distance of the leader to a fixed list), so the regulariser costs at most KAPPA times as much. The page
docs/rankers/TopFTRL.md derives all that. Arrays of the state are by place in the order, but for G_hat.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankloop.arguments import numbers, whole
from rankloop.base import Array, Floats, Ints, Memo, Ranking
from rankloop.compiled import RankerKernels
from rankloop.feedback import TopK
from rankloop.kernels import permutahedron
from rankloop.kernels.elementary import log, power
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
from rankloop.measures import Measure
from rankloop.rankers.candidates import SumsByItem, with_newcomers
from rankloop.rankers.constants import learnable
from rankloop.servable import carried_sums

KAPPA = 0.15  # the share of a round's cost that the regulariser may cost
NEAREST = 0.1  # of the largest distance: nearer to a fixed list than that, beta grows no faster
CAUTION = 1.3  # what exploration is taken to cost, as a multiple of the most that it can
STEADY = 2.0  # A: the variance of a lead L that is learnt by round t grows by at most 2 L^2 / (A t) a round
SHORTEST = 2.0  # no single observation moves a lead by more than one part in so many
# Of the bound where users stay, which needs STEADY = 2: E[(t/D)^2] <= NEAR_SQUARED / gap^2 and E[t/D] <= NEAR / gap.
NEAR_SQUARED, NEAR = 192.0, 13.9
BAD = 31_100.0  # rounds to the power 2/3 in which two items are not clear, in units of Y z / gap^2


class TopFTRLParams(NamedTuple):
    """The measure, and what feedback means."""

    f: Floats  # discounts, falling; the last is 0
    k: int
    exponential: bool  # g(r) = 2**r - 1 instead of r
    largest_gain: float
    farthest: float  # the distance of the even mixture of all lists to a fixed list


class TopFTRLState(NamedTuple):
    """What was learnt, and the lists that follow from it."""

    t: Ints  # rounds learnt
    G_hat: Floats  # by item
    beta: Floats
    order: Ints  # items by falling G_hat
    breaks: Floats  # until which u there is a break after this place
    explore: Floats  # the chance that this place is moved forward
    observed: Floats  # the chance that the relevance of this place is counted
    cost: Floats  # bound on the regret of the next round


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
    params: Any, state: Any, context: Any, scratch: Any, items: Any, propensities: Any, memo: Any, labels: Any
) -> None:
    """Add the estimates, let beta grow, and find the next leader."""
    half = 0.5 * params.largest_gain
    for position in range(params.k):
        if memo[0][position] > 0.0:
            gain = exp2_gain(labels[position]) if params.exponential else labels[position]
            state.G_hat[items[position]] += (gain - half) / memo[0][position]
    state.t[0] += 1
    sort_again(state.G_hat, state.order)
    if params.farthest > 0.0:
        state.beta[0] = _next_beta(params, state, scratch[0])
    prepare(params, state, scratch)


@hot
def _next_beta(params: Any, state: Any, scratch: Any) -> Any:
    # The distance grows with beta, so the second step is the smaller one, and its product with the distance at its end
    # is at most KAPPA * cost.
    beta, nearest = state.beta[0], NEAREST * params.farthest
    grown = beta
    for _ in range(2):
        distance = lead(state.G_hat, state.order, params.f, grown, scratch)
        grown = beta + KAPPA * state.cost[0] / max(distance, nearest)
    return grown


@hot
def prepare(params: Any, state: Any, scratch: Any) -> None:
    """The lists of the next round, from G_hat, order and beta."""
    leader, _, _, (first, before) = scratch
    m, k = len(params.f), params.k
    beta = state.beta[0]
    lead(state.G_hat, state.order, params.f, beta, leader)
    find_breaks(params.f, leader, state.breaks)
    first_chances(state.breaks, k, first)
    first_chances(state.breaks, k - 1, before)
    for place in range(m):
        least = least_chance(params, beta, place, leader)
        state.observed[place] = max(least, _steady_chance(params, state, place))
    total = _share_exploration(state.observed, first, state.explore)
    cost = 0.0
    for place in range(m):
        own = state.explore[place]
        state.observed[place] = (1.0 - total) * first[place] + own + (total - own) * before[place]
        state.observed[place] = min(state.observed[place], 1.0)
        cost += (
            state.observed[place] * beta * _instability(params, beta, place, leader, state.observed[place])
        )
        cost += CAUTION * own * params.largest_gain * min(params.f[0] - leader.p[place], params.f[k - 1])
    state.cost[0] = cost


@hot
def _slack(params: Any, place: int, scratch: Any) -> Any:
    # How far an estimate, divided by beta, may move before other blocks notice; and how far p can move until then.
    first, last = scratch.first[place], scratch.last[place]
    slack = 1e100
    if first > 0:
        slack = min(slack, scratch.level[first - 1] - scratch.level[place])
    if last < len(params.f) - 1:
        slack = min(slack, scratch.level[place] - scratch.level[last + 1])
    reach = max(params.f[first] - scratch.p[place], scratch.p[place] - params.f[last])
    return slack if params.k == 1 else 0.5 * slack, max(reach, 0.0)


@hot
def least_chance(params: Any, beta: float, place: int, scratch: Any) -> float:
    """The chance of being observed that minimises what a wrong estimate of this place and its exploration cost."""
    times = 1.0 if params.k == 1 else 2.0
    slack, reach = _slack(params, place, scratch)
    cost = CAUTION * params.largest_gain * params.f[0]
    square = 2.0 * times * beta * cost
    if reach < slack and beta * reach * reach < 2.0 * times * cost:
        square += beta * beta * (slack - reach) * (slack + reach)
    return times * 0.5 * params.largest_gain / np.sqrt(square) if square > 0.0 else 0.0


@hot
def _steady_chance(params: Any, state: Any, place: int) -> float:
    """The chance of being observed that keeps a lead from being lost to few observations.

    Never more than what an item needs whose place is not clear at all, so that the cost of a round is never larger.
    """
    times = 1.0 if params.k == 1 else 2.0
    largest = times * 0.5 * params.largest_gain
    if params.f[0] <= 0.0:
        return 0.0
    most = largest / np.sqrt(2.0 * times * state.beta[0] * CAUTION * params.largest_gain * params.f[0])
    own, ahead = state.G_hat[state.order[place]], 1e300
    if place > 0:
        ahead = state.G_hat[state.order[place - 1]] - own
    if place < len(params.f) - 1:
        ahead = min(ahead, own - state.G_hat[state.order[place + 1]])
    if ahead <= 0.0:
        return float(most)
    steady = STEADY * largest * (state.t[0] + 1.0) / ahead
    return float(min(most, max(steady, SHORTEST) * largest / ahead))


@hot
def _instability(params: Any, beta: float, place: int, scratch: Any, observed: float) -> Any:
    # What an estimate of half the largest gain / observed may add to the regret, divided by beta.
    times = 1.0 if params.k == 1 else 2.0
    slack, reach = _slack(params, place, scratch)
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


_LEAST_CHANCE = 1e-100  # a ticket with less was not issued by this ranker


class TopFTRL(SumsByItem):
    """Follow the regularised leader over lists, exploring only what is not clear yet.

    Each round draws a list whose mean discounts maximise the gains estimated so far minus a regulariser. Items whose
    place is clear stand there for sure, the others are shuffled with their neighbours. Now and then an item that would
    be seen too seldom is moved to the top: the less clear its place, the more often. Regret of order T^(2/3) whatever
    users do, of order log T where they come from one population, and no horizon, rate or share of exploration to
    choose.

    Parameters
    ----------
    n_items : int
        How many items there are, m.
    measure : str or Measure, optional
        "sum_loss", "pairwise_loss", "dcg" or "precision@k" (also "dcg@k"): the measure of the ranking.
    k : int, optional
        How many top items reveal their relevance. An item to explore then moves to position k, not to the top.
    max_grade : int, optional
        The largest relevance that can come back, n; 1 for binary relevance.

    Notation
    --------
    m: n_items, G_hat: state.G_hat, beta_t: state.beta, f: params.f, G: params.largest_gain, gamma: state.explore,
    P: state.observed, s_t: state.cost, kappa, delta and c: `KAPPA`,
    `NEAREST` and `CAUTION` of `rankloop.rankers.top_ftrl`.

    Departures
    ----------
    Stability-penalty matching of Tsuchiya and Ito (2024) for lists is ours: Euclidean regulariser on the permutahedron,
    exploration by item, and an implicit step of beta, so that no condition on the growth of the regulariser is needed.
    t counts the rounds with feedback.

    References
    ----------
    T. Tsuchiya and S. Ito, A simple and adaptive learning rate for FTRL in online learning with minimax regret of
    Theta(T^(2/3)) and its application to best-of-both-worlds, NeurIPS 2024.
    S. Chaudhuri and A. Tewari, Online ranking with top-1 feedback, AISTATS 2015.

    Examples
    --------
    >>> ranker = TopFTRL(n_items=4, measure="dcg")
    >>> rng = np.random.default_rng(1)
    >>> shown = ranker.rank(rng=rng)
    >>> shown.propensities
    array([0.25, 0.25, 0.25, 0.25])
    >>> ranker.learn(shown, [1.0])  # the relevance of shown.items[0]
    >>> bool(ranker.current()[0] == shown.items[0])
    True
    """

    summary = "Observes the relevance of the top items, and explores what is not clear yet."
    algorithm_version = 2
    estimate_from = "weights"
    kernels = RankerKernels(rank, learn)
    n_items: int

    def __init__(
        self, *, n_items: int, measure: str | Measure = "dcg", k: int = 1, max_grade: int = 1
    ) -> None:
        m = whole("n_items", n_items, at_least=1)
        k = whole("k", k, at_least=1, at_most=m)
        self.learnable = learnable(measure, max_grade=max_grade, n_items=m)
        self.n_items = self.n_positions = m
        self.max_grade = max_grade
        self.feedback = TopK(k)
        weights = np.asarray(self.learnable.measure.discount(m), np.float64)
        f = weights.max() - weights if self.learnable.measure.is_loss else weights - weights.min()
        farthest = 0.5 * sum((f - sum(f.tolist()) / m) ** 2)
        gain = self.learnable.largest_gain
        self.params = TopFTRLParams(f, k, self.learnable.exponential, gain, float(farthest))
        self.state = TopFTRLState(
            t=np.zeros(1, np.int64),
            G_hat=np.zeros(m),
            beta=np.array([self._first_beta()]),
            order=np.arange(m, dtype=np.int64),
            breaks=np.ones(m),
            explore=np.zeros(m),
            observed=np.ones(m),
            cost=np.zeros(1),
        )
        prepare(self.params, self.state, self.scratch(m))

    def _first_beta(self) -> float:
        # The least for which the chances that exploration asks for never sum to more than 1.
        spread = float(self.params.f[0])
        m, G = self.n_items, self.params.largest_gain
        return self._times() * m * m * G / (8.0 * CAUTION * spread) if spread > 0.0 else 1.0

    def _times(self) -> int:
        return 1 if self.params.k == 1 else 2

    def scratch(self, n: int) -> tuple[Any, ...]:
        places = np.empty(n, np.int64)
        return (
            permutahedron.leader_scratch(n),
            permutahedron.tree_scratch(n),
            places,
            (np.empty(n), np.empty(n)),
        )

    def blank_memo(self, n: int) -> Memo:
        return (np.empty(self.params.k),)

    def blank_propensities(self, n: int) -> Floats:
        return np.empty(n)

    def check_ticket(self, ranking: Ranking) -> None:
        chances = ranking.memo[0]
        if not (((chances >= _LEAST_CHANCE) & (chances <= 1.0)) | (chances == 0.0)).all():
            raise ValueError(f"ranking.memo must hold chances in (0, 1], or 0, got {chances}")

    def check_state(self, saved: Mapping[str, Array]) -> None:
        if saved["t"][0] < 0 or saved["beta"][0] < self._first_beta():
            raise ValueError(
                f"saved state 't' must not be negative and 'beta' at least {self._first_beta()}, "
                f"got {saved['t'][0]} and {saved['beta'][0]}"
            )
        if sorted(saved["order"].tolist()) != list(range(self.n_items)):
            raise ValueError(f"saved state 'order' must be all items, none twice, got {saved['order']}")
        state = TopFTRLState(**{name: np.array(saved[name]) for name in self.state._fields})
        permutahedron.sort_again(state.G_hat, state.order)
        prepare(self.params, state, self.scratch(self.n_items))
        for name in ("order", "breaks", "explore", "observed", "cost"):
            if not np.allclose(getattr(state, name), saved[name], rtol=1e-6, atol=1e-9):
                raise ValueError(
                    f"saved state {name!r} does not follow from 'G_hat' and 'beta', got {saved[name]}"
                )

    def carry(self, old: Any, origin: Ints, positions: Ints | None = None) -> None:
        state = self.state
        state.G_hat[:] = carried_sums(old.state.G_hat, origin)
        state.t[:] = old.state.t
        state.beta[0] = max(float(old.state.beta[0]), self._first_beta())
        permutahedron.sort_again(state.G_hat, state.order)
        prepare(self.params, state, self.scratch(self.n_items))
        self.carry_missed(old, origin)

    def absorb(self, part: Any, items: Ints, positions: Ints, ranking: Ranking, feedback: Floats) -> None:
        state = self.state
        self.put_back(state.G_hat, part.state.G_hat - state.G_hat[items], items)
        state.t[0] += 1
        state.beta[0] = max(float(part.state.beta[0]), float(state.beta[0]))
        permutahedron.sort_again(state.G_hat, state.order)
        prepare(self.params, state, self.scratch(self.n_items))

    def translate(self, ranking: Ranking, before: Ints) -> Ranking | None:
        """With the items that are new at its end, as long as those that reveal their relevance are still there."""
        return with_newcomers(ranking, before, n_items=self.n_items, n_top=self.params.k)

    def chances(self) -> Floats:
        """The chance of item i at position j in the next list.

        Returns
        -------
        ndarray of float
            Positions x items; exploration counts.

        Examples
        --------
        >>> TopFTRL(n_items=3).chances().round(3)
        array([[0.333, 0.333, 0.333],
               [0.333, 0.333, 0.333],
               [0.333, 0.333, 0.333]])
        """
        m = self.n_items
        found = np.empty((m, m))
        for place, item in enumerate(self.state.order):
            found[:, item] = self._chances_of(place)
        return found

    def _chances_of(self, place: int) -> Floats:
        row = np.empty(self.n_items)
        chances_of(self.params, self.state, self.scratch(self.n_items), place, row)
        return row

    def mean_by_position(self, context: Any, ranking: Ranking, by_position: Floats) -> Floats:
        """Exact, from the chances of the next list."""
        place_of = np.argsort(self.state.order)
        shown = ranking.items[: self.params.k]
        chances = np.stack([self._chances_of(int(place_of[item])) for item in shown])
        means = [[sum((row * one).tolist()) for one in chances] for row in by_position]
        return np.array(means)

    def current(self, context: Any = None) -> Ints:
        found: Ints = self.state.order.copy()
        return found

    def regret_bound(self, rounds: int, *, gaps: ArrayLike | None = None) -> float:
        """Of order T^(2/3) whatever users do, and of order log T where they stay; docs/rankers/TopFTRL.md derives both.

        Parameters
        ----------
        rounds : int
            The number of rounds, T. No feedback may be late.
        gaps : array_like, optional
            Where each user is drawn from one distribution: by how much the mean gains of the items differ, in
            falling order, from each one to the next.

        Returns
        -------
        float
            The bound on the expected regret against the best list, the smaller one of the two with `gaps`.

        Examples
        --------
        >>> round(TopFTRL(n_items=10, measure="dcg").regret_bound(10_000))
        2815
        >>> three = TopFTRL(n_items=3, measure="dcg")
        >>> f"{three.regret_bound(10**12):.1e} {three.regret_bound(10**12, gaps=[0.4, 0.4]):.1e}"
        '1.6e+08 2.4e+07'
        """
        T = whole("rounds", rounds, at_least=1)
        bound = self._bound_for_anybody(T)
        if gaps is None or bound == 0.0:
            return bound
        differences = numbers("gaps", gaps)
        right = differences.shape == (self.n_items - 1,) and np.isfinite(differences).all()
        if not right or not (differences > 0.0).all() or differences.sum() > self.params.largest_gain:
            raise ValueError(
                f"gaps must be {self.n_items - 1} positive numbers with a sum of at most "
                f"{self.params.largest_gain:g}, got {gaps!r}"
            )
        return min(bound, self._bound_where_users_stay(T, differences))

    def _bound_where_users_stay(self, T: int, gaps: Floats) -> float:
        # The names are those of the page.
        h, G, f1, n = self.params.farthest, self.params.largest_gain, float(self.params.f[0]), self._times()
        first, Y, C = self._first_beta(), 0.5 * G, CAUTION * G * f1
        a = self.n_items * n * Y * (2.0 * C / n) ** 0.5
        fastest = KAPPA * a / (NEAREST * h)
        b = first**1.5 + 1.5 * (1.0 + fastest / first**1.5) ** 0.5 * fastest
        z = (2.0 * n * C) ** 0.5 * float(power(b, 1 / 3))
        blocks = n * Y * (4.0 * C * f1 / n) ** 0.5 * (2.0 * f1) ** 1.5 * b
        unclear = h / KAPPA * float(power(1.5 * KAPPA * a / h, 2 / 3))
        early = logarithmic = 0.0
        for gap in gaps.tolist():
            early += BAD * Y * z / gap**2
            alone = (4 if n == 1 else 6) * n * Y * C * NEAR / gap
            logarithmic += 2.0 * (alone + (2.0 * C * (n * Y) ** 2 + blocks) * NEAR_SQUARED / gap**2)
        rounds = a / first**0.5 + unclear * early + logarithmic * float(log(float(T)))
        return float(first * h + (1 + KAPPA) * rounds)

    def _bound_for_anybody(self, T: int) -> float:
        h, G, spread = self.params.farthest, self.params.largest_gain, float(self.params.f[0])
        if spread == 0.0:
            return 0.0
        kappa, first = KAPPA, self._first_beta()
        a = self.n_items * G * (0.5 * self._times() * CAUTION * G * spread) ** 0.5
        last = float(power(float(power(first, 1.5)) + 1.5 * kappa * a * T / h, 2 / 3))
        return float(first * h + (1 + kappa) * (a / first**0.5 + h / kappa * (last - first)))

    @classmethod
    def bytes_for(cls, *, n_items: int = 0, **parameters: Any) -> int:
        return 8 * 20 * n_items + permutahedron.tree_scratch_bytes(n_items)
