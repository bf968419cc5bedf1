"""FTRL-PBM with rankings open at once, tickets of the least chances, and tickets and states that lie."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rankloop.base import Ranking
from rankloop.rankers import FTRLPBM
from tests.kernels.leader import check_chances
from tests.rankers.tampering import wrong_items
from tests.rankers.test_ftrl_pbm import ESTIMATORS, check_leader


def test_feedback_late_and_out_of_order() -> None:
    # The loss form adds up in any order: the same tickets, the same L_hat, the same leader.
    rng = np.random.default_rng(1)
    first, second = FTRLPBM(n_items=6, n_positions=3), FTRLPBM(n_items=6, n_positions=3)
    tickets = [first.rank(rng=rng) for _ in range(200)]
    clicks = [rng.integers(0, 2, 3) for _ in tickets]
    for i in range(200):
        first.learn(tickets[i], clicks[i])
    for i in rng.permutation(200):
        second.learn(Ranking.load(tickets[i].save()), clicks[i])
        check_leader(second)
    np.testing.assert_allclose(second.state.L_hat, first.state.L_hat, rtol=1e-12)
    np.testing.assert_allclose(second.x, first.x, rtol=0, atol=1e-8)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_many_rankings_open_at_once(estimator: str) -> None:
    ranker = FTRLPBM(n_items=5, n_positions=2, estimator=estimator)
    rng = np.random.default_rng(2)
    open_tickets: list[Ranking] = []
    for _ in range(2000):
        open_tickets.append(ranker.rank(rng=rng))
        if len(open_tickets) > 50:
            late = open_tickets.pop(int(rng.integers(len(open_tickets))))
            ranker.learn(late, rng.random(2) < 0.9 - 0.2 * late.items)
            check_leader(ranker)
    assert set(ranker.current()) == {0, 1}


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(("m", "n"), [(1, 1), (1, 4), (2, 4), (3, 3)])
def test_chances_of_a_billionth_of_a_thousandth(estimator: str, m: int, n: int) -> None:
    # Losses of 1e12, each way, as often as anybody likes.
    ranker = FTRLPBM(n_items=n, n_positions=m, estimator=estimator)
    rng = np.random.default_rng(n)
    for _ in range(200):
        shown = Ranking(rng.permutation(n)[:m], 10 ** rng.uniform(-12, 0, m))
        ranker.learn(shown, rng.integers(0, 2, m))
        check_chances(ranker.x, ranker.x.sum(axis=0))
        ranker.rank(rng=rng)
    for _ in range(200):
        shown = Ranking(rng.permutation(n)[:m], np.full(m, 1e-12))
        ranker.learn(shown, np.zeros(m))
        check_chances(ranker.x, ranker.x.sum(axis=0))
    ranker.load(ranker.save())  # it believes its own states


def test_after_a_huge_loss_it_goes_on_as_before() -> None:
    ranker = FTRLPBM(n_items=5, n_positions=2)
    rng = np.random.default_rng(3)
    ranker.learn(Ranking(np.array([4, 3]), np.array([1e-12, 1e-12])), [0, 0])
    for _ in range(3000):
        shown = ranker.rank(rng=rng)
        ranker.learn(shown, rng.random(2) < [1.0, 0.5] * (0.9 - 0.2 * shown.items))
        check_leader(ranker)
    assert ranker.counters()["solver_inexact"] == 0
    assert ranker.x[0, 4] < 1e-15
    assert ranker.x[1, 4] > 1e-6  # nothing was said of it there
    assert ranker.current()[0] == 0


def _chances(*values: float) -> Callable[[Ranking], Ranking]:
    return lambda ticket: dataclasses.replace(ticket, propensities=np.array(values))


@pytest.mark.parametrize(
    "tamper",
    [
        *wrong_items(5),
        pytest.param(lambda t: dataclasses.replace(t, items=t.items.astype(np.int32)), id="int32"),
        pytest.param(lambda t: dataclasses.replace(t, propensities=None), id="no chances"),
        pytest.param(_chances(0.5, 0.5), id="fewer chances"),
        pytest.param(_chances(0.5, 0.5, 0.0), id="chance of zero"),
        pytest.param(_chances(0.5, 0.5, -0.1), id="negative chance"),
        pytest.param(_chances(0.5, 0.5, 1.5), id="chance above one"),
        pytest.param(_chances(0.5, 0.5, np.nan), id="NaN"),
        pytest.param(_chances(0.5, 0.5, np.inf), id="infinite"),
        pytest.param(_chances(0.5, 0.5, 1e-200), id="a loss that would overflow"),
        pytest.param(lambda t: dataclasses.replace(t, memo=(np.zeros(1),)), id="a memo"),
    ],
)
def test_a_ticket_that_was_tampered_with_is_refused_and_changes_nothing(
    tamper: Callable[[Ranking], Ranking],
) -> None:
    ranker = FTRLPBM(n_items=5, n_positions=3, estimator="mean")
    rng = np.random.default_rng(4)
    ranker.learn(ranker.rank(rng=rng), [1, 0, 1])
    before = ranker.save()
    with pytest.raises(ValueError, match=r"items|ranking"):
        ranker.learn(tamper(ranker.rank(rng=rng)), [0, 0, 1])
    for name, value in ranker.save().items():
        np.testing.assert_array_equal(before[name], value)


@pytest.mark.parametrize(
    "clicks", [[0.5, 0, 0], [2, 0, 0], [-1, 0, 0], [np.nan, 0, 0], [1, 0], None], ids=str
)
def test_feedback_that_is_no_clicks_is_refused_and_changes_nothing(clicks: Any) -> None:
    ranker = FTRLPBM(n_items=5, n_positions=3)
    shown = ranker.rank(rng=np.random.default_rng(5))
    before = ranker.save()
    with pytest.raises(ValueError, match="feedback"):
        ranker.learn(shown, clicks)
    for name, value in ranker.save().items():
        np.testing.assert_array_equal(before[name], value)


def _change(name: str, change: Callable[[Any], Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda saved: saved | {name: change(saved[name])}


def _both(change: Callable[[Any], Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda saved: saved | {"x": change(saved["x"]), "rows": change(saved["x"]).sum(axis=0)}


@pytest.mark.parametrize(
    "tamper",
    [
        pytest.param(_change("t", lambda t: t * 0), id="round zero"),
        pytest.param(_change("t", lambda t: -t), id="negative round"),
        pytest.param(_change("L_hat", lambda L: L * np.nan), id="NaN"),
        pytest.param(_change("x", lambda x: x[:, ::-1].copy()), id="x without its rows"),
        pytest.param(_both(lambda x: x * 1.01), id="column sums"),
        pytest.param(_both(lambda x: np.eye(5)[[0, 0, 1]] * 0.99 + 0.002), id="row sums"),
        pytest.param(_both(lambda x: np.eye(5)[:3]), id="chances of zero"),
        pytest.param(_change("rows", lambda rows: rows * 0.5), id="rows"),
        pytest.param(_change("v", lambda v: v - 1e6), id="multipliers that make D negative"),
        pytest.param(_change("u", lambda u: u - 1e6), id="the other ones"),
        pytest.param(_change("seen", lambda seen: seen * 0 - 1), id="seen less than never"),
        pytest.param(_change("lost", lambda lost: lost + 5), id="lost more often than seen"),
        pytest.param(_change("lost", lambda lost: lost - 5), id="lost less than never"),
        pytest.param(_change("x", lambda x: x[:, :4].copy()), id="fewer items"),
        pytest.param(lambda saved: {k: v for k, v in saved.items() if k != "rows"}, id="no rows"),
    ],
)
def test_a_state_that_cannot_be_is_refused_and_changes_nothing(
    tamper: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    ranker = FTRLPBM(n_items=5, n_positions=3, estimator="mean")
    rng = np.random.default_rng(6)
    for _ in range(50):
        shown = ranker.rank(rng=rng)
        ranker.learn(shown, rng.random(3) < 0.9 - 0.2 * shown.items)
    before = ranker.save()
    with pytest.raises(ValueError, match="saved state"):
        ranker.load(tamper(ranker.save()))
    for name, value in ranker.save().items():
        np.testing.assert_array_equal(before[name], value)
    ranker.load(before)


def test_a_state_of_the_reference_is_loaded_whatever_its_multipliers() -> None:
    # Frank-Wolfe has none; with the running mean its losses may be below zero.
    ranker = FTRLPBM(n_items=3, n_positions=1, estimator="mean", solver="frank-wolfe", steps=5)
    ranker.learn(Ranking(np.array([1]), np.array([1e-3])), [1])
    assert ranker.state.L_hat.min() < -400
    ranker.load(ranker.save())
