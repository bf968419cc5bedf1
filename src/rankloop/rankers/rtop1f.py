"""RTop-1F: rank fixed items from the relevance of the top one (Chaudhuri and Tewari 2015, Algorithm 1).

The paper draws, at the start of a block, one round for each object. Here every round decides for itself: with n
slots still to explore and l rounds left in the block, explore with probability n / l, a slot drawn evenly from
those left. That is selection sampling: the same law, but nothing has to be remembered between rank and learn, so
rankings may overlap and feedback may come late.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankloop.arguments import epsilon as read_epsilon
from rankloop.arguments import one_of, whole
from rankloop.base import Array, Floats, Ints, Memo, Ranking
from rankloop.compiled import CompiledRanker, RankerKernels
from rankloop.feedback import TopK
from rankloop.kernels import sorting
from rankloop.kernels.elementary import power
from rankloop.kernels.jit import apart, hot
from rankloop.kernels.measures import exp2_gain
from rankloop.kernels.random import below, shuffle, uniform
from rankloop.kernels.sorting import by_falling_score
from rankloop.measures import Measure
from rankloop.ranges import Between, Range, Whole
from rankloop.rankers.constants import constants_of, learnable
from rankloop.servable import carried_sums

KEEP_REST = 0
RANDOM = 1


class Top1Params(NamedTuple):
    """T, K and 1/epsilon of each epoch (one epoch when the horizon is known), and what feedback means."""

    horizons: Ints
    blocks: Ints
    reaches: Floats  # 1/epsilon
    k: int
    explore: int
    exponential: bool  # g(r) = 2**r - 1 instead of r


class Top1State(NamedTuple):
    """The position in the block, the block's estimate (r_hat), and the sum of all earlier blocks' estimates (s_hat)."""

    epoch: Ints
    block: Ints
    t: Ints
    left: Ints  # rounds left in this block; below zero while it waits for feedback
    s_hat: Floats
    r_hat: Floats
    slots: Ints  # the first n_open of them are still to be explored in this block
    n_open: Ints


@hot
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


@hot
def _perturbed_leader(params: Any, state: Any, key: Any, scratch: Any, items: Any) -> None:
    scores, sort_scratch = scratch
    reach = params.reaches[state.epoch[0]]
    for i in range(len(items)):
        scores[i] = state.s_hat[i] + reach * uniform(key, 2 + i)  # lines 16-17
    by_falling_score(scores, len(items), items, sort_scratch)  # lines 18-19, erratum A3


@apart
def _explore(params: Any, state: Any, key: Any, scratch: Any, items: Any, memo: Any) -> None:
    # Lines 12-13. Apart from `rank`, because the rounds that do not explore are quicker without it.
    slot = state.slots[below(key, 1, state.n_open[0])]
    _to_front(slot * params.k, params.k, items, scratch[1])  # erratum A12
    memo[0][0] = 1.0 / max(state.left[0], state.n_open[0])


@hot
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
    params: Any, state: Any, context: Any, scratch: Any, items: Any, propensities: Any, memo: Any, labels: Any
) -> None:
    """Alg. 1, lines 14, 21 and 7."""
    slot = items[0] // params.k
    for place in range(state.n_open[0] if memo[0][0] > 0.0 else 0):
        if state.slots[place] == slot:
            for i in range(min(params.k, len(items) - slot * params.k)):
                gain = exp2_gain(labels[i]) if params.exponential else labels[i]
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


_EXPLORE = {"keep-rest": KEEP_REST, "random": RANDOM}


@functools.lru_cache(maxsize=10_000)  # a service may have thousands of rankers of one size
def _blocks(T: int, n_items: int, n_slots: int) -> int:
    # K = (DA/R)^(1/3) (T/slots)^(2/3) with DA/R = m: the paper's m^(-1/3) T^(2/3) where there are m slots
    K = round(float(power(n_items, 1 / 3) * power(T / n_slots, 2 / 3)))
    return max(1, min(K, T // n_slots))  # errata A9, A10


def _fits(T: int, K: int) -> bool:
    return T < 1 << 62 and K * (K + 1) < 1 << 63  # so that no step of `block_end` leaves 64 bits


class RTop1F(CompiledRanker):
    """Blocked follow-the-perturbed-leader that sees only the relevance of the top item.

    Time is cut into K blocks. In a block every item is put on top once, at a random round, and its feedback is
    that block's estimate of the relevance. All other rounds show the items by the summed estimates of the
    blocks before, plus a fresh random perturbation. Regret O(T^(2/3)), time O(m log m) per round.

    Parameters
    ----------
    n_items : int
        How many items there are, m.
    horizon : int, optional
        How many rounds will be played, T; None where it is unknown: the horizon then doubles whenever it is
        reached, and what was learnt stays.
    measure : str or Measure, optional
        "sum_loss", "pairwise_loss", "dcg" or "precision@k" (also "dcg@k"): the measure of the ranking.
    explore : str, optional
        "keep-rest" moves the item to explore to the front of the order that would have been shown; "random"
        puts it before a random order, the costliest reading of the paper's "any permutation".
    k : int, optional
        How many top items reveal their relevance. A block then has ceil(m / k) slots to explore, not m.
    max_grade : int, optional
        The largest relevance that can come back, n; 1 for binary relevance.
    blocks : int, optional
        The number of blocks, instead of the paper's K; needs a horizon.
    epsilon : float, optional
        The inverse of the perturbation's reach, instead of the paper's; needs a horizon.

    Notation
    --------
    m: n_items, T: horizon, K: blocks, epsilon: epsilon, s_hat and r_hat: state.s_hat and state.r_hat, i_j: drawn
    round by round instead of at the start of a block, with the same law.

    Departures
    ----------
    K is rounded and at most T / ceil(m / k), blocks need not divide T (errata A9, A10). Without a horizon: doubling.
    With open rankings a block lasts until feedback on each of its slots was learnt.

    References
    ----------
    S. Chaudhuri and A. Tewari, Online ranking with top-1 feedback, AISTATS 2015.

    Examples
    --------
    >>> ranker = RTop1F(n_items=4, horizon=1000, measure="dcg")
    >>> rng = np.random.default_rng(1)
    >>> shown = ranker.rank(rng=rng)
    >>> ranker.learn(shown, [1.0])  # the relevance of shown.items[0]
    >>> int(ranker.state.t[0])
    1
    """

    summary = "Observes the relevance of the top items only, and explores each item in turn."
    estimate_from = "blocks"
    no_candidates = ""
    kernels = RankerKernels(rank, learn)
    n_items: int

    def __init__(
        self,
        *,
        n_items: int,
        horizon: int | None = None,
        measure: str | Measure = "dcg",
        explore: str = "keep-rest",
        k: int = 1,
        max_grade: int = 1,
        blocks: int | None = None,
        epsilon: float | None = None,
    ) -> None:
        m = whole("n_items", n_items, at_least=1)
        k = whole("k", k, at_least=1, at_most=m)
        self.learnable = learnable(measure, max_grade=max_grade, n_items=m)
        one_of("explore", explore, tuple(_EXPLORE))
        if horizon is None and (blocks is not None or epsilon is not None):
            raise ValueError("blocks and epsilon need a horizon, got horizon=None")
        self.n_items = self.n_positions = m
        self.n_slots = -(-m // k)
        if k > 1:
            self.no_candidates = (
                "with k > 1 it explores fixed groups of items, which a list must have as a whole"
            )
        self.max_grade = max_grade
        self.horizon = None if horizon is None else whole("horizon", horizon, at_least=1)
        self.feedback = TopK(k)
        horizons = self._doubling() if self.horizon is None else [self.horizon]
        counts = [_blocks(T, m, self.n_slots) for T in horizons]
        if blocks is not None:
            most = max(1, horizons[0] // self.n_slots)
            counts = [whole("blocks", blocks, at_least=1)]
            if counts[0] > most:
                raise ValueError(
                    f"blocks must leave a round for each of {self.n_slots} slots: at most {most}, got {blocks}"
                )
        if not _fits(horizons[0], counts[0]):
            raise ValueError(f"horizon must be below 2**62 and blocks**2 below 2**63, got horizon={horizon}")
        gain = self.learnable.largest_gain
        reaches = [gain * np.sqrt(m * K) for K in counts]  # 1/epsilon of Theorems 7, 9, 10
        if epsilon is not None:
            reaches = [1 / read_epsilon("epsilon", epsilon)]
        self.params = Top1Params(
            np.array(horizons, np.int64),
            np.array(counts, np.int64),
            np.array(reaches, np.float64),
            k,
            _EXPLORE[explore],
            self.learnable.exponential,
        )
        self.state = Top1State(
            epoch=np.zeros(1, np.int64),
            block=np.zeros(1, np.int64),
            t=np.zeros(1, np.int64),
            left=np.array([horizons[0] // counts[0]], np.int64),
            s_hat=np.zeros(m),
            r_hat=np.zeros(m),
            slots=np.arange(self.n_slots, dtype=np.int64),
            n_open=np.array([self.n_slots], np.int64),
        )

    def _doubling(self) -> list[int]:
        # The first horizon explores half of the time: (m * slots / T)^(1/3) = 1/2.
        first = 8 * self.n_items * self.n_slots
        horizons = [first << epoch for epoch in range(64)]
        return [T for T in horizons if _fits(T, _blocks(T, self.n_items, self.n_slots))]

    def tunable(self) -> Mapping[str, Range]:
        if self.horizon is None:
            return {}
        blocks, reach = int(self.params.blocks[0]), float(self.params.reaches[0])
        most = max(1, self.horizon // self.n_slots)
        return {
            "blocks": Whole(max(1, blocks // 30), min(most, 3 * blocks)),
            "epsilon": Between(0.1 / reach, 30.0 / reach),
        }

    def scratch(self, n: int) -> tuple[Any, ...]:
        return np.empty(n), sorting.scratch(n)

    def blank_memo(self, n: int) -> Memo:
        return (np.empty(1),)

    def check_ticket(self, ranking: Ranking) -> None:
        if self.params.k > 1 and ranking.memo[0][0] > 0:  # a slot of one item begins and ends with it
            first = int(ranking.items[0]) // self.params.k * self.params.k
            slot = range(first, min(first + self.params.k, self.n_items))
            if set(ranking.items[: len(slot)].tolist()) != set(slot):
                raise ValueError(
                    f"ranking.items must begin with the items {list(slot)} that it explored, got {ranking.items}"
                )

    def check_state(self, saved: Mapping[str, Array]) -> None:
        limits = {"epoch": len(self.params.horizons) - 1, "n_open": self.n_slots}
        for name, most in limits.items():
            if not 0 <= saved[name][0] <= most:
                raise ValueError(f"saved state {name!r} must be in 0..{most}, got {saved[name][0]}")
        if sorted(saved["slots"].tolist()) != list(range(self.n_slots)):
            raise ValueError(
                f"saved state 'slots' must be 0..{self.n_slots - 1} in some order, got {saved['slots']}"
            )

    def carry(self, old: Any, origin: Ints, positions: Ints | None = None) -> None:
        # The new blocks have another length: sums count blocks, so they are counted anew, as when a horizon doubles.
        epoch = min(int(old.state.epoch[0]), len(self.params.horizons) - 1)
        length = old._block_length(int(old.state.epoch[0])) / self._block_length(epoch)
        self.state.s_hat[:] = carried_sums(old.state.s_hat * length, origin)
        t = min(int(old.state.t[0]), int(self.params.horizons[epoch]))
        # A fresh block: what the present one has observed so far is of other slots.
        block = int(t / self._block_length(epoch))
        while self._block_end(epoch, block) - t < self.n_slots:
            block += 1
        self.state.epoch[0], self.state.block[0], self.state.t[0] = epoch, block, t
        self.state.left[0] = self._block_end(epoch, block) - t

    def _block_length(self, epoch: int) -> float:
        return float(self.params.horizons[epoch] / self.params.blocks[epoch])

    def _block_end(self, epoch: int, block: int) -> int:
        return (block + 1) * int(self.params.horizons[epoch]) // int(self.params.blocks[epoch])

    def rank_among(self, items: Ints, positions: Ints, *, rng: np.random.Generator) -> Ranking:
        """As `rank`, where only those candidates can be explored that are still to be explored in this block."""
        self.check_takes_candidates()
        state, drawn = self.state, rng.random(2 + len(items))
        due = items[np.isin(items, state.slots[: state.n_open[0]])]
        left = int(state.left[0])
        # A block that waits for feedback has less than no rounds left, also where none of these candidates is due.
        explored = bool(len(due) and drawn[0] * left < len(due))
        perturbed = self.params.reaches[state.epoch[0]] * drawn[2:]
        if not (explored and self.params.explore == RANDOM):
            perturbed = state.s_hat[items] + perturbed
        order = items[np.argsort(-perturbed, kind="stable")]
        if explored:
            chosen = due[int(drawn[1] * len(due))]
            order = np.concatenate([[chosen], order[order != chosen]]).astype(np.int64)
        chance = 1.0 / max(left, len(due)) if explored else 0.0
        return Ranking(order, None, (np.array([chance]),), explored)

    def learn_among(self, ranking: Ranking, feedback: ArrayLike, items: Ints, positions: Ints) -> None:
        """As `learn`. A block that is over waits no longer for items that are not even candidates.

        Such an item counts for what it counted in the block before.
        """
        self.check_takes_candidates()
        rest = np.setdiff1d(np.arange(self.n_items), ranking.items)
        whole = np.concatenate([ranking.items, rest]).astype(np.int64)
        self.learn(Ranking(whole, None, ranking.memo, ranking.explored), feedback)
        state = self.state
        waits_for = state.slots[: state.n_open[0]]
        if state.left[0] <= 0 and len(waits_for) and not np.isin(waits_for, items).any():
            _close_block(self.params, state)

    def translate(self, ranking: Ranking, before: Ints) -> Ranking | None:
        """With the items that are new at its end, as long as the top item is still there."""
        if before[0] < 0:
            return None
        kept = before[before >= 0]
        rest = np.setdiff1d(np.arange(self.n_items), kept)
        memo = tuple(part.copy() for part in ranking.memo)
        if self.params.k > 1:
            memo[0][0] = 0.0  # slots are other items now: the round counts, its exploration does not
        return Ranking(np.concatenate([kept, rest]).astype(np.int64), None, memo, ranking.explored)

    def exploration_chance(self, ranking: Ranking) -> float | None:
        return float(ranking.memo[0][0]) if ranking.explored and ranking.memo else None

    def exploration_block(self) -> tuple[int, ...]:
        return int(self.state.epoch[0]), int(self.state.block[0])

    def explored_items(self, ranking: Ranking) -> int:
        if ranking.memo[0][0] <= 0.0:
            return 0
        k = int(self.params.k)
        return min(k, self.n_items - int(ranking.items[0]) // k * k)

    def current(self, context: Any = None) -> Ints:
        return np.argsort(-self.state.s_hat, kind="stable")

    def regret_bound(self, rounds: int | None = None) -> float:
        """R m K + (T/K) (D / epsilon + epsilon R A K) of Theorems 7, 9 and 10, with slots for m where k > 1.

        With the epsilon of the theorems that is R m K + 2 (T/K) sqrt(D R A K). Without a horizon: the sum over the
        epochs up to `rounds`, where D / epsilon is paid once (docs/rankers/RTop1F.md has the argument).

        Parameters
        ----------
        rounds : int, optional
            The number of rounds where there is no horizon; otherwise it is the horizon.

        Raises
        ------
        ValueError
            Where the number of rounds is missing, or is not the horizon that the constants were made for.

        Examples
        --------
        >>> round(RTop1F(n_items=10, horizon=10_000, measure="dcg").regret_bound())
        29366
        """
        given = self.horizon if rounds is None else rounds
        if given is None:
            raise ValueError("regret_bound needs rounds where there is no horizon, got rounds=None")
        T = whole("rounds", given, at_least=1)
        if self.horizon not in (None, T):
            raise ValueError(f"regret_bound is proved for horizon={self.horizon} rounds, got rounds={rounds}")
        D, R, A = constants_of(self.learnable, self.n_items)
        total = reach = played = 0.0
        for T_e, K, one_by_epsilon in zip(*self.params[:3], strict=True):
            widened = float(one_by_epsilon) * float(T_e) / int(K)  # counted in rounds; it only ever grows
            total += D * abs(widened - reach)
            total += R * self.n_slots * int(K) + float(T_e) * R * A / float(one_by_epsilon)
            reach, played = widened, played + float(T_e)
            if played >= T:
                break
        return float(total)

    @classmethod
    def bytes_for(cls, *, n_items: int = 0, k: int = 1, **parameters: Any) -> int:
        return 24 * n_items + 8 * -(-n_items // k) + sorting.scratch_bytes(n_items) + 64 * 24
