"""TopFTRL: unbiased estimates and exact propensities by enumeration, its bound step by step, and what it achieves."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rankloop import environments, rankers
from rankloop.base import Floats, Ranking
from rankloop.kernels import permutahedron
from rankloop.rankers import top_ftrl
from rankloop.simulation import play
from tests.kernels.test_permutahedron import lists, moved

FALLING = np.linspace(0.9, 0.1, 10)


def at(G: list[float], *, beta: float, **settings: Any) -> rankers.TopFTRL:
    """A ranker that has learnt G so far."""
    ranker = rankers.TopFTRL(n_items=len(G), **settings)
    ranker.state.G_hat[:] = G
    ranker.state.beta[0] = beta
    permutahedron.sort_again(ranker.state.G_hat, ranker.state.order)
    top_ftrl.prepare(ranker.params, ranker.state, ranker.scratch(len(G)))
    return ranker


STATES = [
    ([3.0, 9.0, 1.0, 8.5], 20.0),  # two pairs that are not clear
    ([0.0, 50.0, 100.0, 400.0], 30.0),  # all clear
    ([0.0, 0.0, 60.0, 60.0], 40.0),  # ties
]


def outcomes(ranker: rankers.TopFTRL) -> list[tuple[float, tuple[int, ...], int]]:
    """Every list of items that can be shown, its chance, and the place that was moved or -1."""
    state, k = ranker.state, ranker.params.k
    found = []
    for weight, places in lists(state.breaks):
        for place in (-1, *range(ranker.n_items)):
            share = 1 - state.explore.sum() if place < 0 else state.explore[place]
            shown = places if place < 0 else moved(places, place, k)
            found.append((weight * share, tuple(state.order[list(shown)].tolist()), place))
    return found


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize(("G", "beta"), STATES)
def test_the_estimates_are_unbiased_by_enumeration(G: list[float], beta: float, k: int) -> None:
    ranker = at(G, beta=beta, k=k)
    m, state = ranker.n_items, ranker.state
    relevance = np.array([1.0, 0.0, 1.0, 0.0])
    place_of = np.argsort(state.order)
    mean, forgetful = np.zeros(m), np.zeros(m)
    without = np.empty(m)
    permutahedron.first_chances(state.breaks, k, without)
    for chance, shown, place in outcomes(ranker):
        for position, item in enumerate(shown[:k]):
            if place < 0 or place_of[item] == place or position < k - 1:
                mean[item] += chance * (relevance[item] - 0.5) / state.observed[place_of[item]]
                forgetful[item] += chance * (relevance[item] - 0.5) / max(without[place_of[item]], 1e-9)
    np.testing.assert_allclose(mean, relevance - 0.5, atol=1e-9)
    assert (
        np.abs(forgetful - (relevance - 0.5)).max() > 1e-3 or state.explore.sum() < 1e-3
    )  # the wrong weights


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize(("G", "beta"), STATES)
def test_propensities_are_exact(G: list[float], beta: float, k: int) -> None:
    ranker = at(G, beta=beta, k=k)
    expected = np.zeros((4, 4))
    for chance, shown, _ in outcomes(ranker):
        expected[np.arange(4), shown] += chance
    np.testing.assert_allclose(ranker.chances(), expected, atol=1e-12)
    for seed in range(50):
        shown_now = ranker.rank(rng=np.random.default_rng(seed))
        np.testing.assert_allclose(
            shown_now.propensities, expected[np.arange(4), shown_now.items], atol=1e-12
        )
    means = ranker.mean_by_position(None, shown_now, np.eye(4))
    np.testing.assert_allclose(means, expected[:, shown_now.items[:k]], atol=1e-12)


@pytest.mark.parametrize("k", [1, 2])
def test_lists_come_as_often_as_they_should(k: int) -> None:
    ranker = at([3.0, 9.0, 1.0, 8.5], beta=20.0, k=k)
    rng, n = np.random.default_rng(1), 4_000
    counts: dict[tuple[tuple[int, ...], bool], int] = {}
    for _ in range(n):
        shown = ranker.rank(rng=rng)
        key = (tuple(shown.items.tolist()), shown.explored)
        counts[key] = counts.get(key, 0) + 1
    expected: dict[tuple[tuple[int, ...], bool], float] = {}
    for chance, items, place in outcomes(ranker):
        expected[items, place >= 0] = expected.get((items, place >= 0), 0.0) + chance
    assert set(counts) <= set(expected)
    for key, chance in expected.items():
        assert abs(counts.get(key, 0) / n - chance) <= 5 * np.sqrt(chance / n)


def conjugate(G: Floats, f: Floats, beta: float) -> float:
    """max over lists' means p of p . G - beta |p|^2 / 2."""
    order, scratch = np.arange(len(f)), permutahedron.leader_scratch(len(f))
    permutahedron.sort_again(G, order)
    permutahedron.lead(G, order, f, beta, scratch)
    return float(scratch.p @ G[order] - beta * scratch.p @ scratch.p / 2)


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("seed", range(8))
def test_the_cost_of_a_round_is_never_less_than_the_proof_s(seed: int, k: int) -> None:
    """The mean over all outcomes of the Bregman divergence that the proof bounds, plus what exploration costs."""
    rng = np.random.default_rng(seed)
    G = rng.normal(size=4) * 10 ** rng.uniform(0, 2.5)
    ranker = at(G.tolist(), beta=10 ** rng.uniform(1, 2.5), k=k)
    state, f = ranker.state, ranker.params.f
    beta, place_of = float(state.beta[0]), np.argsort(state.order)
    scratch = permutahedron.leader_scratch(4)
    permutahedron.lead(G, state.order, f, beta, scratch)
    for relevance in itertools.product((0.0, 1.0), repeat=4):
        mean, lost = 0.0, 0.0
        for chance, shown, place in outcomes(ranker):
            step = np.zeros(4)
            for position, item in enumerate(shown[:k]):
                if place < 0 or place_of[item] == place or position < k - 1:
                    step[item] = (relevance[item] - 0.5) / state.observed[place_of[item]]
            linear = float(scratch.p[place_of] @ step)
            mean += chance * (conjugate(G + step, f, beta) - conjugate(G, f, beta) - linear)
            lost -= chance * float(f @ np.array(relevance)[list(shown)])
        lost += float(scratch.p[place_of] @ np.array(relevance))
        assert mean + lost <= state.cost[0] + 1e-9
        assert mean >= -1e-9


