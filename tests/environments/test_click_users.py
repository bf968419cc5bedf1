"""Users of every click model: draws against all click vectors, best lists against all lists."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from rankloop import environments, feedback, rankers, simulation
from rankloop.base import Ranking
from rankloop.checks import check_same_story
from rankloop.environments import ClickUsers
from rankloop.environments.click_users import best_of_world, every_list
from tests.feedback.test_click_models import KINDS, M, N, all_clicks, models

BY_KIND = pytest.mark.parametrize("kind", range(len(KINDS)), ids=lambda kind: KINDS[kind].__name__)


def frequencies(people: ClickUsers, items: np.ndarray, n_draws: int, seed: int) -> np.ndarray:
    """How often each click vector was drawn."""
    rng = np.random.default_rng(seed)
    seen = np.zeros(2 ** len(items), np.int64)
    for _ in range(n_draws):
        clicks = people.respond(Ranking(items), rng=rng).astype(np.int64)
        seen[clicks @ (1 << np.arange(len(items))[::-1])] += 1
    return seen


def fits(seen: np.ndarray, chance: np.ndarray) -> bool:
    expected = seen.sum() * chance
    variance = expected * (1 - chance)
    z = (seen - expected) / np.sqrt(np.maximum(variance, 1e-300))
    return bool((seen[chance < 1e-15] == 0).all() and (np.abs(z[variance > 3]) < 4.5).all())


@BY_KIND
def test_draws_are_those_of_the_model(kind: int) -> None:
    for seed in (3, 4):
        model = models(seed)[kind]
        people = ClickUsers(model, n_positions=M)
        items = np.random.default_rng(seed).permutation(N)[:M]
        seen = frequencies(people, items, 3_000, 50 + seed)
        assert fits(seen, model.likelihood(items, all_clicks(M)))


def test_draws_of_another_model_would_be_noticed() -> None:
    attraction = np.linspace(0.8, 0.2, N)
    shown = np.arange(M)
    seen = frequencies(ClickUsers(feedback.CascadeModel(attraction), n_positions=M), shown, 3_000, 1)
    almost = feedback.DependentClickModel(attraction, np.full(M, 0.05))
    assert fits(seen, feedback.CascadeModel(attraction).likelihood(shown, all_clicks(M)))
    assert not fits(seen, almost.likelihood(shown, all_clicks(M)))


@BY_KIND
def test_the_best_list_is_the_best_of_all_lists(kind: int) -> None:
    for seed in range(60):
        m = 1 + seed % M
        model = models(seed)[kind]
        people = ClickUsers(model, n_positions=m)
        lists = np.array(list(itertools.permutations(range(N), m)))
        values = model.click_probabilities(lists).sum(axis=1)
        assert people.params.best[0] == pytest.approx(values.max(), abs=1e-12)
        assert people.value(people.best()) == pytest.approx(values.max(), abs=1e-12)
        some = lists[np.random.default_rng(seed).integers(len(lists))]
        assert people.value(Ranking(some)) == pytest.approx(model.click_probabilities(some).sum(), abs=1e-12)


def large(kind: str) -> feedback.ClickModel:
    attraction = np.random.default_rng(1).random(400)
    return {
        "cascade": feedback.CascadeModel(attraction),
        "dependent": feedback.DependentClickModel(attraction, np.linspace(0.9, 0.1, 10)),
        "bayesian": feedback.DynamicBayesianModel(attraction, attraction[::-1], 0.9),
        "chain": feedback.ClickChainModel(attraction, [0.9, 0.8, 0.1]),
        "position": feedback.PositionBasedModel(attraction, 1 / np.arange(1, 11)),
    }[kind]


@pytest.mark.parametrize("kind", ["cascade", "dependent", "bayesian", "chain", "position"])
def test_the_best_of_a_large_catalogue_needs_no_enumeration(kind: str) -> None:
    model = large(kind)
    people = ClickUsers(model, n_positions=10)
    best = people.best().items
    top = model.click_probabilities(best).sum()
    assert people.params.best[0] == pytest.approx(top)
    rng = np.random.default_rng(2)
    for _ in range(300):  # no exchange of a shown item for another, or of two positions, is better
        other = best.copy()
        i, j = rng.integers(10), rng.integers(10)
        new = rng.integers(400)
        other[i] = other[i] if new in other else new
        other[[i, j]] = other[[j, i]]
        assert model.click_probabilities(other).sum() <= top + 1e-12


def test_sorting_by_attraction_is_best_where_the_chance_to_read_on_falls_and_only_there() -> None:
    attraction = np.array([0.9, 0.6, 0.5, 0.2])
    falling = ClickUsers(feedback.DependentClickModel(attraction, [0.9, 0.5, 0.1]))
    assert falling.best().items.tolist() == [0, 1, 2]
    rising = ClickUsers(feedback.DependentClickModel(attraction, [0.0, 1.0, 1.0]))
    assert (
        rising.best().items.tolist()[0] == 3
    )  # the least attractive first: most users read on, and click twice
    unsatisfying = ClickUsers(feedback.DynamicBayesianModel([0.5, 0.4], [1.0, 0.0], 1.0))
    assert unsatisfying.best().items.tolist() == [1, 0]


@pytest.mark.parametrize("seed", range(5))
def test_the_best_list_of_several_models_is_the_best_of_all(seed: int) -> None:
    mixed = models(seed)
    people = ClickUsers(mixed, n_positions=3, phase=5)
    trace = simulation.play(rankers.Uniform(n_items=N, n_positions=3), people, rounds=47, seed=1, points=47)
    lists = every_list(N, 3)
    assert lists is not None
    values = np.array([model.click_probabilities(lists).sum(axis=1) for model in mixed])
    worlds = np.arange(47) // 5 % len(mixed)
    hindsight = [values[worlds[:t]].sum(axis=0).max() for t in range(1, 48)]
    np.testing.assert_allclose(trace.regret + trace.total, hindsight)
    np.testing.assert_allclose(people.ideal(trace.rounds), np.cumsum(values.max(axis=1)[worlds]))
    assert values.mean(axis=0)[(lists == people.best().items).all(axis=1)] == pytest.approx(
        values.mean(axis=0).max()
    )


def test_more_lists_than_can_be_tried_have_no_best() -> None:
    one = large("dependent")
    people = ClickUsers([one, large("cascade")], phase=3)
    trace = simulation.play(rankers.Uniform(n_items=400, n_positions=10), people, rounds=5, seed=1)
    assert np.isnan(trace.total_regret)
    with pytest.raises(ValueError, match="10 of 400 items cannot be found"):
        people.best()
    assert np.isfinite(people.ideal(5))
    rising = feedback.DependentClickModel(one.attraction, np.linspace(0.1, 0.9, 10))
    assert np.isnan(best_of_world(rising.browsing(10))[0])


@pytest.mark.parametrize("name", ["CascadeKLUCB", "PBMTS", "TopRank"])
def test_the_compiled_loop_tells_the_same_story(name: str) -> None:
    kind = getattr(rankers, name)
    arguments: dict[str, Any] = {"n_items": 10, "n_positions": 5}
    if name == "TopRank":
        arguments["horizon"] = 300
    for world in ("user-browsing", "dynamic-bayesian-periodic"):
        check_same_story(lambda: kind(**arguments), lambda world=world: environments.named(world))


def test_a_cascade_ranker_learns_the_cascade_world() -> None:
    people = environments.named("cascade")
    ranker = rankers.CascadeKLUCB(n_items=10, n_positions=5)
    simulation.play(ranker, people, rounds=20_000, seed=1)
    assert sorted(ranker.current().tolist()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"models": []}, "models must be a click model or a list of at least one"),
        ({"models": "cascade"}, r"models\[0\] must be a click model"),
        ({"models": [feedback.CascadeModel([0.5]), 3]}, r"models\[1\] must be a click model"),
        ({"models": [feedback.CascadeModel([0.5]), feedback.CascadeModel([0.5, 0.1])]}, "equally many items"),
        (
            {"models": feedback.CascadeModel([0.5]), "n_positions": 2},
            "n_positions must be at most n_items=1, got 2",
        ),
        ({"models": feedback.CascadeModel([0.5]), "n_positions": 0}, "n_positions must be"),
        ({"models": feedback.CascadeModel([0.5]), "phase": 0}, "phase must be"),
    ],
)
def test_a_wrong_argument_is_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ClickUsers(**given)
