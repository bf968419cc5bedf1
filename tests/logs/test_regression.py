"""Attraction from features: the maximum that plain EM climbs to, and intervals that hold the truth as often as said."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from rankloop import logs, rankers
from rankloop.feedback import LoggedLists, PositionBasedModel, Sessions

EXAMINATION = np.array([1.0, 0.6, 0.35, 0.2])
WEIGHTS, INTERCEPT = np.array([1.0, -0.5]), -1.0


@pytest.fixture(autouse=True)
def strict() -> Iterator[None]:
    """Nothing is warned of unless the test says so."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def logistic(x: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-x))


def log_of_new_items(n: int, seed: int, examination: np.ndarray = EXAMINATION) -> LoggedLists:
    """No item occurs twice, and the better ones were shown further up."""
    rng = np.random.default_rng(seed)
    m = len(examination)
    x = rng.normal(size=(n, m, 2))
    x[:, :, 0] -= 0.3 * np.arange(m)
    attraction = logistic(x @ WEIGHTS + INTERCEPT)
    clicks = (rng.random((n, m)) < examination) & (rng.random((n, m)) < attraction)
    return LoggedLists(items=np.tile(np.arange(m), (n, 1)), clicks=clicks, features=x)


def plain_em(log: LoggedLists, *, ridge: float, steps: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Regression-EM as written down: who looked and who was attracted, then shares and a logistic regression."""
    assert log.features is not None
    x = log.features.rows.reshape(log.n_rows, log.n_positions, -1)
    design = np.concatenate([np.ones((*x.shape[:2], 1)), x], axis=2)
    beta, theta = np.array([1.0, 0.5, 0.5, 0.5]), np.zeros(design.shape[2])
    pull = np.array([0.0, *[ridge] * x.shape[2]])
    for _ in range(steps):
        gamma = logistic(design @ theta)
        missed = 1.0 - beta * gamma
        looked = np.where(log.clicks == 1, 1.0, beta * (1.0 - gamma) / missed)
        liked = np.where(log.clicks == 1, 1.0, gamma * (1.0 - beta) / missed)
        beta = looked.mean(axis=0)
        beta[0] = 1.0  # the reference
        for _ in range(5):  # Newton's method for the logistic regression on the guessed attractions
            gamma = logistic(design @ theta)
            slope = np.einsum("ij,ijk->k", liked - gamma, design) - pull * theta
            curvature = np.einsum("ijk,ij,ijl->kl", design, gamma * (1 - gamma), design) + np.diag(pull)
            theta = theta + np.linalg.solve(curvature, slope)
    return beta, theta[1:], float(theta[0])


def test_it_ends_where_plain_em_does() -> None:
    log = log_of_new_items(300, seed=3)
    found = logs.fit_regression_em(log, ridge=0.1)
    beta, weights, intercept = plain_em(log, ridge=0.1, steps=400)
    np.testing.assert_allclose(found.examination, beta, atol=1e-5)
    np.testing.assert_allclose(found.weights, weights, atol=1e-5)
    assert found.intercept == pytest.approx(intercept, abs=1e-5)
    assert found.converged
    assert found.steps < 20
    # The maximum moves with the ridge: another one would not have passed.
    assert np.abs(logs.fit_regression_em(log, ridge=10.0).weights - weights).max() > 1e-3


def test_intervals_hold_the_truth_as_often_as_said_though_items_never_repeat() -> None:
    runs, hits = 150, np.zeros(3)
    for seed in range(runs):
        log = log_of_new_items(600, seed=seed)
        found = logs.fit_regression_em(log, confidence=0.9)
        low, high = found.examination_interval[1:].T
        hits += (low <= EXAMINATION[1:]) & (EXAMINATION[1:] <= high)
    # 450 intervals, of which those of one log belong together.
    assert 0.865 < hits.mean() / runs < 0.935, hits
    # Click rates alone are off: the better items were further up.
    rates = log_of_new_items(20_000, seed=1).clicks.mean(axis=0)
    assert np.abs(rates[1:] / rates[0] - EXAMINATION[1:]).min() > 0.03


def test_items_that_repeat_are_counted_and_give_the_same() -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=(12, 2))
    items = rng.permuted(np.tile(np.arange(12), (800, 1)), axis=1)[:, :4]
    users = PositionBasedModel(attraction=logistic(x @ WEIGHTS + INTERCEPT), examination=EXAMINATION)
    pages = Sessions(items=items, clicks=users.click(items, rng=rng))
    counted = logs.fit_regression_em(pages, features=x)
    own = LoggedLists(items=items, clicks=pages.clicks, features=np.broadcast_to(x, (800, 12, 2)))
    one_by_one = logs.fit_regression_em(own)
    np.testing.assert_allclose(counted.weights, one_by_one.weights, atol=1e-9)
    np.testing.assert_allclose(counted.examination_interval, one_by_one.examination_interval, atol=1e-9)
    assert counted.log_likelihood == pytest.approx(one_by_one.log_likelihood)
    again = counted.model(x)
    np.testing.assert_allclose(again.attraction, counted.attraction(x))
    np.testing.assert_allclose(counted.click_rates(x), np.outer(again.attraction, again.examination))
    assert counted.order(x).tolist() == np.argsort(-counted.attraction(x)).tolist()
    assert rankers.PDGD(n_features=2, warm_start=counted).current(x).tolist() == counted.order(x).tolist()


def test_the_position_that_users_look_at_most_need_not_be_the_first() -> None:
    log = log_of_new_items(3_000, seed=8, examination=np.array([0.5, 1.0, 0.7, 0.3]))
    found = logs.fit_regression_em(log)
    assert found.reference == 1
    assert found.examination.max() == 1.0
    np.testing.assert_allclose(found.examination, [0.5, 1.0, 0.7, 0.3], atol=0.08)


def test_features_that_say_the_position_leave_it_open_and_that_is_said() -> None:
    rng = np.random.default_rng(2)
    x = np.broadcast_to(np.eye(2), (500, 2, 2)) + 1e-3 * rng.normal(size=(500, 2, 2))
    clicks = rng.random((500, 2)) < [0.1, 0.05]
    log = LoggedLists(items=np.tile([0, 1], (500, 1)), clicks=clicks, features=x, name="sorted")
    with pytest.warns(logs.ClickModelWarning, match="sorted: examination of position 2 is hardly known"):
        found = logs.fit_regression_em(log)
    low, high = found.examination_interval[1]
    assert high - low > 0.7


def test_a_position_without_clicks_has_an_upper_end() -> None:
    log = log_of_new_items(400, seed=1)
    clicks = log.clicks.copy()
    clicks[:, 3] = 0
    found = logs.fit_regression_em(LoggedLists(items=log.items, clicks=clicks, features=log.features))
    assert found.examination[3] == 0.0
    low, high = found.examination_interval[3]
    assert low == 0.0 < high < 0.1


def test_a_fit_that_is_stopped_says_so() -> None:
    with pytest.warns(logs.ClickModelWarning, match="stopped after 1 steps, before it converged"):
        found = logs.fit_regression_em(log_of_new_items(200, seed=1), max_steps=1)
    assert not found.converged
    assert "not converged" in repr(found)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"ridge": -1}, "ridge must be"),
        ({"confidence": 1}, "confidence must be"),
        ({"tolerance": 0}, "tolerance must be"),
        ({"max_steps": 0}, "max_steps must be"),
        ({"features": [[1.0]]}, "features must be left out, because the log has its own"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        logs.fit_regression_em(log_of_new_items(10, seed=1), **arguments)


def test_logs_that_say_nothing_are_refused() -> None:
    pages = Sessions(items=[[0, 1]], clicks=[[0, 1]])
    with pytest.raises(ValueError, match="features must be given"):
        logs.fit_regression_em(pages)
    with pytest.raises(ValueError, match="features must be 2 items by features"):
        logs.fit_regression_em(pages, features=[[1.0]])
    with pytest.raises(ValueError, match="log must have a click, got none in 1 rows"):
        logs.fit_regression_em(Sessions(items=[[0, 1]], clicks=[[0, 0]]), features=[[1.0], [2.0]])
    with pytest.raises(ValueError, match="items by 2 features"):
        logs.fit_regression_em(log_of_new_items(200, seed=1)).attraction([[1.0]])
