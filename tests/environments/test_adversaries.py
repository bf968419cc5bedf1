"""Adversaries, and worlds that no feedback tells apart."""

from __future__ import annotations

from itertools import combinations, permutations
from math import sqrt
from typing import Any

import numpy as np
import pytest

from rankloop import games, measures, rankers, simulation
from rankloop.base import Floats
from rankloop.environments import FixedItems, Indistinguishable, adversary, forced_regret

CASES = [
    ("ndcg", 3),
    ("ndcg", 4),
    ("ndcg", 6),
    ("average_precision", 3),
    ("average_precision", 5),
    ("auc", 4),
    ("auc", 5),
]


def values(measure: str, m: int, world: int) -> Floats:
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


def verdict_of(measure: str, m: int, k: int, route: str = "auto") -> games.Verdict:
    return games.classify(games.ranking_game(measure=measure, n_items=m, k=k), route=route)


CASES_INDISTINGUISHABLE = [
    ("ndcg", 3, 1, "cells"),
    ("ndcg", 4, 2, "structure"),
    ("average_precision", 3, 1, "structure"),
    ("auc", 4, 1, "cells"),
    ("err", 3, 1, "cells"),
    ("ndcg@10", 50, 3, "structure"),
]


@pytest.mark.parametrize(("measure", "m", "k", "route"), CASES_INDISTINGUISHABLE)
def test_any_k_labels_are_alike_in_both_worlds(measure: str, m: int, k: int, route: str) -> None:
    verdict = verdict_of(measure, m, k, route)
    people = Indistinguishable(verdict)
    vectors = np.asarray(people.params.users.vectors)
    p, q = np.diff(people.params.users.cumulative, axis=1, prepend=0.0)
    ever = np.flatnonzero(vectors.any(axis=0))
    for seen in combinations(ever, k):
        both = vectors[:, seen].prod(axis=1)
        assert both @ p == pytest.approx(both @ q, abs=1e-12)
    one, other = (Indistinguishable(verdict, world=world).best().items for world in (0, 1))
    assert not np.array_equal(one, other)


@pytest.mark.parametrize(("measure", "m", "k", "route"), CASES_INDISTINGUISHABLE[:5])
def test_nobody_escapes(measure: str, m: int, k: int, route: str) -> None:
    verdict = verdict_of(measure, m, k, route)
    T = 20_000
    for make in (
        lambda: rankers.RTop1F(n_items=m, horizon=T, measure="dcg", k=k),
        lambda: rankers.PrecisionFTRL(n_items=m, measure="precision@2", k=k),
        lambda: rankers.Uniform(n_items=m),
    ):
        lost = []
        for seed in range(8):
            both = [
                simulation.play(
                    make(), Indistinguishable(verdict, world=world), rounds=T, seed=seed, points=1
                )
                for world in (0, 1)
            ]
            lost.append(np.mean([trace.total_regret / T for trace in both]))
        forced = float(verdict.worlds.forced)  # type: ignore[union-attr]
        assert np.mean(lost) > forced - 4 * np.std(lost, ddof=1) / np.sqrt(8) - 2e-3


def test_chance_decides_once_and_evenly() -> None:
    people = Indistinguishable(verdict_of("ndcg", 3, 1))
    assert people.world is None
    drawn = []
    for seed in range(60):
        people.restart()
        rng = np.random.default_rng(seed)
        people.arrive(rng=rng)
        first = people.world
        for _ in range(20):
            people.arrive(rng=rng)
            assert people.world == first
        drawn.append(first)
    assert 15 < sum(drawn) < 45


def test_a_fixed_order_may_be_right_in_one_world_only() -> None:
    verdict = verdict_of("average_precision", 3, 1, "cells")
    T = 20_000
    for world in (0, 1):
        people = Indistinguishable(verdict, world=world)
        right, wrong = (Indistinguishable(verdict, world=w).best().items for w in (world, 1 - world))
        small = simulation.play(rankers.Fixed(order=right), people, rounds=T, seed=1, points=1).total_regret
        people.restart()
        large = simulation.play(rankers.Fixed(order=wrong), people, rounds=T, seed=1, points=1).total_regret
        assert small < 0.1 * large


def test_what_is_not_hopeless_is_refused() -> None:
    with pytest.raises(ValueError, match="got one that is hard and lists none"):
        Indistinguishable(verdict_of("dcg", 3, 1))
    with pytest.raises(ValueError, match="got one that is hopeless and lists none"):
        Indistinguishable(verdict_of("ndcg", 50, 40))
    with pytest.raises(ValueError, match="must be about a ranking game"):
        Indistinguishable(games.classify(games.zoo.blind_pennies()))
    with pytest.raises(ValueError, match="world must be 0, 1 or None"):
        Indistinguishable(verdict_of("ndcg", 3, 1), world=2)
