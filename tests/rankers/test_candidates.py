"""Lists from some of the items: exact chances, unbiased estimates, and the same rule as for all items."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import numpy as np
import pytest

from rankloop import rankers
from rankloop.base import Ranker, Ranking
from rankloop.kernels import list_plan

MADE: dict[str, dict[str, Any]] = {
    "CascadeKLUCB": {"n_positions": 3},
    "FTPL": {},
    "FTRLPBM": {"n_positions": 3},
    "GRAB": {"n_positions": 3},
    "MW": {"n_positions": 3, "eta": 0.05, "gamma": 0.1},
    "ClickMix": {"n_positions": 3, "insurance": 0.0},
    "PBMTS": {"n_positions": 3},
    "PEGE": {},
    "PrecisionFTRL": {"measure": "precision@2"},
    "RTop1F": {},
    "RankedExp3": {"n_positions": 3, "gamma": 0.1},
    "SemiBanditFTRL": {"measure": "dcg@2"},
    "TopFTRL": {},
    "TopRank": {"n_positions": 3, "delta": 0.9},
}


def _make(name: str, n_items: int = 5, **more: Any) -> Any:
    return getattr(rankers, name)(n_items=n_items, **(MADE[name] | more))


def _positions(ranker: Ranker, n: int) -> Any:
    return np.arange(min(n, ranker.n_positions or n))


def _copy(ranker: Any) -> Any:
    twin = ranker.clone()
    twin.load(ranker.save())
    return twin


def _rounds(ranker: Any, n: int, *, seed: int = 1, items: Any = None) -> Any:
    """Some rounds, from all items or always from the same ones; the lists."""
    rng = np.random.default_rng(seed)
    lists = []
    for _ in range(n):
        if items is None:
            shown = ranker.rank(rng=rng)
            told = rng.integers(0, 2, ranker.feedback.length(len(shown.items))).astype(float)
            ranker.learn(shown, told)
        else:
            where = _positions(ranker, len(items))
            shown = ranker.rank_among(items, where, rng=rng)
            told = rng.integers(0, 2, ranker.feedback_among(len(items)).length(len(shown.items))).astype(
                float
            )
            ranker.learn_among(shown, told, items, where)
        lists.append(shown.items)
    return lists


@pytest.mark.parametrize("name", sorted(MADE))
def test_all_items_as_candidates_teach_what_a_whole_list_does(name: str) -> None:
    ranker = _make(name)
    _rounds(ranker, 30)
    twin, rng = _copy(ranker), np.random.default_rng(2)
    every = np.arange(5)
    for _ in range(5):
        shown = ranker.rank(rng=rng)
        told = rng.integers(0, 2, ranker.feedback.length(len(shown.items))).astype(float)
        ranker.learn(shown, told)
        twin.learn_among(shown, told, every, _positions(twin, 5))
    for field, value in ranker.state_arrays().items():
        if field in {
            "leaders",
            "led",
            "fallbacks",
            "steps",
            "u",
            "v",
            "level",
            "due",
            *list_plan.Plan._fields,
        }:
            continue  # how a solver got there, which lists have led, and when TopRank looks again
        assert np.allclose(twin.state_arrays()[field], value, rtol=1e-6, atol=1e-9), field
    if isinstance(ranker, rankers.FTRLPBM):
        np.testing.assert_allclose(twin.x, ranker.x, rtol=1e-6, atol=1e-9)


# Not ClickMix and PBMTS: what they expect of an item is the mean of all items.
ALIKE = [
    "CascadeKLUCB",
    "FTPL",
    "FTRLPBM",
    "MW",
    "PrecisionFTRL",
    "RankedExp3",
    "SemiBanditFTRL",
    "TopRank",
]


@pytest.mark.parametrize("name", ALIKE)
def test_the_same_candidates_every_time_are_a_smaller_ranker(name: str) -> None:
    """Whatever else is in the catalogue: the same lists from the same randomness, and the same lessons."""
    items, rng = np.array([4, 1, 2]), np.random.default_rng(1)
    large, small = _make(name), _make(name, 3)
    where = _positions(small, 3)
    for seed in range(40):
        shown = small.rank(rng=np.random.default_rng(seed))
        if name != "MW":  # whose sampler takes apart weights that are equal but for rounding
            again = large.rank_among(items, where, rng=np.random.default_rng(seed))
            assert again.items.tolist() == items[shown.items].tolist()
        told = rng.integers(0, 2, small.feedback.length(3)).astype(float)
        small.learn(shown, told)
        same = Ranking(items[shown.items], shown.propensities, shown.memo, shown.explored)
        large.learn_among(same, told, items, where)
    part = large.among(items, where).state_arrays()
    for field, value in small.state_arrays().items():
        if field not in {"fallbacks", "steps", "u", "v", "level", "due"}:
            assert np.allclose(part[field], value, rtol=1e-6, atol=1e-9), field


def _lists(ranker: Any, items: Any, positions: Any) -> dict[tuple[int, ...], Ranking]:
    """Every list that can be drawn, as far as 400 draws show."""
    found: dict[tuple[int, ...], Ranking] = {}
    for seed in range(400):
        shown = ranker.rank_among(items, positions, rng=np.random.default_rng(seed))
        found[tuple(shown.items.tolist())] = shown
    return found


@pytest.mark.parametrize("name", ["FTRLPBM", "MW"])
@pytest.mark.parametrize(("items", "positions"), [([0, 2, 4], [1]), ([3, 1], [0, 2])])
def test_the_chances_of_lists_sum_to_one_and_are_those_of_the_draws(
    name: str, items: list[int], positions: list[int]
) -> None:
    ranker = _make(name)
    _rounds(ranker, 60)
    among, where = np.array(items), np.array(positions)
    found = _lists(ranker, among, where)
    # One position, or two items on two: the first item decides, so its chance is that of the list.
    chances = {shown: float(one.propensities[0]) for shown, one in found.items()}  # type: ignore[index]
    assert sum(chances.values()) == pytest.approx(1.0)
    draws = [
        tuple(ranker.rank_among(among, where, rng=np.random.default_rng(seed)).items.tolist())
        for seed in range(1_000, 3_000)
    ]
    for shown, chance in chances.items():
        assert draws.count(shown) / 2_000 == pytest.approx(
            chance, abs=4 * np.sqrt(chance * (1 - chance) / 2_000)
        )


@pytest.mark.parametrize("estimator", ["loss", "mean", "reduced-variance"])
@pytest.mark.parametrize(("items", "positions"), [([0, 2, 4], [1]), ([3, 1], [0, 2])])
def test_losses_of_clicks_are_unbiased_by_enumeration(
    estimator: str, items: list[int], positions: list[int]
) -> None:
    """FTRL-PBM: a candidate's estimate has the mean of its loss; what was none is charged what its position lost."""
    ranker = _make("FTRLPBM", estimator=estimator)
    _rounds(ranker, 60)
    among, where = np.array(items), np.array(positions)
    loss = np.random.default_rng(5).random((3, 5))  # by position and item
    mean = np.zeros((3, 5))
    lost = np.zeros(3)
    for shown in _lists(ranker, among, where).values():
        chance = float(shown.propensities[0])  # type: ignore[index]
        pairs = list(zip(positions, shown.items.tolist(), strict=True))
        for clicks in itertools.product([0.0, 1.0], repeat=len(pairs)):
            weight = chance
            for (j, i), click in zip(pairs, clicks, strict=True):
                weight *= 1 - loss[j, i] if click else loss[j, i]
            twin = _copy(ranker)
            twin.learn_among(shown, clicks, among, where)
            mean += weight * (twin.state.L_hat - ranker.state.L_hat)
        for j, i in pairs:
            lost[j] += chance * loss[j, i]
    for j in range(3):
        for i in range(5):
            expected = 0.0 if j not in positions else loss[j, i] if i in items else lost[j]
            assert mean[j, i] == pytest.approx(expected, abs=1e-9), (j, i)


