"""Surrogate regret of the 2016 paper: how it is measured."""

from __future__ import annotations

import numpy as np
import pytest

from rankloop import surrogates
from rankloop.experiments.top_2016 import regret as measured
from rankloop.surrogates import moments


@pytest.mark.parametrize("surrogate", measured.SCALES)
def test_second_moments_are_those_of_all_orders(surrogate: str) -> None:
    w, gamma = np.random.default_rng(4).normal(size=measured.queries().n_features), 0.3
    total = 0.0
    for X, R in (measured.queries().query(i) for i in range(measured.queries().n_queries)):
        s = X @ w
        total += moments.second_moment(
            "paper",
            surrogates.get(surrogate),
            X=X,
            s=s,
            R=R,
            greedy=np.argsort(-s, kind="stable"),
            gamma=gamma,
            k=measured.FEEDBACK[surrogate],
        )
    assert measured.second_moment(surrogate, w, gamma) == pytest.approx(total / measured.queries().n_queries)


@pytest.mark.parametrize("surrogate", measured.SCALES)
def test_no_weights_near_by_or_far_away_are_better_than_the_best(surrogate: str) -> None:
    rng = np.random.default_rng(1)
    best = measured._best_pairs() if surrogate == "ranksvm" else measured._best_smooth(surrogate)
    least = measured.least_loss(surrogate)
    assert measured.loss(surrogate, best) == pytest.approx(least)
    for size in (1e-3, 0.1, 1.0):
        for _ in range(20):
            assert measured.loss(surrogate, best + size * rng.normal(size=len(best))) >= least - 1e-9


@pytest.mark.parametrize("surrogate", measured.SCALES)
def test_the_loss_of_random_scores_is_its_closed_form(surrogate: str) -> None:
    rng = np.random.default_rng(2)
    phi, made = surrogates.get(surrogate), measured.queries()
    drawn = [
        float(phi.value(rng.random(len(R)), R))
        for _ in range(30)
        for R in (made.query(i)[1] for i in range(made.n_queries))
    ]
    assert np.mean(drawn) == pytest.approx(
        measured.random_loss(surrogate), abs=4 * np.std(drawn) / np.sqrt(len(drawn))
    )
