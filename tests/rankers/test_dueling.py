"""DBGD and MGD: each step is that of a slow version, the winners are those of the clicks, and they learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rankloop import data, environments, rankers, simulation
from rankloop.base import Floats, Ints, Ranking
from rankloop.feedback import TopClicks
from rankloop.kernels.jit import kernel
from rankloop.measures import ndcg
from rankloop.rankers import dueling

DIRECTION = kernel(dueling.direction.py_func)  # type: ignore[attr-defined]


def tried(key: Any, d: int, n_candidates: int) -> Floats:
    """The directions of a list, a row for each candidate."""
    rows = np.empty((n_candidates, d))
    for number, row in enumerate(rows):
        DIRECTION(np.uint64(key), number, row)
    return rows


def credits_of(orders: Ints, shown: Ints, tau: float) -> Floats:
    """P(ranker i was drawn at position j | the list), from the definition."""
    chances = np.empty((len(orders), len(shown)))
    for i, order in enumerate(orders):
        weight = {int(item): (place + 1.0) ** -tau for place, item in enumerate(order)}
        for j, item in enumerate(shown):
            left = sum(weight[other] for other in weight if other not in shown[:j])
            chances[i, j] = weight[int(item)] / left
    return chances / chances.sum(axis=0)


@pytest.mark.parametrize("d", [1, 2, 7, 46])
def test_directions_are_unit_vectors_all_equally_likely(d: int) -> None:
    rows = np.array([tried(key, d, 2) for key in range(1, 1001)]).reshape(-1, d)
    np.testing.assert_allclose((rows**2).sum(axis=1), 1.0, rtol=1e-14)
    n = len(rows)
    assert (np.abs(rows.mean(axis=0)) < 5 / np.sqrt(n * d)).all()
    spread = rows.T @ rows / n - np.eye(d) / d
    assert np.abs(spread).max() < 5 * np.sqrt(2.0 / n) / d + 1e-12
    if d >= 7:  # two of one key have nothing to do with each other
        pairs = rows.reshape(-1, 2, d)
        assert abs((pairs[:, 0] * pairs[:, 1]).sum(axis=1).mean()) < 5 / np.sqrt(d * len(pairs))


@pytest.mark.parametrize(
    ("n_candidates", "k", "tau", "power", "radius"),
    [(1, 10, 3.0, 0.0, None), (4, 3, 1.0, 0.5, None), (9, 4, 3.0, 0.0, 0.2)],
)
def test_each_step_is_that_of_the_slow_version(
    n_candidates: int, k: int, tau: float, power: float, radius: float | None
) -> None:
    d, delta, alpha = 5, 0.7, 0.3
    ranker = rankers.MGD(
        n_features=d,
        n_positions=k,
        n_candidates=n_candidates,
        learning_rate=(alpha, power),
        delta=delta,
        tau=tau,
        radius=radius,
    )
    rng, users = np.random.default_rng(1), np.random.default_rng(2)
    w, moved = np.zeros(d), 0
    for t in range(1, 61):
        documents = users.random((int(users.integers(1, 9)), d))
        shown = ranker.rank(documents, rng=rng)
        u = tried(shown.memo[1][0], d, n_candidates)
        m = min(k, len(documents))
        assert sorted(shown.items.tolist()) == list(range(len(documents)))
        orders = np.argsort(-(documents @ np.vstack([w, w + delta * u]).T), axis=0, kind="stable").T
        if w.any():  # at first all documents are level for the present ranker, and its order is drawn
            wanted = credits_of(orders, shown.items[:m], tau)
            np.testing.assert_allclose(shown.memo[0], wanted, rtol=1e-9)
            rest = [item for item in orders[0] if item not in shown.items[:m]]
            assert shown.items[m:].tolist() == rest
            assert shown.explored == (shown.items[:m].tolist() != orders[0][:m].tolist())
        clicks = users.integers(0, 2, m).astype(float)
        ranker.learn(shown, clicks)
        credit = shown.memo[0] @ clicks
        winners = credit[1:] > credit[0] + 1e-9
        if winners.any():
            moved += 1
            w = w + alpha * t**-power * u[winners].mean(axis=0)
            if radius is not None:
                w *= min(1.0, radius / np.linalg.norm(w))
        np.testing.assert_allclose(ranker.state.w, w, rtol=1e-9, atol=1e-12)
    assert moved > 10
    assert ranker.state.t[0] == 60


def test_dbgd_is_mgd_with_one_candidate() -> None:
    one, other = (
        rankers.DBGD(n_features=4, n_positions=3),
        rankers.MGD(n_features=4, n_positions=3, n_candidates=1),
    )
    rng_one, rng_other, users = (np.random.default_rng(seed) for seed in (1, 1, 2))
    for _ in range(30):
        documents = users.random((6, 4))
        shown, same = one.rank(documents, rng=rng_one), other.rank(documents, rng=rng_other)
        np.testing.assert_array_equal(shown.items, same.items)
        clicks = users.integers(0, 2, 3)
        one.learn(shown, clicks)
        other.learn(same, clicks)
    assert one.state.w.any()
    np.testing.assert_array_equal(one.state.w, other.state.w)


def test_nobody_wins_without_a_difference() -> None:
    ranker = rankers.MGD(n_features=3, n_positions=5, n_candidates=6, learning_rate=1.0)
    rng = np.random.default_rng(1)
    for clicks in (np.zeros(5), np.ones(5)):
        # No click: no credit. One document, or the same five times over: no ranker is better.
        ranker.learn(ranker.rank(rng.random((5, 3)), rng=rng), np.zeros(5))
        ranker.learn(ranker.rank(rng.random((1, 3)), rng=rng), clicks[:1])
    assert not ranker.state.w.any()
    ranker.state.w[:] = [3.0, 2.0, 1.0]
    before = ranker.state.w.copy()
    # Far from zero, all candidates order these documents alike; only rounding could tell their credits apart.
    documents = 1000.0 * np.arange(40)[:, None] * np.array([[1.0, 1.0, 1.0]])
    for _ in range(50):
        ranker.learn(ranker.rank(documents, rng=rng), [1, 0, 1, 0, 1])
    np.testing.assert_array_equal(ranker.state.w, before)


@pytest.mark.parametrize("kind", [rankers.DBGD, rankers.MGD])
def test_they_learn_from_clicks(kind: type[rankers.MGD]) -> None:
    queries = data.synthetic_letor(n_queries=100, n_features=10, seed=3)
    users = environments.ClickedQueries(queries, clicks="perfect")
    judge = environments.QueryStream(queries, measure="ndcg@10")
    ranker = kind(n_features=10)
    before = judge.greedy_values(ranker.state.w).mean()
    simulation.play(ranker, users, rounds=6_000, seed=1)
    assert judge.greedy_values(ranker.state.w).mean() > before + 0.2


def test_more_candidates_learn_faster_under_noise() -> None:
    # What Schuth et al. (2016) show; the margin is less than half of what was measured.
    queries = data.synthetic_letor(n_queries=100, n_features=10, seed=3)
    judge = environments.QueryStream(queries, measure="ndcg@10")
    values = {}
    for n_candidates in (1, 9):
        found = []
        for seed in range(3):
            ranker = rankers.MGD(n_features=10, n_candidates=n_candidates)
            users = environments.ClickedQueries(queries, clicks="informational")
            simulation.play(ranker, users, rounds=3_000, seed=seed)
            found.append(judge.greedy_values(ranker.state.w).mean())
        values[n_candidates] = np.mean(found)
    assert values[9] > values[1] + 0.03


@pytest.mark.parametrize("size", [1e-60, 1.0, 1e60])
def test_features_of_any_size_do_no_harm(size: float) -> None:
    ranker = rankers.MGD(n_features=3, n_positions=4, learning_rate=1e3, delta=1e3)
    rng = np.random.default_rng(1)
    for _ in range(20):
        shown = ranker.rank(size * rng.uniform(-1, 1, (6, 3)), rng=rng)
        assert np.isfinite(shown.memo[0]).all()
        ranker.learn(shown, rng.integers(0, 2, 4))
    assert np.isfinite(ranker.state.w).all()


def test_a_long_list_and_many_candidates() -> None:
    ranker = rankers.MGD(n_features=4, n_positions=10, n_candidates=49)
    rng = np.random.default_rng(1)
    documents = rng.random((300, 4))
    shown = ranker.rank(documents, rng=rng)
    assert sorted(shown.items.tolist()) == list(range(300))
    np.testing.assert_allclose(shown.memo[0].sum(axis=0), 1.0)
    ranker.learn(shown, np.ones(10))
    assert ndcg(ranker.current(documents), np.zeros(300)) == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_features": 0}, "n_features must be"),
        ({"n_positions": 0}, "n_positions must be"),
        ({"n_candidates": 0}, "n_candidates must be"),
        ({"learning_rate": 0.0}, "learning_rate must be a positive number"),
        ({"learning_rate": "adagrad"}, "learning_rate must be a positive number"),
        ({"delta": 0.0}, "delta must be"),
        ({"delta": float("nan")}, "delta must be"),
        ({"tau": -1.0}, "tau must be"),
        ({"tau": 40.0}, "tau must be"),
        ({"radius": 0.0}, "radius must be"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rankers.MGD(**{"n_features": 3, **arguments})
    if "n_candidates" not in arguments:
        with pytest.raises(ValueError, match=message):
            rankers.DBGD(**{"n_features": 3, **arguments})


def test_wrong_tickets_change_nothing() -> None:
    ranker = rankers.DBGD(n_features=2, n_positions=3)
    shown = ranker.rank(np.eye(2), rng=np.random.default_rng(1))
    worth, header = shown.memo
    assert ranker.feedback == TopClicks(3)
    for memo, message in [
        ((worth * np.nan, header), "shares of credit for 2 positions"),
        ((worth + 1, header), "shares of credit for 2 positions"),
        ((worth, header + np.uint64(1)), "shares of credit for 2 positions"),
        ((worth[:1], header), "a ticket of another ranker"),
        ((worth,), "memo must have 2 parts"),
    ]:
        with pytest.raises(ValueError, match=message):
            ranker.learn(Ranking(shown.items, memo=memo), [1, 0])
    with pytest.raises(ValueError, match="feedback must be 0"):
        ranker.learn(shown, [2, 0])
    assert ranker.state.t[0] == 0
    saved = rankers.DBGD(n_features=2, radius=1.0).save() | {"w": np.array([2.0, 0.0])}
    with pytest.raises(ValueError, match="saved state 'w' must be in the ball of radius 1"):
        rankers.DBGD(n_features=2, radius=1.0).load(saved)