def test_exponential_weights_treat_what_was_no_candidate_as_asleep() -> None:
    """The weight of the candidates at a position stays theirs, together, and the others' is as it was."""
    for name, field in (("RankedExp3", "w"), ("MW", "W")):
        ranker = _make(name, n_positions=1)
        _rounds(ranker, 40)
        before = getattr(ranker.state, field).copy()
        items, where = np.array([0, 2, 3]), np.array([0])
        shown = ranker.rank_among(items, where, rng=np.random.default_rng(1))
        click = [1.0] if name == "RankedExp3" else [0.0]  # the one that each of them moves at
        ranker.learn_among(shown, click, items, where)
        after = getattr(ranker.state, field)
        assert after[:, [1, 4]] == pytest.approx(before[:, [1, 4]])
        assert after[:, items].sum() == pytest.approx(before[:, items].sum())
        moved = after[0, shown.items[0]] - before[0, shown.items[0]]
        assert moved > 0 if name == "RankedExp3" else moved < 0


def test_sums_are_unbiased_means_over_the_rounds_in_which_an_item_was_a_candidate() -> None:
    """SemiBanditFTRL with one position: all draws of three rounds with other candidates each, enumerated."""
    loss = np.array([[0.9, 0.2, 0.4, 0.7], [0.1, 0.5, 0.3, 0.8], [0.6, 0.3, 1.0, 0.2]])  # by round and item
    relevance = np.log2(2.0 - loss)  # whose gain is 1 - loss
    offered = [[0, 1, 2, 3], [1, 2], [0, 2]]
    mean = np.zeros(4)

    def follow(ranker: Any, weight: float, t: int) -> None:
        if t == 3:
            nonlocal mean
            mean += weight * ranker.state.L_hat / 3
            return
        items = np.array(offered[t])
        found: dict[tuple[int, ...], Ranking] = {}
        for one in _lists(ranker, items, items).values():
            found[(int(one.items[0]),)] = one
        assert len(found) == len(items)
        for (i,), shown in found.items():
            chance = float(shown.memo[0][0])
            twin = _copy(ranker)
            twin.learn_among(shown, [relevance[t, i]], items, items)
            follow(twin, weight * chance, t + 1)

    follow(rankers.SemiBanditFTRL(n_items=4, measure="dcg@1"), 1.0, 0)
    for i in range(4):
        theirs = [loss[t, i] for t in range(3) if i in offered[t]]
        assert mean[i] == pytest.approx(np.mean(theirs)), i