@pytest.mark.parametrize(
    "settings", [{}, {"k": 2}, {"measure": "sum_loss"}, {"measure": "precision@2", "max_grade": 3}]
)
def test_beta_grows_as_the_proof_needs(settings: dict[str, Any]) -> None:
    rng = np.random.default_rng(1)
    ranker = rankers.TopFTRL(n_items=5, **settings)
    scratch, params, n = permutahedron.leader_scratch(5), ranker.params, ranker.max_grade or 1
    times = 1 if params.k == 1 else 2
    a = 5 * params.largest_gain * np.sqrt(times * top_ftrl.CAUTION * params.largest_gain * params.f[0] / 2)
    for t in range(300):
        state = ranker.state
        beta, cost = float(state.beta[0]), float(state.cost[0])
        assert cost <= a / np.sqrt(beta) + 1e-9
        assert state.explore.sum() < 1
        shown = ranker.rank(rng=rng)
        wanted = (np.arange(5) < 2) if t < 150 else (np.arange(5) > 2)
        ranker.learn(shown, (n * wanted[shown.items[: params.k]]).astype(float))
        step = float(state.beta[0]) - beta
        distance = permutahedron.lead(state.G_hat, state.order, params.f, float(state.beta[0]), scratch)
        assert step >= top_ftrl.KAPPA * cost / params.farthest - 1e-9
        assert step * distance <= top_ftrl.KAPPA * cost + 1e-9


def bernoulli(chances: Any) -> Callable[[], environments.FixedItems]:
    return lambda: environments.FixedItems(environments.users.bernoulli(chances), measure="dcg")


def regret(people: environments.FixedItems, ranker: Any, *, rounds: int, seeds: int) -> float:
    runs = [
        play(ranker(), people, rounds=rounds, seed=seed, points=1, progress=False).total_regret
        for seed in range(1, seeds + 1)
    ]
    return float(np.mean(runs))


def halves() -> environments.FixedItems:
    return environments.FixedItems(environments.users.noisy_halves(n_items=10), measure="dcg")


# Over ten runs it is 456 ± 63, 1,130 ± 65 and 1,284 ± 58.
@pytest.mark.parametrize(
    ("people", "most"),
    [(halves, 2_700), (bernoulli(FALLING), 1_400), (bernoulli(np.linspace(0.6, 0.4, 10)), 1_500)],
    ids=["halves", "0.9 to 0.1", "0.6 to 0.4"],
)
def test_regret_where_users_stay(people: Callable[[], environments.FixedItems], most: float) -> None:
    assert regret(people(), lambda: rankers.TopFTRL(n_items=10), rounds=100_000, seeds=5) < most


@pytest.mark.parametrize("period", [2_000, 20_000])
def test_regret_where_users_change(period: int) -> None:
    users = environments.users.switching([FALLING, FALLING[::-1]], period=period)
    people = environments.FixedItems(users, measure="dcg")
    ours = regret(people, lambda: rankers.TopFTRL(n_items=10), rounds=100_000, seeds=3)
    assert ours < 2 * max(regret(people, lambda: rankers.RTop1F(n_items=10), rounds=100_000, seeds=3), 0)


