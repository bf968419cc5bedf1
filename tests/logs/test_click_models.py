"""Click models fitted to pages: at the top of their likelihood, with honest intervals, plain about what is unknown."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from rankloop import feedback, logs
from rankloop.feedback import ClickModel, Sessions

ALPHA = np.array([0.7, 0.5, 0.4, 0.3, 0.2, 0.1])
SATISFACTION = np.array([0.8, 0.3, 0.5, 0.6, 0.4, 0.7])
BETA = np.array([1.0, 0.6, 0.4, 0.25])
LOOKS = np.array([[1, 0, 0, 0], [0.6, 0.9, 0, 0], [0.4, 0.5, 0.8, 0], [0.25, 0.3, 0.5, 0.7]])
TRUE, FALSE = np.array([0.98, 0.95, 0.9, 0.9]), np.array([0.4, 0.2, 0.1, 0.1])

USERS: dict[str, ClickModel] = {
    "pbm": feedback.PositionBasedModel(attraction=ALPHA, examination=BETA),
    "ubm": feedback.UserBrowsingModel(attraction=ALPHA, examination=LOOKS),
    "cascade": feedback.CascadeModel(attraction=ALPHA),
    "dcm": feedback.DependentClickModel(attraction=ALPHA, continuation=[0.7, 0.6, 0.5, 0.4]),
    "sdbn": feedback.DynamicBayesianModel(attraction=ALPHA, satisfaction=SATISFACTION),
    "dbn": feedback.DynamicBayesianModel(attraction=ALPHA, satisfaction=SATISFACTION, continuation=0.85),
    "ccm": feedback.ClickChainModel(attraction=ALPHA, continuation=[0.9, 0.8, 0.3]),
    "trust": feedback.TrustBiasModel(
        attraction=ALPHA, examination=BETA, true_clicks=TRUE, false_clicks=FALSE
    ),
}


def pages(model: ClickModel, n: int, seed: int, *, m: int = 4) -> Sessions:
    rng = np.random.default_rng(seed)
    items = rng.permuted(np.tile(np.arange(model.n_items), (n, 1)), axis=1)[:, :m]
    return Sessions(items=items, clicks=model.click(items, rng=rng))


def truth(name: str) -> list[tuple[str, np.ndarray]]:
    """Every parameter of the simulated users that a log identifies."""
    if name == "trust":
        u, v = BETA * TRUE, BETA * FALSE
        slope = (u - v) / (u[0] - v[0])
        return [
            ("attraction", v[0] + ALPHA * (u[0] - v[0])),
            ("examination", slope),
            ("false_clicks", v - slope * v[0]),
        ]
    shared = {
        "pbm": [("examination", BETA)],
        "ubm": [("examination", np.where(np.tril(np.ones((4, 4))) > 0, LOOKS, np.nan))],
        "dcm": [("continuation", np.array([0.7, 0.6, 0.5]))],
        "dbn": [("continuation", np.array([0.85]))],
        "ccm": [("continuation", np.array([0.9, 0.8, 0.3]))],
    }
    own = [("satisfaction", SATISFACTION)] if name in ("sdbn", "dbn") else []
    return [("attraction", ALPHA), *own, *shared.get(name, [])]


def estimate(found: logs.FittedModel, name: str) -> logs.Estimate:
    if name == "attraction":
        return found.attraction
    if name == "satisfaction":
        assert found.satisfaction is not None
        return found.satisfaction
    return found.shared[name]


@pytest.mark.parametrize("name", USERS)
def test_intervals_hold_the_truth_nine_times_of_ten(name: str) -> None:
    hits = []
    for seed in range(150):
        found = logs.fit_model(pages(USERS[name], 2_000, 2_000 + seed), name, smoothing=0.5)
        assert found.converged
        for parameter, value in truth(name):
            told = estimate(found, parameter)
            free = ~np.isnan(value) & (told.high > told.low)
            hits += ((told.low <= value) & (value <= told.high))[free].tolist()
    assert len(hits) >= 150 * 6
    assert 0.88 <= np.mean(hits) <= 0.92


@pytest.mark.parametrize("name", USERS)
def test_a_large_log_gives_the_truth_back(name: str) -> None:
    log = pages(USERS[name], 60_000, 7)
    found = logs.fit_model(log, name)
    assert found.converged
    for parameter, value in truth(name):
        told = estimate(found, parameter)
        known = ~np.isnan(value)
        error = np.maximum(told.standard_error[known], 1e-12)
        assert (np.abs(told.value[known] - value[known]) < 4.0 * error + 1e-12).all()
        assert (np.abs(told.value[known] - value[known]) < 0.05).all()
    # A model with these numbers clicks as the fit says: simulate it, and fit once more.
    again = logs.fit_model(pages(found.model(), 60_000, 8), name)
    apart = np.abs(again.attraction.value - found.attraction.value)
    assert (apart < 4.0 * again.attraction.standard_error).all()


def small(x: np.ndarray, name: str) -> ClickModel:
    """A model of four items and three positions with the chances x, for a search that knows nothing else of it."""
    a = x[:4]
    if name == "pbm":
        return feedback.PositionBasedModel(attraction=a, examination=np.append(1.0, x[4:6]))
    if name == "ubm":
        looks = np.eye(3)
        looks[np.tril_indices(3)] = np.append(1.0, x[4:9])
        return feedback.UserBrowsingModel(attraction=a, examination=looks)
    if name == "dcm":
        return feedback.DependentClickModel(attraction=a, continuation=np.append(x[4:6], 1.0))
    if name == "ccm":
        return feedback.ClickChainModel(attraction=a, continuation=x[4:7])
    if name == "trust":
        return feedback.TrustBiasModel(
            attraction=a, examination=np.ones(3), true_clicks=x[4:7], false_clicks=x[7:10]
        )
    gamma = float(x[8]) if name == "dbn" else 1.0
    return feedback.DynamicBayesianModel(attraction=a, satisfaction=x[4:8], continuation=gamma)


@pytest.mark.parametrize(
    ("name", "size"), [("pbm", 6), ("ubm", 9), ("dcm", 6), ("sdbn", 8), ("dbn", 9), ("ccm", 7), ("trust", 10)]
)
def test_it_is_at_the_top_of_the_likelihood(name: str, size: int) -> None:
    rng = np.random.default_rng(5)
    log = pages(small(rng.uniform(0.25, 0.75, size), name), 400, 6, m=3)
    found = logs.fit_model(log, name, smoothing=0.0, tolerance=1e-6)
    assert found.converged
    # The few different pages, and how often each occurs, make the slow search quick enough.
    rows, times = np.unique(np.hstack((log.items, log.clicks)), axis=0, return_counts=True)

    def loss(x: np.ndarray) -> float:
        return -float(times @ np.log(small(x, name).likelihood(rows[:, :3], rows[:, 3:])))

    best = min(
        (
            minimize(loss, rng.uniform(0.2, 0.8, size), method="L-BFGS-B", bounds=[(1e-6, 1 - 1e-6)] * size)
            for _ in range(3)
        ),
        key=lambda end: float(end.fun),
    )
    assert -found.log_likelihood <= best.fun + 1e-4
    assert -found.log_likelihood == pytest.approx(best.fun, abs=2e-3)
    assert found.log_likelihood == pytest.approx(
        float(np.log(found.model().likelihood(log.items, log.clicks)).sum()), abs=1e-6
    )
    if name != "trust":  # where other numbers give the same clicks
        np.testing.assert_allclose(found.attraction.value, best.x[:4], atol=5e-3)


def test_it_converges_where_expectation_maximisation_creeps() -> None:
    # Little is shown in two places, and what is was clicked nearly always: EM takes thousands of steps.
    shown = np.array([[400, 3, 0], [0, 300, 4], [2, 0, 200]])
    clicked = np.array([[380, 2, 0], [0, 150, 3], [1, 0, 20]])
    rows = [
        (i, j, c)
        for i, j in itertools.product(range(3), range(3))
        for c in [1] * clicked[i, j] + [0] * (shown[i, j] - clicked[i, j])
    ]
    # The other places of each page show an item of their own that nobody clicks on.
    items = np.array([[i if j == k else 3 + k for k in range(3)] for i, j, _ in rows])
    clicks = np.array([[c if j == k else 0 for k in range(3)] for _, j, c in rows])
    found = logs.fit_model(Sessions(items=items, clicks=clicks), "pbm", smoothing=0.0, tolerance=1e-6)
    assert found.converged
    assert found.steps < 1_000
    log = Sessions(items=items, clicks=clicks)

    def loss(x: np.ndarray) -> float:
        p = np.append(x[:3], np.zeros(3))[:, None] * np.append(1.0, x[3:])
        chance = np.where(log.clicks == 1, p[log.items, np.arange(3)], 1.0 - p[log.items, np.arange(3)])
        return -float(np.log(chance).sum())

    best = minimize(loss, np.full(5, 0.5), method="L-BFGS-B", bounds=[(1e-6, 1 - 1e-9)] * 5)
    assert -found.log_likelihood <= best.fun + 1e-3


def test_counts_are_shares_of_what_was_seen() -> None:
    log = Sessions(
        items=[[0, 1, 2], [1, 0, 2], [2, 0, 1], [0, 2, -1]],
        clicks=[[0, 1, 0], [1, 0, 1], [0, 0, 0], [1, 0, 0]],
    )
    cascade = logs.fit_model(log, "cascade", smoothing=0.0)
    np.testing.assert_allclose(cascade.attraction.value, [1 / 3, 2 / 3, 0.0])
    assert "25.0% of the pages have more than one click" in cascade.warnings[0]
    assert cascade.log_likelihood == -np.inf
    simple = logs.fit_model(log, "sdbn", smoothing=0.0, method="counts")
    np.testing.assert_allclose(simple.attraction.value, [1 / 4, 2 / 3, 1 / 2])
    assert simple.satisfaction is not None
    np.testing.assert_allclose(simple.satisfaction.value, [1.0, 1 / 2, 1.0])
    dependent = logs.fit_model(log, "dcm", smoothing=0.0, method="counts")
    np.testing.assert_allclose(dependent.attraction.value, [1 / 4, 2 / 3, 1 / 2])
    np.testing.assert_allclose(dependent.shared["continuation"].value, [1 / 2, 0.0])
    everywhere = logs.fit_model(log, "rcm")
    np.testing.assert_allclose(everywhere.shared["click_rate"].value, [4 / 11])
    ranked = logs.fit_model(log, "rctr")
    np.testing.assert_allclose(ranked.shared["click_rate"].value, [2 / 4, 1 / 4, 1 / 3])
    np.testing.assert_allclose(ranked.model().click_probabilities([0, 1, 2]), [2 / 4, 1 / 4, 1 / 3])


def test_the_closed_form_is_below_the_top_of_the_likelihood() -> None:
    log = pages(USERS["sdbn"], 5_000, 3)
    counted = logs.fit_model(log, "sdbn", smoothing=0.0, method="counts")
    exact = logs.fit_model(log, "sdbn", smoothing=0.0)
    assert counted.steps == 1
    assert counted.log_likelihood < exact.log_likelihood - 10.0
    assert counted.satisfaction is not None
    assert exact.satisfaction is not None
    assert (counted.satisfaction.value > exact.satisfaction.value).all()


@pytest.mark.parametrize("name", logs.MODELS)
def test_forecasts_are_those_of_the_model(name: str) -> None:
    users = USERS.get(name, USERS["pbm"])
    log = pages(users, 300, 4)
    found = logs.fit_model(log, name)
    given, alone = found.predict(log)
    model = found.model()
    np.testing.assert_allclose(alone, model.click_probabilities(log.items), atol=1e-12)
    chance = np.where(log.clicks == 1, given, 1.0 - given).prod(axis=1)
    np.testing.assert_allclose(chance, model.likelihood(log.items, log.clicks), atol=1e-12)
    # All that can happen to a page adds up to 1.
    every = np.array(list(itertools.product((0, 1), repeat=4)))
    page = np.tile(log.items[0], (16, 1))
    given, _ = found.predict(Sessions(items=page, clicks=every, item_ids=log.item_ids))
    np.testing.assert_allclose(np.where(every == 1, given, 1.0 - given).prod(axis=1).sum(), 1.0)


def test_scores_are_perplexities_as_the_field_defines_them() -> None:
    log = pages(USERS["dbn"], 500, 5)
    found = logs.fit_model(log, "dbn")
    score = found.score(log)
    model = found.model()
    p = model.click_probabilities(log.items)
    bits = -np.log2(np.where(log.clicks == 1, p, 1.0 - p)).mean(axis=0)
    np.testing.assert_allclose(score.perplexity_by_position, 2.0**bits)
    assert score.perplexity == pytest.approx(np.mean(2.0**bits))
    assert score.conditional_perplexity < score.perplexity
    each = np.log(model.likelihood(log.items, log.clicks)).mean()
    assert score.log_likelihood == pytest.approx(each)
    assert found.log_likelihood == pytest.approx(each * 500)
    assert score.impossible == 0.0


def test_items_that_were_never_seen_get_the_mean() -> None:
    log = Sessions(
        items=[[0, 1], [1, 0], [0, 1], [2, 3]],
        clicks=[[1, 0], [0, 1], [0, 1], [1, 0]],
        item_ids=("a", "b", "c", "d"),
    )
    early, late = log.split(0.75)
    found = logs.fit_model(early, "cascade", smoothing=0.0)
    assert len(found.items) == 2
    _, alone = found.predict(late)
    assert alone[0, 0] == pytest.approx(3 / 5)
    with pytest.raises(ValueError, match="pages must have the query_ids and item_ids of the log"):
        found.predict(Sessions(items=[[0, 1]], clicks=[[0, 0]]))


def test_queries_have_items_of_their_own() -> None:
    one, other = pages(USERS["dbn"], 3_000, 1), pages(USERS["dbn"], 3_000, 2)
    both = Sessions(
        items=np.vstack((one.items, 5 - other.items)),
        clicks=np.vstack((one.clicks, other.clicks)),
        queries=np.repeat([0, 1], 3_000),
        query_ids=("a", "b"),
    )
    found = logs.fit_model(both, "dbn")
    assert found.names[:2] == ("a/0", "a/1")
    np.testing.assert_allclose(found.attraction.value, np.append(ALPHA, ALPHA[::-1]), atol=0.06)
    # What both queries share is known better than from one alone, and the items of one say nothing of the other's.
    alone = logs.fit_model(one, "dbn")
    assert (
        found.shared["continuation"].standard_error[0] < 0.8 * alone.shared["continuation"].standard_error[0]
    )
    np.testing.assert_allclose(
        found.attraction.standard_error[:6], alone.attraction.standard_error, rtol=0.15
    )


def test_examination_is_what_a_ranker_takes() -> None:
    for name, users in USERS.items():
        found = logs.fit_model(pages(users, 20_000, 9), name)
        assert found.examination.shape == (4,)
        assert found.examination.max() == 1.0
        assert (np.diff(found.examination) < 0).all()
    np.testing.assert_allclose(
        logs.fit_model(pages(USERS["pbm"], 20_000, 9), "pbm").examination, BETA, atol=0.03
    )
    # A cascade is looked at until the first click: the chance of none above.
    cascade = logs.fit_model(pages(USERS["cascade"], 20_000, 9), "cascade")
    clicked = pages(USERS["cascade"], 20_000, 9).clicks
    reached = 1.0 - np.cumsum(clicked, axis=1)[:, :-1].mean(axis=0)
    np.testing.assert_allclose(cascade.examination[1:], reached, atol=0.02)


def test_what_a_log_does_not_tell_is_said() -> None:
    apart = Sessions(items=[[0, 1], [0, 1], [0, 1]], clicks=[[1, 0], [0, 1], [1, 1]])
    told = logs.fit_model(apart, "pbm").warnings
    assert "examination of position 2 cannot be compared with that of position 1" in told[0]
    told = logs.fit_model(apart, "ubm").warnings
    assert "2 such pairs cannot be compared with the top position" in told[0]
    never = Sessions(items=[[0, 1], [1, 0]] * 5, clicks=[[1, 0], [0, 1]] * 5)
    found = logs.fit_model(never, "dbn")
    assert found.warnings == ("satisfaction of 1 of 2 items is not identified: they were never clicked",)
    assert found.satisfaction is not None
    assert found.satisfaction.high[1] - found.satisfaction.low[1] > 0.8
    assert "click rate at the top" in logs.fit_model(apart, "trust").warnings[0]
    bottom = Sessions(items=[[0, 1, 2], [1, 0, 2]], clicks=[[1, 0, 0], [0, 0, 1]])
    assert "continuation after position 2 is not identified" in logs.fit_model(bottom, "dcm").warnings[0]


def test_a_query_too_large_for_its_covariances_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    users = feedback.DynamicBayesianModel(
        attraction=[0.7, 0.5, 0.4, 0.3], satisfaction=[0.1, 0.9, 0.2, 0.8], continuation=0.8
    )
    log = pages(users, 800, seed=5)
    full = logs.fit_model(log, "dbn")
    assert not any("too narrow" in sentence for sentence in full.warnings)
    monkeypatch.setattr("rankloop.logs.click_model_fits._LARGEST", 63)  # of (2 x 4) squared
    found = logs.fit_model(log, "dbn")
    assert found.warnings[-1].startswith("intervals are those of each item by itself and may be too narrow")
    assert "a query has 4 items" in found.warnings[-1]
    np.testing.assert_array_equal(found.attraction.value, full.attraction.value)
    assert (found.attraction.standard_error <= full.attraction.standard_error * (1 + 1e-9)).all()
    assert (found.attraction.standard_error < full.attraction.standard_error).any()


def test_a_stopped_search_says_so() -> None:
    with pytest.warns(logs.ClickModelWarning, match="stopped after 2 steps"):
        found = logs.fit_model(pages(USERS["dbn"], 200, 1), "dbn", max_steps=2)
    assert not found.converged
    assert "not converged" in repr(found)
    assert "before it converged" in found.warnings[-1]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"model": "dbm"}, "model must be one of"),
        ({"smoothing": -1.0}, "smoothing must be"),
        ({"confidence": 1.0}, "confidence must be"),
        ({"tolerance": 0.0}, "tolerance must be"),
        ({"max_steps": 0}, "max_steps must be"),
        ({"method": "guess"}, "method must be one of"),
        ({"model": "dbn", "method": "counts"}, "no closed form"),
        ({"model": "pbm", "method": "counts"}, "no closed form"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        logs.fit_model(pages(USERS["pbm"], 50, 1), **arguments)


def test_a_log_without_a_click_is_refused() -> None:
    with pytest.raises(ValueError, match="sessions must have a click, got none in 1"):
        logs.fit_model(Sessions(items=[[0, 1]], clicks=[[0, 0]]), "dbn")


def test_the_right_model_wins_on_later_pages() -> None:
    for name in ("ubm", "dbn"):
        compared = logs.compare_models(pages(USERS[name], 8_000, 3), ["rcm", "rctr", "pbm", "dbn", "ubm"])
        assert compared.best == name
        assert name in compared.advice()
        assert compared.behind.min() == 0.0
        assert (compared.behind >= 0.0).all()


def test_the_simpler_of_two_equals_is_advised() -> None:
    # The position-based model is a special case of user browsing and of trust bias.
    compared = logs.compare_models(pages(USERS["pbm"], 8_000, 3), ["pbm", "trust", "ubm"])
    assert compared.best == "pbm"
    with pytest.raises(ValueError, match="models must name at least one"):
        logs.compare_models(pages(USERS["pbm"], 100, 3), [])
