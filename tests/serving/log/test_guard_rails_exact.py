"""Guard rails by enumeration: the recorded propensities are those of what is shown, and learning stays unbiased.

The ranker of these tests draws each order of its candidates with a known probability, and everything that can be drawn
is drawn once. It learns click / propensity for each item at its position, which is the mean click there if the
propensities are right.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from rankloop.base import Ranking
from rankloop.feedback.revealed import Clicks
from rankloop.servable import Servable
from rankloop.serving.log import guard_rails
from rankloop.serving.log.candidate_lists import Drawn, Free
from rankloop.serving.log.guard_rails import draw_within, within_reach
from rankloop.serving.log.randomness import coin
from rankloop.serving.log.records import Decision, Policy, pack

N_ITEMS = 6


class Means(Clicks):
    """Clicks in the mean, which are between 0 and 1."""

    def check(self, revealed: Any, n_positions: int) -> Any:
        assert len(revealed) == n_positions
        return revealed


class Listed(Servable):
    """Draws the i-th order of its candidates with probability proportional to i + 1."""

    feedback = Means()
    no_candidates = ""

    def __init__(self) -> None:
        self.sums = np.zeros((N_ITEMS, N_ITEMS))
        self.chances = 1.0

    def orders(self, items: Any, n: int) -> list[tuple[tuple[int, ...], float]]:
        found = list(itertools.permutations(items.tolist(), n))
        total = len(found) * (len(found) + 1) / 2
        return [(order, (i + 1) / total) for i, order in enumerate(found)]

    def rank_among(self, items: Any, positions: Any, *, rng: Any) -> Ranking:
        orders = self.orders(items, len(positions))
        order, chance = orders[rng.choose(len(orders))]
        self.chances *= chance
        marginal = [sum(p for other, p in orders if other[j] == item) for j, item in enumerate(order)]
        return Ranking(np.array(order), np.array(marginal), (np.array(order),), True)

    def rank(self, context: Any = None, *, rng: Any) -> Ranking:
        every = np.arange(N_ITEMS)
        return self.rank_among(every, every[: self.n_positions], rng=rng)

    n_positions = 4

    def current(self, context: Any = None) -> Any:
        return np.array([3, 0, 5, 1, 2, 4])

    def learn_among(self, ranking: Ranking, feedback: Any, items: Any, positions: Any) -> None:
        assert ranking.items.tolist() == ranking.memo[0].tolist()  # each group has its own memo
        assert ranking.propensities is not None
        for item, chance, value, j in zip(
            ranking.items, ranking.propensities, feedback, positions, strict=True
        ):
            self.sums[item, j] += value / chance


class Every:
    """In place of a generator: takes every branch once, as an odometer does."""

    def __init__(self) -> None:
        self.taken: list[list[int]] = []
        self.at = 0

    def choose(self, n: int) -> int:
        if self.at == len(self.taken):
            self.taken.append([0, n])
        self.at += 1
        return self.taken[self.at - 1][0]

    def next(self) -> bool:
        self.at = 0
        while self.taken and self.taken[-1][0] + 1 == self.taken[-1][1]:
            self.taken.pop()
        if self.taken:
            self.taken[-1][0] += 1
        return bool(self.taken)


class Case(NamedTuple):
    bound: int
    places: list[int]  # the baseline with what may come up
    free: Free | None = None


def _fold(**policy: Any) -> Any:
    def places(numbers: Any) -> Any:
        return numbers

    return SimpleNamespace(
        config=SimpleNamespace(policy=Policy(**policy)),
        ranker=Listed(),
        has_items=True,
        active=np.arange(N_ITEMS),
        places=places,
    )


def _drawn(draw: Callable[[Any, bytes, Any], Drawn], fold: Any, key: bytes) -> Iterator[tuple[float, Drawn]]:
    """Everything that can be drawn with one key, with its probability."""
    every, going = Every(), True
    while going:
        fold.ranker.chances = 1.0
        drawn = draw(fold, key, every)
        yield fold.ranker.chances, drawn
        going = every.next()


def _decision(drawn: Drawn) -> Decision:
    chances = None if drawn.propensities is None else drawn.propensities.astype("<f8").tobytes()
    shown = drawn.shown.astype("<i4").tobytes()
    memo = tuple(pack(part) for part in drawn.memo)
    return Decision(
        0, 0, shown, b"k", 0, drawn.explored, chances, memo, choice=drawn.choice, rails=drawn.rails
    )


def _keys(n_first: int) -> list[bytes]:
    """A key for each length of the first group."""
    found: dict[int, bytes] = {}
    for i in itertools.count():
        key = i.to_bytes(16, "little")
        found.setdefault(int(coin(key, b"tiles") * n_first), key)
        if len(found) == n_first:
            return [found[first] for first in range(n_first)]
    raise AssertionError


CASES = [
    Case(1, [2, 4, 1, 0]),
    Case(2, [2, 4, 1, 0, 5]),
    Case(2, [5, 3, 1, 0, 4, 2]),
    Case(1, [2, 4, 0, 5], Free(np.array([0, 2, 4, 5]), np.array([0, 2, 3]), {1: 3})),
]
CLICKS = np.random.default_rng(8).random((N_ITEMS, N_ITEMS))  # mean click by item and position


class Enumerated(NamedTuple):
    seen: Any  # probability of each item at each position
    said: Any  # the propensity that was recorded for it
    learnt: Any  # the mean of what is learnt about it


def _enumerate(case: Case, key: bytes, draw: Callable[[Any, bytes, Any], Drawn]) -> Enumerated:
    fold = _fold(displacement=case.bound)
    found = Enumerated(*(np.zeros((N_ITEMS, N_ITEMS)) for _ in range(3)))
    total = 0.0
    pinned = {} if case.free is None else case.free.pinned
    for chance, drawn in _drawn(draw, fold, key):
        total += chance
        free = [item for j, item in enumerate(drawn.shown.tolist()) if j not in pinned]
        assert all(abs(case.places.index(item) - j) <= case.bound for j, item in enumerate(free))
        assert drawn.propensities is not None
        for j, item in enumerate(drawn.shown.tolist()):
            found.seen[item, j] += chance
            found.said[item, j] = drawn.propensities[j]
        fold.ranker.sums[:] = 0.0
        clicks = CLICKS[drawn.shown, np.arange(len(drawn.shown))]
        guard_rails.learn(fold, _decision(drawn), clicks)
        np.add(found.learnt, chance * fold.ranker.sums, out=found.learnt)
    assert total == pytest.approx(1.0)
    return found


@pytest.mark.parametrize("case", CASES)
def test_groups_of_neighbours_have_exact_propensities_and_teach_without_bias(case: Case) -> None:
    def tiles(fold: Any, key: bytes, rng: Any) -> Drawn:
        n_free = 4 if case.free is None else len(case.free.positions)
        places = np.array(case.places)
        return draw_within(fold, None, case.free, places[:n_free], places[n_free:], key, rng)

    n_taught = 0
    for key in _keys(case.bound + 1):
        found = _enumerate(case, key, tiles)
        assert found.said == pytest.approx(found.seen)
        taught = found.learnt > 0
        n_taught += int(taught.sum())
        assert found.learnt[taught] == pytest.approx(CLICKS[taught])
    assert n_taught >= 8


def test_a_list_that_is_moved_and_keeps_the_propensities_of_its_draw_is_biased() -> None:
    """The wrong version: draw a whole list, move its items into reach, and say what was true before that."""
    case = CASES[0]

    def moved(fold: Any, key: bytes, rng: Any) -> Drawn:
        places = np.array(case.places)
        right = draw_within(fold, None, None, places, places[4:], key, Every())
        assert right.rails is not None
        assert np.frombuffer(right.rails.tiles, "<i4").tolist() == [2, 2]
        fold.ranker.chances = 1.0
        found = fold.ranker.rank_among(places, np.arange(4), rng=rng)
        shown = within_reach(found.items, places, n_free=4, bound=case.bound)
        return right._replace(shown=shown, propensities=found.propensities, memo=(shown[:2], shown[2:]))

    found = _enumerate(case, _keys(2)[0], moved)
    assert not np.allclose(found.said, found.seen)
    taught = found.learnt > 0
    assert not np.allclose(found.learnt[taught], CLICKS[taught])


def _capped(cap: float, learn_from_all: bool) -> tuple[float, Any]:
    """The chance that a list explores, and the mean of what is learnt from a list that is learnt from."""
    fold = _fold(exploration_cap=cap)
    n_keys, explored, rounds = 400, 0.0, 0.0
    learnt = np.zeros((N_ITEMS, N_ITEMS))
    free = Free(np.array([0, 3, 4]), np.array([0, 1]), {})
    for i in range(n_keys):
        for chance, drawn in _drawn(
            lambda fold, key, rng: draw_within(fold, None, free, None, None, key, rng),
            fold,
            i.to_bytes(16, "little"),
        ):
            fold.ranker.sums[:] = 0.0
            clicks = CLICKS[drawn.shown, np.arange(len(drawn.shown))]
            if drawn.rails is not None:
                assert (drawn.shown.tolist(), drawn.explored) == ([3, 0], False)
            if learn_from_all and drawn.rails is not None:
                drawn = drawn._replace(rails=None, memo=(drawn.shown,))
            explored += chance * drawn.explored
            if guard_rails.learn(fold, _decision(drawn), clicks)[0]:
                rounds += chance
                learnt += chance * fold.ranker.sums
    return explored / n_keys, learnt / rounds


def test_the_cap_holds_and_what_is_learnt_stays_unbiased() -> None:
    share, learnt = _capped(0.3, learn_from_all=False)
    assert abs(share - 0.3) < 0.07  # three standard deviations of 400 coins
    reached = learnt > 0
    assert reached[:, :2].sum() == 6
    assert learnt[reached] == pytest.approx(CLICKS[reached])


def test_learning_from_the_best_list_as_if_it_were_drawn_is_biased() -> None:
    """The wrong version: the best list counts as one that could not have been another."""
    _, learnt = _capped(0.3, learn_from_all=True)
    reached = learnt > 0
    assert learnt[3, 0] == pytest.approx(CLICKS[3, 0])  # which the best list has there
    assert learnt[4, 0] < 0.5 * CLICKS[4, 0]
    assert reached.sum() == 6