def test_a_rival_that_trusts_what_it_found_does_not_notice_a_change() -> None:
    users = environments.users.switching([FALLING, *[FALLING[::-1]] * 4], period=20_000)
    people = environments.FixedItems(users, measure="dcg")
    ours = regret(people, lambda: rankers.TopFTRL(n_items=10), rounds=100_000, seeds=3)
    assert regret(people, lambda: rankers.PEGE(n_items=10), rounds=100_000, seeds=3) > 2 * ours


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("measure", ["dcg", "sum_loss", "precision@3"])
def test_the_bound_holds_where_users_reverse(measure: str, k: int) -> None:
    for period in (50, 700):
        users = environments.users.switching([FALLING[:6], FALLING[5::-1]], period=period)
        people = environments.FixedItems(users, measure=measure)
        ranker = rankers.TopFTRL(n_items=6, measure=measure, k=k)
        lost = play(ranker, people, rounds=4_000, seed=period, points=1, progress=False).total_regret
        assert lost <= ranker.regret_bound(4_000)


def test_the_bound_is_below_that_of_rtop1f() -> None:
    ours = rankers.TopFTRL(n_items=10)
    bounds = [ours.regret_bound(T) for T in (1, 100, 10**4, 10**6)]
    assert bounds == sorted(bounds)
    for T in (10**4, 10**6, 10**8):
        assert ours.regret_bound(T) < 0.2 * rankers.RTop1F(n_items=10, horizon=T).regret_bound()
    assert ours.regret_bound(10**9) / ours.regret_bound(10**6) == pytest.approx(100, rel=0.01)  # T^(2/3)
    assert rankers.TopFTRL(n_items=1).regret_bound(10) == 0.0


def test_open_lists_do_not_explore_more() -> None:
    ranker = rankers.TopFTRL(n_items=8)
    rng, relevant = np.random.default_rng(1), np.linspace(0.9, 0.1, 8)
    waiting: list[Ranking] = []
    explored = 0
    for t in range(3_000):
        waiting.append(ranker.rank(rng=rng))
        explored += t >= 2_000 and waiting[-1].explored
        if t % 40 == 39:  # all at once, in any order, a tenth of them never
            for i in rng.permutation(40)[:36]:
                ranker.learn(waiting[i], [float(rng.random() < relevant[waiting[i].items[0]])])
            waiting.clear()
    assert explored < 0.1 * 1_000
    assert sorted(ranker.current()[:3]) == [0, 1, 2]


def test_more_revealed_is_better() -> None:
    people = bernoulli(FALLING)()
    lost = [
        regret(people, lambda k=k: rankers.TopFTRL(n_items=10, k=k), rounds=20_000, seeds=3)
        for k in (1, 3, 10)
    ]
    assert lost[0] > 1.3 * lost[1] > 2 * lost[2]


def test_graded_relevance() -> None:
    chances = np.array([[0.1, 0.1, 0.8], [0.2, 0.6, 0.2], [0.8, 0.1, 0.1], [0.9, 0.1, 0.0]])[::-1]
    people = environments.FixedItems(environments.users.graded(chances), measure="dcg")
    ranker = rankers.TopFTRL(n_items=4, max_grade=2)
    play(ranker, people, rounds=20_000, seed=1, points=1, progress=False)
    assert ranker.current().tolist() == [3, 2, 1, 0]
    with pytest.raises(ValueError, match="at most max_grade=2"):
        ranker.learn(ranker.rank(rng=np.random.default_rng(1)), [3.0])


def test_items_come_and_go() -> None:
    old = at([10.0, 300.0, 20.0], beta=30.0)
    new = rankers.TopFTRL(n_items=3)
    new.carry(old, np.array([1, -1, 0]))
    assert new.state.G_hat.tolist() == [300.0, 300.0, 10.0]
    assert new.current().tolist() == [0, 1, 2]
    shown = old.rank(rng=np.random.default_rng(1))
    assert shown.items[0] == 1
    later = new.translate(shown, np.array([0, 2, -1]))
    assert later is not None
    assert later.items.tolist() == [0, 2, 1]
    new.learn(later, [1.0])
    assert new.state.G_hat[0] > 300
    assert new.translate(shown, np.array([-1, 2, 0])) is None
    grown = rankers.TopFTRL(n_items=30)
    grown.carry(old, np.array([0, 1, 2, *[-1] * 27]))
    assert grown.state.explore.sum() < 1  # beta is raised to what thirty items need


def test_bad_input() -> None:
    wrong_settings: list[dict[str, Any]] = [
        {"n_items": 0},
        {"n_items": 3, "k": 4},
        {"n_items": 3, "measure": "ndcg"},
    ]
    for settings in wrong_settings:
        with pytest.raises(ValueError, match=str(list(settings)[-1])):
            rankers.TopFTRL(**settings)
    ranker = rankers.TopFTRL(n_items=3)
    shown = ranker.rank(rng=np.random.default_rng(1))
    for wrong in (-0.1, 1.5, 1e-200, np.nan):
        with pytest.raises(ValueError, match="memo must hold chances"):
            ranker.learn(Ranking(shown.items, shown.propensities, (np.array([wrong]),), False), [1.0])
    for name, value in (("beta", 0.1), ("order", [0, 0, 1]), ("breaks", [0.5, 0.5, 1.0]), ("cost", 7.0)):
        saved = ranker.state_arrays()
        saved[name] = np.broadcast_to(value, saved[name].shape).astype(saved[name].dtype)
        with pytest.raises(ValueError, match=name):
            ranker.load(saved)
