"""PDGD: lists are drawn as Plackett and Luce say, and preferences from clicks are free of the bias of positions."""

from __future__ import annotations

import math
from collections import Counter
from itertools import permutations, product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import expit, logsumexp

from rankloop import checks, environments, simulation
from rankloop.base import Floats, Ranking
from rankloop.feedback import DynamicBayesianModel
from rankloop.rankers import PDGD
from rankloop.rankers.pdgd import FIRST, RATE

Scores = Floats


def log_chance(scores: Scores, shown: Any) -> float:
    """The logarithm of the chance that the list begins with these items."""
    left, total = list(range(len(scores))), 0.0
    for item in shown:
        total += scores[item] - float(logsumexp(scores[left]))
        left.remove(item)
    return total


def slow_step(scores: Scores, shown: Any, clicks: Any, *, weighted: bool = True) -> Scores:
    """The sum over preferences, straight from the paper: whole chances of whole lists, in logarithms."""
    step = np.zeros(len(scores))
    last = max((j for j, click in enumerate(clicks) if click), default=-2)
    for k, x in enumerate(shown):
        for l, y in enumerate(shown):  # noqa: E741
            if not clicks[k] or clicks[l] or l > last + 1:
                continue
            swapped = list(shown)
            swapped[k], swapped[l] = y, x
            odds = log_chance(scores, swapped) - log_chance(scores, shown)
            size = expit(odds) if weighted else 1.0
            size *= expit(scores[x] - scores[y]) * expit(scores[y] - scores[x])
            step[x] += size
            step[y] -= size
    return step


def ticket(scores: Scores, shown: Any, m: int) -> Ranking:
    """What `rank` gives when this list is drawn, one feature a document."""
    rest = np.delete(scores, shown)
    top = float(rest.max()) if len(rest) else 0.0
    header = np.array([m, top, np.exp(rest - top).sum() if len(rest) else 0.0])
    items = np.concatenate([shown, np.setdiff1d(np.arange(len(scores)), shown)]).astype(np.int64)
    return Ranking(items, None, (header, scores[list(shown)], np.eye(len(scores))[list(shown)]))


def one_step(scores: Scores, shown: Any, clicks: Any) -> Scores:
    ranker = PDGD(n_features=len(scores), n_positions=len(shown), learning_rate=1.0)
    ranker.learn(ticket(scores, shown, len(shown)), clicks)
    assert ranker.state.t[0] == 1
    return np.array(ranker.state.w)


@pytest.mark.parametrize("m", [1, 2, 4])
def test_lists_are_drawn_as_plackett_and_luce_say(m: int) -> None:
    scores = np.array([1.0, 0.0, -0.5, 1.5])
    ranker, rng, n = PDGD(n_features=4, n_positions=m), np.random.default_rng(m), 4_000
    ranker.state.w[:] = scores
    seen = Counter(tuple(ranker.rank(np.eye(4), rng=rng).items[:m].tolist()) for _ in range(n))
    lists = list(permutations(range(4), m))
    expected = np.array([n * math.exp(log_chance(scores, one)) for one in lists])
    assert stats.chisquare([seen[one] for one in lists], expected).pvalue > 1e-3


def test_what_is_not_shown_follows_by_falling_score() -> None:
    ranker = PDGD(n_features=1, n_positions=2)
    ranker.state.w[0] = 1.0
    X, rng = np.array([[0.0], [3.0], [1.0], [2.0], [1.0]]), np.random.default_rng(1)
    for _ in range(50):
        items = ranker.rank(X, rng=rng).items
        assert sorted(items) == list(range(5))
        rest = np.setdiff1d([1, 3, 2, 4, 0], items[:2])
        assert items[2:].tolist() == sorted(rest.tolist(), key=[1, 3, 2, 4, 0].index)