def test_a_rare_item_that_is_better_comes_first() -> None:
    """Of an item that is a candidate in one round of five, its mean counts and not its sum."""
    rng = np.random.default_rng(1)
    ranker = rankers.FTPL(n_items=4, measure="dcg")
    relevance = np.array([0.3, 0.1, 0.1, 0.9])
    for t in range(400):
        items = np.arange(4 if t % 5 == 0 else 3)
        shown = ranker.rank_among(items, items, rng=rng)
        ranker.learn_among(shown, relevance[shown.items], items, items)
    assert ranker.current().tolist()[:2] == [3, 0]
    gains = np.where(relevance > 0, 2.0**relevance - 1, 0)
    assert ranker.state.r_sum / 400 == pytest.approx(gains)
    whole = ranker.rank(rng=rng)  # and a whole list counts as one with all of them
    ranker.learn(whole, relevance[whole.items])
    assert ranker.state.r_sum / 401 == pytest.approx(gains)
    assert ranker.missed is not None
    assert ranker.missed.tolist() == [0, 0, 0, 320]
    assert not ranker.fusable  # the compiled loop would not count them
    twin = _copy(ranker)
    assert twin.missed is not None
    assert twin.missed.tolist() == [0, 0, 0, 320]


def test_missed_rounds_must_be_counts() -> None:
    ranker = rankers.FTPL(n_items=2)
    _rounds(ranker, 3, items=np.array([0]))
    saved = ranker.save()
    for wrong in (np.array([0, 9]), np.array([0.0, 3.0]), np.array([0]), np.array([-1, 0])):
        with pytest.raises(ValueError, match="saved state 'missed' must"):
            rankers.FTPL(n_items=2).load(saved | {"missed": wrong})


def _counts(ranker: Any) -> Any:
    return np.array(ranker.wins + ranker.wins.T if hasattr(ranker, "wins") else ranker.state.N)


def test_counts_are_of_the_items_that_were_shown() -> None:
    for name in ("CascadeKLUCB", "GRAB", "PBMTS", "TopRank"):
        ranker = _make(name)
        _rounds(ranker, 30)
        before = _counts(ranker)
        items, where = np.array([0, 2, 3]), np.array([0, 2])
        shown = ranker.rank_among(items, where, rng=np.random.default_rng(1))
        ranker.learn_among(shown, [0.0, 1.0], items, where)
        more = _counts(ranker) - before
        if name == "CascadeKLUCB":
            assert more.tolist() == [float(i in shown.items) for i in range(5)]
        elif name == "TopRank":
            assert more[[1, 4]].sum() == more[:, [1, 4]].sum() == 0.0
            assert more.sum() > 0
        else:
            assert more.sum() == 2.0
            assert more[0, shown.items[0]] == more[2, shown.items[1]] == 1.0


