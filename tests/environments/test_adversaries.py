"""The two worlds of each hard adversary: alike to whoever sees one item a round, and yet apart."""

from __future__ import annotations

from itertools import permutations
from math import sqrt
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rankloop import measures, rankers, simulation
from rankloop.environments import FixedItems, adversary, forced_regret

CASES = [
    ("ndcg", 3),
    ("ndcg", 4),
    ("ndcg", 6),
    ("average_precision", 3),
    ("average_precision", 5),
    ("auc", 4),
    ("auc", 5),
]


def values(measure: str, m: int, world: int) -> NDArray[np.float64]:
    """What each ranking is worth a round in this world, turned so that more is better."""
    who = adversary(measure, n_items=m, world=world)
    scored = measures.get(measure)
    every = (
        np.asarray(scored(np.array(list(permutations(range(m))))[:, None], who.vectors[None])) @ who.weights
    )
    return -every if scored.is_loss else every


@pytest.mark.parametrize(("measure", "m"), CASES)
def test_worlds_are_distributions_over_all_outcomes(measure: str, m: int) -> None:
    for world in (0, 1):
        who = adversary(measure, n_items=m, world=world)
        assert who.weights is not None
        assert len({tuple(vector) for vector in who.vectors.tolist()}) == len(who.vectors) == 2**m
        assert set(np.unique(who.vectors)) == {0, 1}
        assert who.weights.min() >= 0
        assert who.weights.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(("measure", "m"), CASES)
def test_one_item_looks_the_same_in_both_worlds(measure: str, m: int) -> None:
    zero, one = (adversary(measure, n_items=m, world=world) for world in (0, 1))
    assert zero.weights is not None
    assert one.weights is not None
    np.testing.assert_allclose(zero.weights @ zero.vectors, one.weights @ one.vectors, atol=1e-12)
    np.testing.assert_allclose(zero.weights @ zero.vectors, 0.5, atol=1e-12)


@pytest.mark.parametrize(("measure", "m"), CASES)
def test_no_ranking_is_best_in_both_worlds(measure: str, m: int) -> None:
    zero, one = values(measure, m, 0), values(measure, m, 1)
    best_in_zero = np.isclose(zero, zero.max(), atol=1e-12)
    best_in_one = np.isclose(one, one.max(), atol=1e-12)
    assert not (best_in_zero & best_in_one).any()


@pytest.mark.parametrize(("measure", "m"), CASES)
def test_every_ranking_loses_the_forced_regret_on_average_over_the_worlds(measure: str, m: int) -> None:
    zero, one = values(measure, m, 0), values(measure, m, 1)
    lost = (zero.max() - zero + one.max() - one) / 2
    np.testing.assert_allclose(lost, forced_regret(measure, n_items=m), rtol=1e-9)
    assert forced_regret(measure, n_items=m) > 0.005


@pytest.mark.parametrize("measure", ["ndcg", "average_precision", "auc"])
@pytest.mark.parametrize("player", ["uniform", "fixed", "rtop1f"])
def test_players_from_top_1_feedback_suffer_it(measure: str, player: str) -> None:
    T, runs = 4_000, 8
    m = adversary(measure).n_items
    forced = forced_regret(measure)
    suffered, regrets = [], []
    for seed in range(runs):
        lost = []
        for world in (0, 1):
            ranker: Any = {
                "uniform": lambda: rankers.Uniform(n_items=m),
                "fixed": lambda: rankers.Fixed(order=np.random.default_rng(seed).permutation(m)),  # noqa: B023
                "rtop1f": lambda: rankers.RTop1F(n_items=m, horizon=T),
            }[player]()
            people = FixedItems(adversary(measure, world=world), measure=measure)
            trace = simulation.play(ranker, people, rounds=T, seed=100 * seed + world, points=1)
            worth = -trace.mean_value if trace.is_loss else trace.mean_value
            lost.append(values(measure, m, world).max() - worth)
            regrets.append(trace.total_regret / T)
        suffered.append(np.mean(lost))
    error = np.std(suffered, ddof=1) / sqrt(runs)
    assert abs(np.mean(suffered) - forced) < 5 * error
    assert error < 0.1 * forced
    # Hindsight also profits from chance, so measured regret is a little above what is forced, never below.
    assert forced - 5 * error < np.mean(regrets) < 2 * forced


def test_whoever_knows_the_world_escapes() -> None:
    lost = []
    for world in (0, 1):
        who = adversary("ndcg", world=world)
        best = FixedItems(who, measure="ndcg").best()
        trace = simulation.play(
            rankers.Fixed(order=best.items), FixedItems(who, measure="ndcg"), rounds=4_000, seed=1, points=1
        )
        lost.append(trace.total_regret / 4_000)
    assert np.mean(lost) < 0.2 * forced_regret("ndcg")


@pytest.mark.parametrize("m", [3, 5])
def test_a_learnable_measure_has_no_such_worlds(m: int) -> None:
    for measure in ("dcg", "sum_loss", "precision@2", "err", "pairwise_loss"):
        with pytest.raises(ValueError, match="measure"):
            adversary(measure, n_items=m)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"measure": "ndcg", "n_items": 2}, "n_items"),
        ({"measure": "auc", "n_items": 3}, "n_items"),
        ({"measure": "ndcg", "n_items": 7}, "n_items"),
        ({"measure": "ndcg", "n_items": 3.5}, "n_items"),
        ({"measure": "ndcg", "world": 2}, "world"),
        ({"measure": "ndcg", "world": None}, "world"),
        ({"measure": "nope"}, "measure"),
    ],
)
def test_wrong_arguments_are_refused_by_name(arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        adversary(**arguments)
