"""The package's learners and the paper's, written down independently, suffer the same regret on the same users."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from math import sqrt

import numpy as np
import pytest

from rankloop import environments, measures, rankers, simulation
from rankloop.base import Floats, Ints
from tests.rankers import algorithm_1

T, M, RUNS = 1500, 6, 60
MARGIN = 4.5  # standard errors of the difference: a right implementation fails once in 150,000


def _users(max_grade: int) -> Ints:
    """Users whose taste changes late, so that a learner must follow and the size of its steps shows."""
    rng = np.random.default_rng(8)
    chances = np.array([0.85, 0.7, 0.55, 0.4, 0.25, 0.1])
    early, late = chances, np.roll(chances, 2)
    p = np.where(np.arange(T)[:, None] < 4 * T // 5, early, late)
    return rng.binomial(max_grade, p)


USERS = {1: _users(1), 2: _users(2)}
CHECKPOINTS = np.array([T // 4, T // 2, 3 * T // 4, T])


def _identity(relevance: float) -> float:
    return relevance


def _exponential(relevance: float) -> float:
    return 2.0**relevance - 1


def _regrets(shown: list[list[list[int]]], measure: str, max_grade: int) -> Floats:
    """Regret of each run at each checkpoint, against the best of all fixed orders."""
    users, scored = USERS[max_grade], measures.get(measure)
    values = np.asarray(scored(np.array(shown), users))
    best_first = np.array(
        [np.argsort(-np.asarray(scored.gain(users[:t])).sum(axis=0), kind="stable") for t in CHECKPOINTS]
    )
    best = [np.sum(scored(order, users[:t])) for order, t in zip(best_first, CHECKPOINTS, strict=True)]
    totals = values.cumsum(axis=1)[:, CHECKPOINTS - 1]
    return totals - best if scored.is_loss else best - totals


@cache
def _slow(learner: str, exponential: bool, max_grade: int) -> list[list[list[int]]]:
    g: Callable[[float], float] = _exponential if exponential else _identity
    top = g(max_grade)
    r = USERS[max_grade].tolist()
    if learner == "ftpl":
        epsilon = 1 / (top * sqrt(M * T))
        return [algorithm_1.ftpl(r, epsilon=epsilon, g=g, rng=random.Random(run)) for run in range(RUNS)]
    K = round(M ** (-1 / 3) * T ** (2 / 3))
    epsilon = 1 / (top * sqrt(M * K))  # Theorems 7, 9 and 10
    keep_rest = learner == "keep-rest"
    return [
        algorithm_1.rtop1f(r, K=K, epsilon=epsilon, g=g, keep_rest=keep_rest, rng=random.Random(run))
        for run in range(RUNS)
    ]


def _ours(learner: str, measure: str, max_grade: int) -> Floats:
    people = environments.FixedItems(USERS[max_grade], measure=measure)
    regrets = []
    for seed in range(RUNS):
        ranker = (
            rankers.FTPL(n_items=M, horizon=T, measure=measure, max_grade=max_grade)
            if learner == "ftpl"
            else rankers.RTop1F(n_items=M, horizon=T, measure=measure, max_grade=max_grade, explore=learner)
        )
        people.restart()
        trace = simulation.play(ranker, people, rounds=T, seed=seed)
        regrets.append(trace.regret[CHECKPOINTS - 1])
    return np.array(regrets)


def _error(regrets: Floats) -> Floats:
    return regrets.std(axis=0, ddof=1) / sqrt(len(regrets))


@pytest.mark.judges("2015-047", "2015-082")
@pytest.mark.parametrize(
    ("measure", "max_grade"),
    [("sum_loss", 1), ("dcg", 1), ("precision@3", 1), ("dcg", 2), ("sum_loss", 2)],
)
@pytest.mark.parametrize("learner", ["keep-rest", "random", "ftpl"])
def test_mean_regret_is_that_of_the_paper_line_by_line(learner: str, measure: str, max_grade: int) -> None:
    slow = _regrets(_slow(learner, max_grade > 1 and measure == "dcg", max_grade), measure, max_grade)
    ours = _ours(learner, measure, max_grade)
    error = np.hypot(_error(slow), _error(ours))
    gap = np.abs(slow.mean(axis=0) - ours.mean(axis=0))
    assert (gap < MARGIN * error).all(), f"{gap / error} standard errors apart at {CHECKPOINTS}"
    assert error[-1] < 0.03 * slow.mean(axis=0)[-1], "too few runs to tell anything apart"
