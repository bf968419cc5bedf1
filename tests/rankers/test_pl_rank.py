"""PL-Rank-3: its mean over lists is the gradient of the expected NDCG, and it learns."""

from __future__ import annotations

import math
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from rankloop import checks, data, environments, measures, simulation
from rankloop.base import Floats
from rankloop.kernels.plackett_luce import weights_length
from rankloop.rankers import ListNet, PLRank
from rankloop.rankers.pl_rank import pl_rank_3

Scores = Floats


def expected_value(scores: Scores, gains: Scores, m: int) -> float:
    total = 0.0
    for shown in permutations(range(len(scores)), m):
        left, chance, value = np.exp(scores).sum(), 1.0, 0.0
        for position, item in enumerate(shown):
            chance *= math.exp(scores[item]) / left
            left -= math.exp(scores[item])
            value += gains[item] / math.log2(position + 2)
        total += chance * value
    return total


def estimated(scores: Scores, gains: Scores, m: int, n_samples: int, key: int) -> Scores:
    n, slope = len(scores), np.empty(len(scores))
    order, scratch = np.empty(n, np.int64), np.empty((5, weights_length(n)))
    pl_rank_3(scores, gains, n, m, n_samples, np.uint64(key), order, scratch, slope)
    return slope


@pytest.mark.parametrize("m", [1, 3, 4])
def test_the_mean_over_drawn_lists_is_the_gradient(m: int) -> None:
    rng = np.random.default_rng(m)
    scores, gains = rng.normal(size=4), rng.integers(0, 4, 4) / 3.0
    exact = np.empty(4)
    for i in range(4):
        step = 1e-6 * (np.arange(4) == i)
        exact[i] = (expected_value(scores + step, gains, m) - expected_value(scores - step, gains, m)) / 2e-6
    found = np.array([estimated(scores, gains, m, 100, key) for key in range(400)])
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert (np.abs(found.mean(axis=0) - exact) < 4.5 * error + 1e-8).all()
    assert (np.abs(exact) > 20 * error).any(), "a wrong gradient would be found out"


def test_adding_a_constant_changes_nothing_and_far_scores_are_finite() -> None:
    scores, gains = np.array([0.3, -1.0, 2.0]), np.array([1.0, 0.0, 0.5])
    one, other = (estimated(scores + c, gains, 3, 5, key=1) for c in (0.0, 64.0))
    np.testing.assert_allclose(one, other, rtol=1e-9)
    far = estimated(np.array([1000.0, -1000.0, 0.0]), gains, 3, 5, key=1)
    assert np.isfinite(far).all()
    assert abs(far[0]) < 1e-12


def test_one_step_goes_along_the_estimated_gradient_of_ndcg() -> None:
    rng = np.random.default_rng(3)
    X, labels = rng.normal(size=(5, 2)), np.array([0.0, 2.0, 1.0, 0.0, 3.0])
    ranker = PLRank(n_features=2, cutoff=3, learning_rate=0.5, n_samples=4)
    ranker.state.w[:] = [0.3, -0.2]
    shown = ranker.rank(X, rng=rng)
    ranker.learn(shown, labels[shown.items])
    best = float(np.asarray(measures.get("dcg@3")(np.argsort(-labels), labels)))
    slope = estimated(X @ [0.3, -0.2], (2**labels - 1) / best, 3, 4, key=int(shown.memo[0][0]))
    np.testing.assert_allclose(ranker.state.w, [0.3, -0.2] + 0.5 * (X.T @ slope), rtol=1e-9)


def test_both_loops_tell_the_same_story_and_it_learns_as_well_as_listnet() -> None:
    queries = data.synthetic_letor(n_queries=60, n_features=6, seed=1).with_dtype("float32")
    checks.check_same_story(
        lambda: PLRank(n_features=6), lambda: environments.QueryStream(queries), rounds=300
    )
    found: dict[str, float] = {}
    for kind in (PLRank, ListNet):
        ranker: Any = kind(n_features=6)
        stream = environments.QueryStream(queries)
        simulation.play(ranker, stream, rounds=5_000, seed=1)
        found[kind.__name__] = float(stream.greedy_values(ranker.state.w).mean())
    assert found["PLRank"] > found["ListNet"] - 0.02
    assert found["PLRank"] > environments.QueryStream(queries).greedy_values(np.zeros(6)).mean() + 0.2


@pytest.mark.parametrize("name", ["cutoff", "n_samples", "n_features"])
def test_arguments_that_make_no_sense_are_named(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        PLRank(**{"n_features": 2} | {name: 0})
