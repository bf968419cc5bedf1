"""Constants of section 6 (2016): those of the preprint, and learning rates beside the rate of exploration.

The drawn queries and rounds are those of test_top_2016. Every comparison is made run by run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rankloop import rankers, simulation
from rankloop.environments import QueryStream
from tests.claims.test_top_2016 import (
    CONVEX,
    FEATURES,
    ROUNDS,
    SEEDS,
    averages,
    full_information,
    queries,
    random_order,
    top_k,
)


@pytest.mark.judges("2016-144")
@pytest.mark.parametrize(("surrogate", "k"), CONVEX)
def test_the_constants_of_the_preprint_learn(surrogate: str, k: int) -> None:
    constants = {"learning_rate": "preprint", "exploration": "preprint", "horizon": ROUNDS}
    top = averages(lambda: top_k(surrogate, k, **constants))[:, 0]
    listnet = averages(lambda: rankers.ListNet(n_features=FEATURES, learning_rate=ROUNDS ** (-1 / 2)))[:, 0]
    assert (top > random_order() + 0.7 * (listnet.min() - random_order())).all()
    assert (top < listnet.min()).all()
    # With those of a horizon of ten rounds it breaks.
    wrong = averages(lambda: top_k(surrogate, k, **{**constants, "horizon": 10}))[:, 0]
    assert not (wrong > random_order() + 0.7 * (listnet.min() - random_order())).any()


@pytest.mark.judges("2016-146")
@pytest.mark.parametrize(("surrogate", "k"), CONVEX)
def test_eta_much_smaller_than_gamma_is_better(surrogate: str, k: int) -> None:
    # gamma = 0.1 t^(-1/3) for all; eta = 0.01 t^(-2/3), the paper's, against a tenth of gamma and gamma itself.
    papers = averages(lambda: top_k(surrogate, k))
    tenth = averages(lambda: top_k(surrogate, k, learning_rate=(0.01, 1 / 3)))
    equal = averages(lambda: top_k(surrogate, k, learning_rate=(0.1, 1 / 3)))
    assert (papers[:, 0] > equal[:, 0] + 0.03).all()
    assert papers[:, 0].mean() > tenth[:, 0].mean() > equal[:, 0].mean() + 0.05
    assert papers[:, 1].mean() > equal[:, 1].mean() + 0.1  # on queries it has not met


def marks(make: Any) -> Any:
    """Average NDCG@10 of the rounds so far, at every hundredth round; by seed."""
    found = []
    for seed in SEEDS:
        trace = simulation.play(
            make(), QueryStream(queries()[0]), rounds=ROUNDS, seed=seed, points=ROUNDS // 100
        )
        lengths = np.diff(trace.rounds, prepend=0)
        found.append(np.cumsum(trace.value * lengths) / trace.rounds)
    return np.array(found)


@pytest.mark.judges("2016-147")
def test_full_information_is_above_all_of_them_at_every_mark() -> None:
    # "ListNet, with full information, has highest average NDCG value throughout."
    lowest = marks(lambda: rankers.ListNet(n_features=FEATURES, learning_rate=(0.01, 0.5))).min(axis=0)
    assert lowest[-1] == pytest.approx(full_information()[:, 0].min(), abs=1e-9)
    for surrogate, k in CONVEX:
        of_top = marks(lambda surrogate=surrogate, k=k: top_k(surrogate, k))
        assert (of_top.max(axis=0) < lowest).all()
        assert not (of_top.max(axis=0) < marks(rankers.Uniform).min(axis=0)).any()  # a random order is not