def test_scores_a_thousand_apart_are_drawn_in_their_order() -> None:
    scores = np.array([-1000.0, 1000.0, 0.0, 998.0, -999.0])
    ranker, rng = PDGD(n_features=5, n_positions=4), np.random.default_rng(1)
    ranker.state.w[:] = scores
    seen = Counter(tuple(ranker.rank(np.eye(5), rng=rng).items[:4].tolist()) for _ in range(2_000))
    expected = {one: math.exp(log_chance(scores, one)) for one in permutations(range(5), 4)}
    assert all(expected[one] > 1e-6 for one in seen)
    for one, chance in expected.items():
        assert abs(seen[one] - 2_000 * chance) <= 5 * math.sqrt(2_000 * chance) + 1e-9


@settings(max_examples=60)
@given(
    st.integers(2, 6), st.integers(0, 3), st.sampled_from([0.0, 1.0, 30.0, 1000.0]), st.integers(0, 2**32 - 1)
)
def test_one_step_is_the_papers_at_scores_of_any_size(m: int, rest: int, size: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = size * rng.uniform(-1, 1, m + rest)
    shown = rng.permutation(m + rest)[:m]
    clicks = rng.integers(0, 2, m)
    found = one_step(scores, shown, clicks)
    np.testing.assert_allclose(found, slow_step(scores, shown, clicks), rtol=1e-9, atol=1e-13)


def test_the_limits_at_far_scores_are_right() -> None:
    # The slope of the sigmoid vanishes, so look where it does not: two close documents among far ones.
    scores = np.array([1000.0, -1000.0, -1000.5, 0.0])
    for shown in permutations(range(4)):
        for clicks in product((0, 1), repeat=4):
            found = one_step(scores, list(shown), clicks)
            assert np.isfinite(found).all()
            np.testing.assert_allclose(found, slow_step(scores, shown, clicks), rtol=1e-9, atol=1e-13)
    # A document that cannot be left out stands between two close ones: it takes no part in their odds.
    found = one_step(np.array([0.0, 1000.0, 0.2]), [0, 1, 2], [0, 0, 1])
    np.testing.assert_allclose(found[2], expit(0.2) * expit(0.2) * expit(-0.2), rtol=1e-9)


def expected_step(scores: Scores, grades: Any, m: int, *, step: Any = one_step) -> Scores:
    """The mean over all lists and all ways to click on each."""
    model = DynamicBayesianModel(
        attraction=np.array([0.3, 0.9])[grades], satisfaction=np.array([0.2, 0.7])[grades], continuation=0.9
    )
    mean = np.zeros(len(scores))
    for shown in permutations(range(len(scores)), m):
        for clicks in product((0, 1), repeat=m):
            chance = math.exp(log_chance(scores, shown)) * float(model.likelihood(shown, clicks))
            mean += chance * step(scores, list(shown), clicks)
    return mean


@pytest.mark.parametrize(("n", "m"), [(3, 3), (4, 2), (4, 3)])
def test_equally_relevant_documents_are_preferred_equally_often(n: int, m: int) -> None:
    scores = np.array([1.2, -0.7, 0.3, 2.0])[:n]
    equal = expected_step(scores, np.zeros(n, int), m)
    np.testing.assert_allclose(equal, 0.0, atol=1e-14)
    better = expected_step(
        scores, (np.arange(n) == 1).astype(int), m
    )  # the one that is shown last most often
    assert better[1] > 0
    assert (np.delete(better, 1) < 0).all()

    def without_weights(*of: Any) -> Scores:
        return slow_step(*of, weighted=False)

    biased = expected_step(scores, np.zeros(n, int), m, step=without_weights)
    assert np.abs(biased).max() > 1e-3, "without the weight the same test finds the bias"


def test_no_click_or_nothing_but_clicks_teach_nothing() -> None:
    scores = np.array([0.1, 0.2, 0.3])
    assert not one_step(scores, [0, 1, 2], [0, 0, 0]).any()
    assert not one_step(scores, [0, 1, 2], [1, 1, 1]).any()


def dataset(lengths: Any, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    X = rng.random((offsets[-1], 7)).astype(np.float32)
    relevance = np.clip(np.round(4 * X[:, 0]), 0, 4)
    return SimpleNamespace(features=X, relevance=relevance, offsets=offsets, max_grade=4)


def test_both_loops_tell_the_same_long_story() -> None:
    queries = dataset([3, 140, 1, 12, 10], seed=6)
    checks.check_same_story(
        lambda: PDGD(n_features=7),
        lambda: environments.ClickedQueries(queries, clicks="informational"),
        rounds=1_500,
    )


@pytest.mark.parametrize("kind", ["perfect", "navigational", "informational", "near-random"])
def test_it_finds_the_feature_that_matters(kind: str) -> None:
    queries = dataset([12] * 30, seed=1)
    for steps in ("adagrad", 0.1):
        users = environments.ClickedQueries(queries, clicks=kind)
        ranker = PDGD(n_features=7, learning_rate=steps)
        simulation.play(ranker, users, rounds=20_000, seed=1)
        assert users.greedy_values(ranker.state.w).mean() > 0.95
    assert users.greedy_values(np.zeros(7)).mean() < 0.75


def test_units_and_constants_of_features_have_no_influence() -> None:
    def shown(units: Floats, offset: float) -> list[list[int]]:
        rng, users, found = np.random.default_rng(1), np.random.default_rng(2), []
        ranker = PDGD(n_features=4, n_positions=3)
        for _ in range(200):
            rows = np.round(users.random((6, 4)), 3)  # differences are the same behind an offset
            rows[:, 3] = 0.5  # tells no documents apart
            ranking = ranker.rank((rows + offset) * units, rng=rng)
            ranker.learn(ranking, (rows[ranking.items[:3], 1] > 0.7).astype(float))
            found.append(ranking.items.tolist())
        assert ranker.state.w[1] > 0
        assert ranker.state.w[3] == 0
        return found

    plain = shown(np.ones(4), 0.0)
    assert shown(np.array([2.0**20, 2.0**-10, 8.0, 2.0**-30]), 0.0) == plain
    assert np.mean([one == other for one, other in zip(shown(np.ones(4), 1.0), plain, strict=True)]) > 0.99


def test_the_first_step_is_adagrads_with_a_first_sum() -> None:
    ranker = PDGD(n_features=3, n_positions=3)
    ranker.learn(ticket(np.zeros(3), [0, 1, 2], 3), [1, 0, 0])
    gradient = slow_step(np.zeros(3), [0, 1, 2], [1, 0, 0])
    np.testing.assert_allclose(ranker.state.w, RATE * gradient / np.sqrt(gradient**2 + FIRST), rtol=1e-9)


def test_a_ranker_of_more_positions_than_users_see_is_refused() -> None:
    users = environments.ClickedQueries(dataset([12, 4], seed=1), n_positions=5)
    with pytest.raises(
        ValueError, match="learns from 10 positions of a list, users of the environment see 5"
    ):
        simulation.play(PDGD(n_features=7), users, rounds=1, seed=1)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"n_features": 0}, "n_features"),
        ({"n_positions": 0}, "n_positions"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"learning_rate": np.inf}, "learning_rate"),
    ],
)
def test_arguments_that_make_no_sense_are_named(arguments: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        PDGD(**{"n_features": 3} | arguments)


@pytest.mark.parametrize("wrong", [[0, 2, 0], [0, 1], [0.5, 0, 0], [np.nan, 0, 0], [-1, 0, 0]])
def test_feedback_that_is_no_click_changes_nothing(wrong: Any) -> None:
    ranker = PDGD(n_features=3)
    shown = ranker.rank(np.eye(3), rng=np.random.default_rng(1))
    with pytest.raises(ValueError, match="feedback"):
        ranker.learn(shown, wrong)
    assert ranker.state.t[0] == 0


@pytest.mark.parametrize(
    ("part", "place", "value"), [(0, 0, 2.0), (0, 2, -1.0), (1, 0, np.nan), (2, 0, np.inf)]
)
def test_a_ticket_that_nobody_issued_is_refused(part: int, place: int, value: float) -> None:
    ranker = PDGD(n_features=3)
    shown = ranker.rank(np.eye(3), rng=np.random.default_rng(1))
    shown.memo[part].reshape(-1)[place] = value
    with pytest.raises(ValueError, match="memo"):
        ranker.learn(shown, [1, 0, 0])
    assert not ranker.state.w.any()
