"""FeedExp3, and the exact pseudo-inverse that it needs."""

from __future__ import annotations

from itertools import permutations, product
from math import factorial

import numpy as np
import pytest

from rankloop import environments, games, measures, rankers, simulation
from rankloop.base import Ranking
from rankloop.rankers.feedexp3 import pseudoinverse


def H_of(ranker: rankers.FeedExp3) -> np.ndarray:
    """What each order, or pool of orders, shows: a row for each pattern but zeros, a column for each outcome."""
    p = ranker.params
    grades = range(ranker.max_grade + 1)
    rows = []
    for pool in range(p.n_pools):
        order = p.orders[list(p.pool).index(pool)]
        for pattern in range(1, p.n_patterns + 1):
            labels = [(pattern // p.n_grades**i) % p.n_grades for i in range(p.k)]
            rows.append(
                [[r[item] for item in order[: p.k]] == labels for r in product(grades, repeat=ranker.n_items)]
            )
    return np.array(rows, dtype=float)


def L_of(ranker: rankers.FeedExp3) -> np.ndarray:
    outcomes = np.array(list(product(range(ranker.max_grade + 1), repeat=ranker.n_items)))
    L = np.asarray(ranker.measure(ranker.params.orders[:, None], outcomes[None]))
    return (L if ranker.measure.is_loss else -L) / ranker.scale


@pytest.mark.judges("2015-033")
@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize(
    ("measure", "m", "k", "max_grade"),
    [
        ("sum_loss", 3, 1, 1),
        ("dcg", 4, 1, 1),
        ("dcg", 3, 1, 2),
        ("ndcg", 3, 2, 1),
        ("average_precision", 3, 2, 1),
        ("auc", 3, 1, 1),
        ("pairwise_loss", 3, 2, 2),
        ("err@2", 3, 2, 1),
    ],
)
def test_losses_are_k_times_h(measure: str, m: int, k: int, max_grade: int, pooled: bool) -> None:
    ranker = rankers.FeedExp3(n_items=m, measure=measure, k=k, max_grade=max_grade, pooled=pooled)
    made = ranker.params.K @ H_of(ranker)
    L = L_of(ranker)
    # Up to what is the same for all orders.
    np.testing.assert_allclose(made - made.mean(axis=0), L - L.mean(axis=0), atol=1e-9)


@pytest.mark.judges("2015-033")
@pytest.mark.parametrize("m", [3, 4, 5])
def test_the_papers_coefficients(m: int) -> None:
    # k(a, b) = sigma_a(top(b)) / (m - 1)!, of losses that are not scaled; largest 1.5 for m = 3 and 1 from m = 4 on.
    ranker = rankers.FeedExp3(n_items=m, measure="sum_loss")
    orders = ranker.params.orders
    ranks = np.argsort(orders, axis=1) + 1
    wanted = ranks[:, orders[:, 0]] / factorial(m - 1)
    np.testing.assert_allclose(ranker.params.K * ranker.scale, wanted, atol=1e-9)
    assert ranker.scale == m * (m + 1) / 2
    assert np.abs(wanted).max() == pytest.approx(m / factorial(m - 1))
    pooled = rankers.FeedExp3(n_items=m, measure="sum_loss", pooled=True)
    np.testing.assert_allclose(pooled.params.K * pooled.scale, ranks, atol=1e-9)


@pytest.mark.parametrize("pooled", [False, True])
def test_estimates_are_unbiased_by_enumeration(pooled: bool) -> None:
    make = lambda: rankers.FeedExp3(n_items=3, measure="dcg", pooled=pooled)  # noqa: E731
    ranker = make()
    ranker.state.L_tilde[:] = np.random.default_rng(1).random(6) * 4
    ranker.state.t[0] = 200
    saved = ranker.save()
    eta = ranker.params.eta * 201 ** (-2 / 3)
    gamma = min(1.0, ranker.params.gamma * 201 ** (-1 / 3))
    weights = np.exp(-eta * saved["L_tilde"])
    p = (1 - gamma) * weights / weights.sum() + gamma / 6
    assert 0 < gamma < 1
    pool = ranker.params.pool
    for x, r in enumerate(product((0.0, 1.0), repeat=3)):
        mean = np.zeros(6)
        for action, order in enumerate(permutations(range(3))):
            chance = p[pool == pool[action]].sum()
            other = make()
            other.load(saved)
            ticket = Ranking(np.array(order), None, (np.array([action]), np.array([chance])))
            other.learn(ticket, [r[order[0]]])
            mean += p[action] * (other.state.L_tilde - saved["L_tilde"])
        np.testing.assert_allclose(mean, L_of(ranker)[:, x], atol=1e-12)


def test_the_chance_in_the_ticket_is_right() -> None:
    ranker = rankers.FeedExp3(n_items=3, measure="sum_loss", pooled=True)
    ranker.state.L_tilde[:] = [0, 1, 2, 3, 4, 5]
    ranker.state.t[0] = 500
    rng, draws = np.random.default_rng(2), 8_000
    tops, told = np.zeros(3), np.zeros(3)
    for _ in range(draws):
        shown = ranker.rank(rng=rng)
        tops[shown.items[0]] += 1
        told[shown.items[0]] = shown.memo[1][0]
    assert told.sum() == pytest.approx(1)
    assert (np.abs(tops / draws - told) < 5 * np.sqrt(told * (1 - told) / draws)).all()


@pytest.mark.parametrize("m", [2, 3])
def test_it_takes_exactly_the_games_that_can_be_learnt(m: int) -> None:
    for family in measures.names():
        name = f"{family}@1" if family == "precision" else family
        for k in range(1, m + 1):
            if games.classify(games.ranking_game(measure=name, n_items=m, k=k)).class_ == "hopeless":
                with pytest.raises(ValueError, match="cannot be learnt from the top"):
                    rankers.FeedExp3(n_items=m, measure=name, k=k)
            else:
                rankers.FeedExp3(n_items=m, measure=name, k=k)


@pytest.mark.judges("2015-041")
def test_too_many_orders_are_refused_with_their_number() -> None:
    with pytest.raises(ValueError, match="n_items=8 makes 40,320 orders"):
        rankers.FeedExp3(n_items=8, pooled=True)
    with pytest.raises(ValueError, match="n_items=7 makes 5,040 orders"):
        rankers.FeedExp3(n_items=7)
    assert len(rankers.FeedExp3(n_items=6, pooled=True).state.L_tilde) == 720


def test_it_learns_and_pooling_helps() -> None:
    people = environments.FixedItems(environments.users.bernoulli([0.9, 0.5, 0.1]), measure="sum_loss")
    T = 30_000
    lost = {}
    for pooled in (False, True):
        runs = []
        for seed in range(3):
            people.restart()
            ranker = rankers.FeedExp3(n_items=3, measure="sum_loss", pooled=pooled)
            runs.append(simulation.play(ranker, people, rounds=T, seed=seed, points=1).total_regret)
            assert ranker.current().tolist() == [0, 1, 2]
        lost[pooled] = np.mean(runs)
        assert lost[pooled] < ranker.regret_bound(T)
    assert lost[True] < lost[False]
    people.restart()
    random = simulation.play(rankers.Uniform(n_items=3), people, rounds=T, seed=1, points=1).total_regret
    assert lost[False] < 0.7 * random


def test_odd_tickets_and_feedback_are_refused() -> None:
    ranker = rankers.FeedExp3(n_items=3)
    shown = ranker.rank(rng=np.random.default_rng(1))
    with pytest.raises(ValueError, match="whole grades"):
        ranker.learn(shown, [0.5])
    other = (int(shown.memo[0][0]) + 1) % 6
    with pytest.raises(ValueError, match="number of the order"):
        ranker.learn(Ranking(shown.items, None, (np.array([other]), shown.memo[1])), [1.0])
    with pytest.raises(ValueError, match="chance in"):
        ranker.learn(Ranking(shown.items, None, (shown.memo[0], np.array([0.0]))), [1.0])
    with pytest.raises(ValueError, match="must not be negative"):
        ranker.load(ranker.save() | {"t": np.array([-1])})


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (5, 3), (12, 7), (30, 16)])
@pytest.mark.parametrize("rank", [1, 2, 4])
def test_it_is_that_of_numpy(shape: tuple[int, int], rank: int) -> None:
    rng = np.random.default_rng(sum(shape) + rank)
    H = rng.integers(-2, 3, (shape[0], rank)) @ rng.integers(-2, 3, (rank, shape[1]))
    np.testing.assert_allclose(pseudoinverse(H), np.linalg.pinv(H.astype(float), rcond=1e-10), atol=1e-12)


def test_rows_that_stand_twice_share() -> None:
    H = np.array([[1, 0], [1, 0], [0, 2]])
    assert pseudoinverse(H).tolist() == [[0.5, 0.5, 0.0], [0.0, 0.0, 0.5]]


def test_of_zeros() -> None:
    assert pseudoinverse(np.zeros((3, 2), np.int64)).tolist() == [[0.0] * 3] * 2


def test_every_entry_is_the_nearest_number() -> None:
    assert pseudoinverse(np.array([[3]])).tolist() == [[1 / 3]]
    assert pseudoinverse(np.array([[1, 1, 1]])).tolist() == [[1 / 3]] * 3
