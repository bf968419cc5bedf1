"""A linear ranker from clicks: corrected click rates are unbiased, by enumeration, and clipping says its bias."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from rankloop import feedback, logs, rankers
from rankloop.feedback import Sessions

ALPHA, BETA = np.array([0.8, 0.3]), np.array([1.0, 0.25])
USERS = feedback.PositionBasedModel(attraction=ALPHA, examination=BETA)


def expected(method: str, **options: Any) -> np.ndarray:
    """The corrected click rates on average over every log of two pages, of which the items are as given."""
    mean = np.zeros(2)
    items = np.array([[0, 1], [1, 0]])
    for one, other in itertools.product(itertools.product((0, 1), repeat=2), repeat=2):
        clicks = np.array([one, other])
        chance = float(np.prod(USERS.likelihood(items, clicks)))
        found = logs.fit_ranker(
            Sessions(items=items, clicks=clicks),
            examination=BETA,
            features=np.eye(2),
            method=method,
            **options,
        )
        mean += chance * found.attraction
    return mean


@pytest.mark.parametrize("method", ["ips", "doubly-robust"])
def test_corrected_click_rates_are_unbiased(method: str) -> None:
    np.testing.assert_allclose(expected(method), ALPHA, atol=1e-12)


def test_clipping_has_a_bias_within_what_is_said() -> None:
    items = np.array([[0, 1], [1, 0]])
    clicks = np.array([[1, 0], [0, 0]])
    told = logs.fit_ranker(
        Sessions(items=items, clicks=clicks), examination=BETA, features=np.eye(2), clip=2.0
    ).bias
    assert told == pytest.approx(0.25)  # half of the impressions keep 0.25 * 2 of their clicks
    for method in ("ips", "doubly-robust"):
        off = np.abs(expected(method, clip=2.0) - ALPHA)
        assert off.max() > 0.01
        assert off.mean() <= told


def test_weights_are_found_where_the_log_misleads() -> None:
    rng = np.random.default_rng(2)
    features = rng.random((8, 3))
    users = feedback.PositionBasedModel(
        attraction=features @ [0.6, 0.1, 0.2], examination=[1.0, 0.4, 0.2, 0.1]
    )
    # Items that the truth likes were shown at the bottom most of the time.
    order = np.argsort(users.attraction + 0.3 * rng.standard_normal((20_000, 8)), axis=1)[:, :4]
    pages = Sessions(items=order, clicks=users.click(order, rng=rng), item_ids=tuple("abcdefgh"))
    naive = logs.fit_ranker(pages, examination=np.ones(4), features=features)
    for method in ("ips", "doubly-robust"):
        found = logs.fit_ranker(pages, examination=users.examination, features=features, method=method)
        np.testing.assert_allclose(found.weights, [0.6, 0.1, 0.2], atol=0.05)
        assert found.bias == 0.0
        assert np.abs(naive.weights - [0.6, 0.1, 0.2]).max() > 0.15
    online = rankers.ListNet(n_features=3, warm_start=found)
    np.testing.assert_array_equal(online.current(features), found.order(features))


def test_a_guess_makes_up_for_what_clipping_takes() -> None:
    rng = np.random.default_rng(3)
    items = rng.permuted(np.tile(np.arange(2), (4_000, 1)), axis=1)
    pages = Sessions(items=items, clicks=USERS.click(items, rng=rng))

    def off(method: str, clip: float) -> float:
        found = logs.fit_ranker(pages, examination=BETA, features=np.eye(2), method=method, clip=clip)
        return float(np.abs(found.attraction - ALPHA).max())

    assert off("doubly-robust", 2.0) < 0.03
    assert off("ips", 2.0) > 0.15
    # Without clipping the guess cancels.
    assert off("doubly-robust", 20.0) == pytest.approx(off("ips", 20.0), abs=1e-12)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"examination": [1.0]}, "examination must be 2 numbers"),
        ({"examination": [1.0, 0.0]}, "examination must be"),
        ({"features": np.eye(3)}, "features must be 2 items by features"),
        ({"features": [[1.0], [np.nan]]}, "features must be"),
        ({"method": "magic"}, "method must be one of"),
        ({"clip": 0.5}, "clip must be"),
        ({"ridge": 0.0}, "ridge must be"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], told: str) -> None:
    pages = Sessions(items=[[0, 1]], clicks=[[1, 0]])
    with pytest.raises(ValueError, match=told):
        logs.fit_ranker(pages, **({"examination": BETA, "features": np.eye(2)} | arguments))


def test_only_a_ranker_of_as_many_features_takes_the_weights() -> None:
    found = logs.fit_ranker(Sessions(items=[[0, 1]], clicks=[[1, 0]]), examination=BETA, features=np.eye(2))
    with pytest.raises(ValueError, match="warm_start must be 3 finite weights"):
        rankers.ListNet(n_features=3, warm_start=found)
    with pytest.raises(ValueError, match="features must be items by 2 features"):
        found.order(np.eye(3))


def of_lists(x: np.ndarray, items: np.ndarray, clicks: np.ndarray, **options: Any) -> logs.FittedRanker:
    log = feedback.LoggedLists(items=items, clicks=clicks, features=x)
    return logs.fit_ranker(log, examination=BETA, **options)


@pytest.mark.parametrize("method", ["ips", "doubly-robust"])
def test_clicks_on_lists_with_features_are_corrected_without_a_bias(method: str) -> None:
    """Over every way to click two lists whose items occur nowhere else."""
    features = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.3], [0.1, 0.9]]])
    items = np.array([[1, 0], [0, 1]])
    mean, clipped = np.zeros(4), np.zeros(4)
    attraction = np.array([[0.3, 0.8], [0.6, 0.2]])  # of what was shown, list by list
    for flat in itertools.product((0, 1), repeat=4):
        clicks = np.array(flat).reshape(2, 2)
        p = attraction * BETA
        chance = float(np.prod(np.where(clicks, p, 1.0 - p)))
        mean += chance * of_lists(features, items, clicks, method=method).attraction
        clipped += chance * of_lists(features, items, clicks, method=method, clip=2.0).attraction
    np.testing.assert_allclose(mean, attraction.ravel(), atol=1e-12)
    off = np.abs(clipped - attraction.ravel())
    assert off.max() > 0.01
    assert off.mean() <= of_lists(features, items, np.ones((2, 2)), clip=2.0).bias == 0.25


def test_a_guess_by_features_makes_up_for_what_clipping_takes() -> None:
    rng = np.random.default_rng(5)
    x = rng.random((4_000, 2, 2))
    truth = np.array([0.7, 0.2])
    clicks = rng.random((4_000, 2)) < x @ truth * BETA
    items = np.tile([0, 1], (4_000, 1))

    def off(method: str) -> float:
        found = of_lists(x, items, clicks, method=method, clip=2.0)
        return float(np.abs(found.weights - truth).max())

    assert off("doubly-robust") < 0.06
    assert off("ips") > 0.1
    with pytest.raises(ValueError, match="features must be left out, because the log has its own"):
        of_lists(x, items, clicks, features=np.eye(2))
    with pytest.raises(ValueError, match="features must be given"):
        logs.fit_ranker(Sessions(items=[[0, 1]], clicks=[[1, 0]]), examination=BETA)