def test_toprank_shuffles_the_candidates_of_a_block() -> None:
    ranker = _make("TopRank")
    worse = np.zeros((5, 5), np.bool_)
    worse[2, [0, 4]] = True
    none = np.zeros((5, 5), np.int64)
    ranker._know(np.zeros(1, np.int64), none[0], none, worse)
    items, where = np.array([0, 2, 4]), np.arange(3)
    found = _lists(ranker, items, where)
    assert set(found) == {(0, 4, 2), (4, 0, 2)}
    for shown in found.values():
        assert shown.propensities is not None
        assert shown.propensities.tolist() == [0.5, 0.5, 1.0]


def test_top1_explores_the_candidates_that_are_due_with_the_chance_it_says() -> None:
    ranker = _make("RTop1F")
    _rounds(ranker, 7)
    state = ranker.state
    items = np.array([1, 3, 4])
    due = set(state.slots[: state.n_open[0]].tolist()) & set(items.tolist())
    assert due
    said = 1.0 / max(int(state.left[0]), len(due))
    explored = dict.fromkeys(sorted(due), 0)
    for seed in range(4_000):
        shown = ranker.rank_among(items, items, rng=np.random.default_rng(seed))
        assert sorted(shown.items.tolist()) == items.tolist()
        if shown.explored:
            assert shown.memo[0][0] == said
            explored[int(shown.items[0])] += 1
    for count in explored.values():
        assert count / 4_000 == pytest.approx(said, abs=4 * np.sqrt(said / 4_000))


def test_a_block_does_not_wait_for_an_item_that_is_no_candidate() -> None:
    ranker = _make("RTop1F")
    items = np.array([0, 1, 2, 3])  # never 4
    rng = np.random.default_rng(1)
    for _ in range(600):
        shown = ranker.rank_among(items, items, rng=rng)
        ranker.learn_among(shown, [float(shown.items[0] == 2)], items, items)
    assert ranker.state.epoch[0] == 2  # hundreds of rounds and dozens of blocks
    assert ranker.current()[0] == 2
    with pytest.raises(ValueError, match="RTop1F takes no candidates: with k > 1"):
        _make("RTop1F", k=2).rank_among(items, items, rng=rng)
    with pytest.raises(ValueError, match="RTop1F takes no candidates: with k > 1"):
        _make("RTop1F", k=2).learn_among(shown, [0.0, 0.0], items, items)


def test_phased_exploration_of_some_candidates() -> None:
    ranker = _make("PEGE", k=2)
    items = np.array([4, 0])
    rng = np.random.default_rng(1)
    for _ in range(30):
        shown = ranker.rank_among(items, items, rng=rng)
        ranker.learn_among(shown, (shown.items == 4).astype(float), items, items)
    assert ranker.state.due.tolist() == [0, 1, 1, 1, 0]
    assert ranker.rank_among(items, items, rng=rng).items.tolist() == [4, 0]  # what it found counts at once
    with pytest.raises(ValueError, match="must be candidates"):
        ranker.learn_among(Ranking(np.array([1, 2]), None, (np.ones(1),)), [1.0, 1.0], items, items)


@pytest.mark.parametrize("name", ["FeedExp3", "PMED"])
def test_one_of_whole_lists_says_why(name: str) -> None:
    ranker = getattr(rankers, name)(n_items=4)
    items = np.array([0, 1])
    with pytest.raises(ValueError, match=f"{name} takes no candidates: its"):
        ranker.rank_among(items, items, rng=np.random.default_rng(1))


def test_what_a_new_order_costs_is_the_mean_of_the_orders_that_agree() -> None:
    """FeedExp3, by hand: item 1 is retired, another comes."""
    old = rankers.FeedExp3(n_items=3)
    old.state.L_tilde[:] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]  # 012 021 102 120 201 210
    new = copy.deepcopy(rankers.FeedExp3(n_items=3))
    new.carry(old, np.array([0, 2, -1]))
    first = (1.0 + 2.0 + 3.0) / 3  # 0 before 2
    last = (4.0 + 5.0 + 6.0) / 3
    orders = [tuple(order) for order in new.params.orders.tolist()]
    for order, loss in zip(orders, new.state.L_tilde, strict=True):
        assert loss == pytest.approx(first if order.index(0) < order.index(1) else last)
