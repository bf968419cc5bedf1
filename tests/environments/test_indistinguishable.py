"""Worlds from a verdict: alike to whoever sees k labels, and dear to every learner."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from rankloop import games, rankers, simulation
from rankloop.environments import Indistinguishable


def verdict_of(measure: str, m: int, k: int, route: str = "auto") -> games.Verdict:
    return games.classify(games.ranking_game(measure=measure, n_items=m, k=k), route=route)


CASES = [
    ("ndcg", 3, 1, "cells"),
    ("ndcg", 4, 2, "structure"),
    ("average_precision", 3, 1, "structure"),
    ("auc", 4, 1, "cells"),
    ("err", 3, 1, "cells"),
    ("ndcg@10", 50, 3, "structure"),
]


@pytest.mark.parametrize(("measure", "m", "k", "route"), CASES)
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


@pytest.mark.parametrize(("measure", "m", "k", "route"), CASES[:5])
def test_nobody_escapes(measure: str, m: int, k: int, route: str) -> None:
    verdict = verdict_of(measure, m, k, route)
    T = 20_000
    for make in (
        lambda: rankers.RTop1F(n_items=m, horizon=T, measure="dcg", k=k),
        lambda: rankers.PrecisionFTRL(n_items=m, measure="precision@2", k=k),
        lambda: rankers.Uniform(n_items=m),
    ):
        lost = []
        for seed in range(3):
            both = [
                simulation.play(
                    make(), Indistinguishable(verdict, world=world), rounds=T, seed=seed, points=1
                )
                for world in (0, 1)
            ]
            lost.append(np.mean([trace.total_regret / T for trace in both]))
        forced = float(verdict.worlds.forced)  # type: ignore[union-attr]
        assert np.mean(lost) > forced - 4 * np.std(lost, ddof=1) / np.sqrt(3) - 2e-3


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
