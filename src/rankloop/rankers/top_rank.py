"""TopRank: sort items into blocks by pairwise clicks (Lattimore, Kveton, Li and Szepesvári 2018).

U_ij = C_i - C_j counts only while i and j share a block, an item that is not shown among them: a click on i changes
the statistics of as many pairs as the block has items. Here it changes one number, the clicks on i. For each pair
there is what that number has too much: see `wins`. And a pair is looked at only when its lead may have reached its
bound, which takes many clicks. So a round costs what was shown and clicked, however many items there are.

The blocks that were shown travel in the ticket, so that late feedback is counted for the blocks it was about.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop import base
from rankloop.arguments import share, whole
from rankloop.base import Array, Floats, Ints, Memo, Ranking
from rankloop.compiled import Limits, RankerKernels
from rankloop.kernels.elementary import log
from rankloop.kernels.jit import apart, hot
from rankloop.kernels.random import below, word
from rankloop.ranges import Between, Range
from rankloop.rankers.click_ranker import ClickRanker

_WORD = 64  # items in a word of `worse`
_ROUNDING = 1e-6  # of a number of clicks that is a square root


class TopRankParams(NamedTuple):
    """log(c / delta) with c = 4 sqrt(2 / pi) / erf(sqrt 2)."""

    log_c_delta: float


class TopRankState(NamedTuple):
    """Click statistics of each pair of items, what follows from them, and the number of rounds with feedback."""

    t: Ints
    clicks: Ints  # on each item
    # [i, k]: of the clicks on i, in one block with k those that do not count, else `wins`
    pairs: NDArray[np.int32]
    worse: NDArray[np.uint64]  # [i]: a bit for each item that i is known to be worse than, the relation G
    fingerprint: Ints  # of G: equal where G is
    block: Ints  # of each item, counted from 0
    order: Ints  # items by block
    ends: Ints  # of each block, in `order`
    due: Ints  # clicks on each item from which on one of its pairs may reach its bound


@hot
def wins(clicks: Any, pairs: Any, block: Any, i: int, k: int) -> Any:
    """Clicks on i and not on k while they shared a block; S_ik is wins_ik - wins_ki, N_ik is wins_ik + wins_ki."""
    return clicks[i] - pairs[i, k] if block[i] == block[k] else np.int64(pairs[i, k])


@hot
def is_worse(worse: Any, i: int, k: int) -> Any:
    """Whether i is known to be worse than k."""
    return (worse[i, k // _WORD] >> np.uint64(k % _WORD)) & np.uint64(1) == np.uint64(1)


@hot
def _mark_worse(state: Any, i: int, k: int) -> None:
    state.worse[i, k // _WORD] |= np.uint64(1) << np.uint64(k % _WORD)
    state.fingerprint[0] ^= _share(len(state.block), i, k)


@hot
def _share(n: int, i: int, k: int) -> Any:
    # Of a pair in the fingerprint of G.
    return np.int64(word(np.uint64(0), i * n + k))


@apart
def take_fingerprint(state: Any) -> None:
    """From all pairs of G."""
    n = len(state.block)
    state.fingerprint[0] = 0
    for i in range(n):
        for k in range(n):
            if state.worse[i, k // _WORD] != np.uint64(0) and is_worse(state.worse, i, k):
                state.fingerprint[0] ^= _share(n, i, k)


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """Alg. 1, lines 5-9. Exploring: some shown position was drawn from more than one item."""
    slots, places, held = scratch[0], scratch[1], scratch[2]
    fingerprint, blocks = memo
    if fingerprint[0] != state.fingerprint[0]:  # otherwise the last round of a compiled loop wrote the same
        fingerprint[0] = state.fingerprint[0]
        for i in range(len(blocks)):
            blocks[i] = state.block[i]
    start, number, explored = 0, 0, False
    while start < len(items):
        stop = state.ends[number]
        for j in range(start, min(stop, len(items))):
            # Fisher-Yates from the front: only what is shown is drawn, and only what it moved is written down.
            other = j + below(key, j, stop - j)
            items[j] = _item_at(other, j, state.order, slots, places, held)
            held[j] = _item_at(j, j, state.order, slots, places, held)
            places[j] = other
            slots[other] = j
            propensities[j] = 1.0 / (stop - start)
        explored |= stop > start + 1
        start = stop
        number += 1
    return explored


@hot
def _item_at(place: int, n_moved: int, order: Any, slots: Any, places: Any, held: Any) -> Any:
    # `slots` may hold anything, from other lists too: an entry counts if the place it leads to says so.
    slot = slots[place]
    return held[slot] if 0 <= slot < n_moved and places[slot] == place else order[place]


@hot
def learn(
    params: Any, state: Any, context: Any, scratch: Any, items: Any, propensities: Any, memo: Any, clicks: Any
) -> None:
    """Alg. 1, lines 10-13, for the blocks that were shown."""
    found = False
    if memo[0][0] == state.fingerprint[0]:
        for j in range(len(items)):
            if clicks[j] == 0.0:
                continue
            i = items[j]
            state.clicks[i] += 1
            for other in range(j):
                k = items[other]
                if clicks[other] != 0.0 and state.block[i] == state.block[k]:
                    state.pairs[i, k] += 1  # U_ik = 0
                    state.pairs[k, i] += 1
        for j in range(len(items)):
            if clicks[j] != 0.0 and state.clicks[items[j]] >= state.due[items[j]]:
                found |= _compare(params.log_c_delta, state, items[j])
    else:
        found = _learn_late(params.log_c_delta, state, scratch[4], items, memo[1], clicks)
    state.t[0] += 1
    if found:
        regroup(params.log_c_delta, state, scratch[3], scratch[5])


@apart
def _compare(log_c_delta: float, state: Any, i: int) -> bool:
    # Every pair of i in its block, after a click on i; and at how many clicks on i the next one may reach its bound.
    number, found, least = state.block[i], False, np.inf
    for place in range(state.ends[number - 1] if number > 0 else 0, state.ends[number]):
        k = state.order[place]
        won = state.clicks[i] - state.pairs[i, k]
        missing = 2.0 * log_c_delta - won  # if k has won nothing
        if k == i:
            missing = np.inf
        elif missing <= 0.0:
            lost = state.clicks[k] - state.pairs[k, i]
            missing = _missing(log_c_delta, won, lost)
            if is_worse(state.worse, k, i):
                missing = np.inf
            elif reached(log_c_delta, won, lost):
                _mark_worse(state, k, i)
                found, missing = True, np.inf
        least = min(least, missing)
    state.due[i] = _due(state.clicks[i], least)
    return found


@hot
def _missing(log_c_delta: float, won: Any, lost: Any) -> Any:
    # S^2 / (2 N) = log_c_delta, which is below the bound, solved for how much more must be won.
    return lost + log_c_delta + np.sqrt(log_c_delta * (log_c_delta + 4.0 * lost)) - won


@hot
def _due(clicks: Any, missing: float) -> Any:
    return clicks + np.int64(min(max(1.0, np.ceil(missing - _ROUNDING)), 1e15))


@hot
def reached(log_c_delta: float, won: Any, lost: Any) -> Any:
    """S >= sqrt(2 N log((c / delta) sqrt N)); the logarithm of N only where the rest of it is passed."""
    S, N = float(won - lost), float(won + lost)
    if S <= 0.0:
        return False
    square = S * S / (2.0 * N)
    return square >= log_c_delta and square >= log_c_delta + 0.5 * log(N)


@apart
def _learn_late(log_c_delta: float, state: Any, clicked: Any, items: Any, blocks: Any, clicks: Any) -> bool:
    # G has grown since the list was shown: every pair that shared a block then.
    found = False
    for i in range(len(blocks)):
        clicked[i] = False
    for j in range(len(items)):
        clicked[items[j]] = clicks[j] != 0.0
    for j in range(len(items)):
        state.clicks[items[j]] += clicked[items[j]]
    for j in range(len(items)):
        i = items[j]
        if not clicked[i]:
            continue
        for k in range(len(blocks)):
            if k == i:
                continue
            counts = blocks[k] == blocks[i] and not clicked[k]
            state.pairs[i, k] += counts != (state.block[i] == state.block[k])
            if counts and not is_worse(state.worse, k, i):
                won = wins(state.clicks, state.pairs, state.block, i, k)
                lost = wins(state.clicks, state.pairs, state.block, k, i)
                if reached(log_c_delta, won, lost):
                    _mark_worse(state, k, i)
                    found = True
    return found


@apart
def regroup(log_c_delta: float, state: Any, before: Any, left: Any) -> None:
    """The blocks of G as it is now, and the pairs of items that meet or part."""
    n = len(state.block)
    for i in range(n):
        before[i] = state.block[i]
    partition(state.worse, left, state.block, state.order, state.ends)
    for i in range(n):
        if before[i] == state.block[i]:
            continue
        for k in range(n):
            meet = state.block[i] == state.block[k]
            both_move = before[k] != state.block[k]
            if meet == (before[i] == before[k]) or (both_move and k < i):
                continue
            state.pairs[i, k] = state.clicks[i] - state.pairs[i, k]
            state.pairs[k, i] = state.clicks[k] - state.pairs[k, i]
            if meet:
                _expect(log_c_delta, state, i, k)
                _expect(log_c_delta, state, k, i)


@hot
def _expect(log_c_delta: float, state: Any, i: int, k: int) -> None:
    # That i, which has met k, may reach the bound.
    won, lost = state.clicks[i] - state.pairs[i, k], state.clicks[k] - state.pairs[k, i]
    state.due[i] = min(state.due[i], _due(state.clicks[i], _missing(log_c_delta, won, lost)))


@apart
def partition(worse: Any, left: Any, block: Any, order: Any, ends: Any) -> None:
    """Alg. 1, line 6: a block is every item that is worse than none of those left; of a cycle, all that are left."""
    n, placed, number = len(block), 0, 0
    left[:] = np.uint64(0)
    for i in range(n):
        block[i] = -1
        left[i // _WORD] |= np.uint64(1) << np.uint64(i % _WORD)
    while placed < n:
        before = placed
        for i in range(n):
            if block[i] >= 0:
                continue
            word = 0
            while word < len(left) and worse[i, word] & left[word] == np.uint64(0):
                word += 1
            if word == len(left):
                order[placed] = i
                placed += 1
        if placed == before:  # only sampling noise makes a cycle, with a chance of at most delta n^2
            for i in range(n):
                if block[i] < 0:
                    order[placed] = i
                    placed += 1
        for place in range(before, placed):
            i = order[place]
            block[i] = number
            left[i // _WORD] &= ~(np.uint64(1) << np.uint64(i % _WORD))
        ends[number] = placed
        number += 1
    for rest in range(number, n):
        ends[rest] = n


@apart
def leads(state: Any, out: Any) -> None:
    """For each item the sum of S_ik over the items of its block."""
    for i in range(len(state.block)):
        out[i] = 0.0
    for i in range(len(state.block)):
        for k in range(len(state.block)):
            if i != k and state.block[i] == state.block[k]:
                won = float(state.clicks[i] - state.pairs[i, k])
                out[i] += won
                out[k] -= won


_UNWRITTEN = np.full(1, -1)
_NOT_FROM_WORSE = "saved state 'block' and 'order' must follow from 'worse': is it a state of another ranker?"
C = 3.3436764018810767  # 4 sqrt(2 / pi) / erf(sqrt(2)); 3.43 in print


class TopRank(ClickRanker):
    """Shuffles items that clicks cannot tell apart yet, and never again shows a worse one above a better one.

    Items stand in blocks. Each round every block is shuffled and the blocks are shown one below the other. When one
    item of a block has been clicked without another significantly more often than the reverse, the other falls behind
    it for good. It assumes of clicks only that higher positions are examined no less, and that better items are
    clicked no less at any position.

    Parameters
    ----------
    n_items : int
        How many items there are, L.
    n_positions : int, optional
        How many of them are shown, K; None shows all.
    horizon : int, optional
        How many rounds will be played, for delta; needed unless `delta` is given.
    delta : float, optional
        The chance of ever putting a better item behind a worse one, for each pair; None is 1 / horizon.

    Notation
    --------
    L: n_items, K: n_positions, S and N: differences and sums of `wins`, G: state.worse, P_1, P_2, ...: state.block.

    Departures
    ----------
    t counts the rounds with feedback. Feedback counts for the blocks that were shown, however late it comes.

    References
    ----------
    T. Lattimore, B. Kveton, S. Li and Cs. Szepesvári, TopRank: a practical algorithm for online stochastic ranking,
    NeurIPS 2018.

    Examples
    --------
    >>> ranker = TopRank(n_items=4, n_positions=2, delta=0.9)
    >>> rng = np.random.default_rng(1)
    >>> for _ in range(30):
    ...     shown = ranker.rank(rng=rng)
    ...     ranker.learn(shown, shown.items == 3)  # users click item 3 at any position
    >>> ranker.blocks
    [array([3]), array([0, 1, 2])]
    """

    algorithm_version = 2
    summary = "Observes clicks, and sorts items into blocks that clicks tell apart."
    kernels = RankerKernels(rank, learn)

    def __init__(
        self,
        *,
        n_items: int,
        n_positions: int | None = None,
        horizon: int | None = None,
        delta: float | None = None,
    ) -> None:
        n, _ = self.read_size(n_items, n_positions)
        T = self.read_horizon(horizon, delta=delta) or 1
        self.delta = share("delta", 1 / T if delta is None else delta)
        self.params = TopRankParams(log(C / self.delta))
        self.state = TopRankState(
            t=np.zeros(1, np.int64),
            clicks=np.zeros(n, np.int64),
            pairs=np.zeros((n, n), np.int32),
            worse=np.zeros((n, -(-n // 64)), np.uint64),
            fingerprint=np.zeros(1, np.int64),
            block=np.zeros(n, np.int64),
            order=np.arange(n),
            ends=np.full(n, n),
            due=np.full(n, math.ceil(2.0 * self.params.log_c_delta - 1e-6)),  # an item that wins every time
        )

    @property
    def blocks(self) -> list[Ints]:
        """The items of each block, best block first."""
        block = self.state.block
        return [np.flatnonzero(block == number) for number in range(int(block.max()) + 1)]

    @property
    def wins(self) -> Ints:
        """[i, k]: clicks on i and not on k while they shared a block. S is wins - wins.T, and N is wins + wins.T."""
        return _wins(self.state, np.arange(self.n_items))

    def tunable(self) -> Mapping[str, Range]:
        return {"delta": Between(min(self.delta, 1e-9), 0.5)}

    def scratch(self, n: int) -> tuple[Any, ...]:
        n_items, m = self.n_items, self.n_positions
        moved = np.zeros(n_items, np.int64), np.empty(m, np.int64), np.empty(m, np.int64)
        return (
            *moved,
            np.empty(n_items, np.int64),
            np.empty(n_items, np.bool_),
            np.empty_like(self.state.worse[0]),
        )

    def blank_propensities(self, n: int) -> Floats:
        return np.empty(n)

    def blank_memo(self, n: int) -> Memo:
        return _UNWRITTEN.copy(), np.empty(self.n_items, np.int32)

    def ticket_limits(self, items: Ints, propensities: Floats, memo: Memo) -> list[Limits]:
        return [("memo must be a block for each item", memo[1], 0, self.n_items - 1)]

    def load(self, saved: Mapping[str, Array] | str | os.PathLike[str]) -> None:
        if isinstance(saved, str | os.PathLike):
            saved = base.read_state(saved)
        super().load(self._of_version_1(saved) if {"S", "N"} <= set(saved) else saved)

    def _of_version_1(self, saved: Mapping[str, Array]) -> Mapping[str, Array]:
        # It had S and N themselves, and a number for each pair in `worse`.
        n = self.n_items
        for name in ("S", "N", "worse"):
            if np.shape(saved[name]) != (n, n):
                raise ValueError(
                    f"saved state {name!r} has the shape {np.shape(saved[name])}, this TopRank has {n} items"
                )
        ranker = self.clone()
        wins = ((np.asarray(saved["N"]) + saved["S"]) / 2).astype(np.int64)
        ranker._know(np.asarray(saved["t"]), wins.max(axis=1), wins, np.asarray(saved["worse"]) != 0)
        same = np.array_equal(ranker.state.block, saved["block"])
        if not (same and np.array_equal(ranker.state.order, saved["order"])):
            raise ValueError(_NOT_FROM_WORSE)
        kept = {base.ORIGIN: saved[base.ORIGIN]} if base.ORIGIN in saved else {}
        return ranker.state_arrays() | kept

    def check_state(self, saved: Mapping[str, Array]) -> None:
        found = self.clone().state
        found.worse[:] = saved["worse"]
        if (_unpacked(found.worse, 64 * found.worse.shape[1])[:, self.n_items :]).any():
            raise ValueError(f"saved state 'worse' must be of {self.n_items} items, got {saved['worse']}")
        take_fingerprint(found)
        partition(found.worse, np.empty_like(found.worse[0]), found.block, found.order, found.ends)
        for name in ("block", "order", "ends", "fingerprint"):
            if not np.array_equal(getattr(found, name), saved[name]):
                raise ValueError(_NOT_FROM_WORSE)
        clicks, pairs = np.asarray(saved["clicks"]), np.asarray(saved["pairs"])
        if (pairs < 0).any() or (pairs > clicks[:, None]).any():
            raise ValueError(f"saved state 'pairs' must be from 0 to 'clicks', got {pairs} and {clicks}")

    def carry(self, old: Any, origin: Ints, positions: Ints | None = None) -> None:
        """A new item has been compared with no other: it begins in the first block."""
        known, before = origin >= 0, np.maximum(origin, 0)
        pairs = known[:, None] & known[None, :]
        worse = _unpacked(old.state.worse[before], old.n_items)[:, before]
        clicks = np.where(known, old.state.clicks[before], 0)
        self._know(old.state.t, clicks, np.where(pairs, _wins(old.state, before), 0), worse & pairs)

    def _know(self, t: Array, clicks: Array, wins: Ints, worse: NDArray[np.bool_]) -> None:
        state = self.state
        state.t[:], state.clicks[:], state.worse[:] = t, clicks, _packed(worse)
        take_fingerprint(state)
        partition(state.worse, np.empty_like(state.worse[0]), state.block, state.order, state.ends)
        state.pairs[:] = _pairs(state, np.arange(self.n_items), wins)
        state.due[:] = 0

    def absorb(self, part: Any, items: Ints, positions: Ints, ranking: Ranking, feedback: Floats) -> None:
        state = self.state
        # The clicks count against no item that was not a candidate.
        clicks = part.state.clicks - state.clicks[items]
        state.pairs[items] += (clicks[:, None] * (state.block[items, None] == state.block)).astype(np.int32)
        state.clicks[items] = part.state.clicks
        state.pairs[np.ix_(items, items)] = _pairs(state, items, part.wins)
        state.t[0] += 1
        worse = _unpacked(state.worse[items], self.n_items)
        found = _unpacked(part.state.worse, len(items))
        if not np.array_equal(worse[:, items], found):
            worse[:, items] = found
            state.worse[items] = _packed(worse)
            take_fingerprint(state)
            regroup(self.params.log_c_delta, state, np.empty_like(state.block), np.empty_like(state.worse[0]))

    def translate(self, ranking: Ranking, before: Ints) -> Ranking | None:
        """None: clicks count for the blocks of the items that were there."""
        return None

    def current(self, context: Any = None) -> Ints:
        """Items by block, within a block by how much more often they were clicked than the others."""
        self.read_context(context)
        lead = np.empty(self.n_items)
        leads(self.state, lead)
        return np.lexsort((-lead, self.state.block))[: self.n_positions].astype(np.int64)

    def regret_bound(self, attraction: Array, rounds: int) -> float:
        """The bound of Theorem 1 over T = `rounds`, for clicks with this `attraction` of each item by those who look.

        delta T m n^2 + sum over pairs i < j, i <= m, of 1 + 6 (a_i + a_j) log(c sqrt(T) / delta) / (a_i - a_j).

        Examples
        --------
        >>> ranker = TopRank(n_items=10, n_positions=5, horizon=1_000_000)
        >>> round(ranker.regret_bound(0.95 - 0.03 * np.arange(10), 1_000_000))
        96790
        """
        T, alpha = whole("rounds", rounds, at_least=1), np.sort(np.asarray(attraction, np.float64))[::-1]
        m, n = self.n_positions, self.n_items
        if alpha.shape != (n,):
            raise ValueError(f"attraction must be one number per item ({n}), got shape {alpha.shape}")
        total = self.delta * T * m * n**2
        for j in range(1, n):
            for i in range(min(m, j)):
                gap = alpha[i] - alpha[j]
                if gap > 0:
                    total += 1 + 6 * (alpha[i] + alpha[j]) * math.log(C * math.sqrt(T) / self.delta) / gap
        return float(total)

    @classmethod
    def bytes_of(cls, n: int, m: int) -> int:
        return 4 * n**2 + n * -(-n // 64) * 8 + 57 * n + 24 * m


def _wins(state: Any, items: Ints) -> Ints:
    return _pairs(state, items, state.pairs[np.ix_(items, items)])


def _pairs(state: Any, items: Ints, wins: NDArray[Any]) -> Ints:
    # Wins of these items as `state.pairs` has them; the same makes `state.pairs` into wins.
    block = state.block[items]
    turned: Ints = np.where(block[:, None] == block, state.clicks[items, None] - wins, wins)
    np.fill_diagonal(turned, 0)
    return turned


def _unpacked(worse: NDArray[np.uint64], n: int) -> NDArray[np.bool_]:
    bits = np.unpackbits(worse.astype("<u8").view(np.uint8), axis=1, count=n, bitorder="little")
    return bits.astype(np.bool_)


def _packed(worse: NDArray[np.bool_]) -> NDArray[np.uint64]:
    n = worse.shape[1]
    padded = np.zeros((len(worse), 64 * -(-n // 64)), np.bool_)
    padded[:, :n] = worse
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)
