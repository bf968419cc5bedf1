"""RankedExp3: positions choose one after the other, and what stands above is replaced."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rankloop import environments, rankers, simulation
from rankloop.base import Ranking
from rankloop.rankers import ranked_exp3


@pytest.mark.judges("2022-198")
def test_what_stands_above_is_replaced_by_an_unused_item() -> None:
    above = np.array([2, 0, -1, -1])
    assert ranked_exp3.replaced(above, 2, 3, 5, 0) == 3, "not shown yet: stays"
    assert [ranked_exp3.replaced(above, 2, 0, 5, draw) for draw in range(3)] == [1, 3, 4]
    assert [ranked_exp3.replaced(above, 2, 2, 5, draw) for draw in range(3)] == [1, 3, 4]


def test_replacements_are_drawn_evenly_and_learn_nothing() -> None:
    ranker = rankers.RankedExp3(n_items=4, n_positions=2, gamma=0.2)
    ranker.state.w[...] = [[0.97, 0.01, 0.01, 0.01]] * 2  # both positions want item 0
    rng, counts = np.random.default_rng(1), np.zeros(4)
    for _ in range(5000):
        shown = ranker.rank(rng=rng)
        wanted, chances = shown.memo
        np.testing.assert_allclose(chances, 0.8 * ranker.state.w[[0, 1], wanted] + 0.05)
        if wanted[0] == wanted[1] == 0:
            assert shown.items[0] == 0
            counts[shown.items[1]] += 1
        else:
            assert shown.items[0] == wanted[0]
    assert counts[0] == 0
    assert (counts[1:] > 0.3 * counts.sum()).all()
    before = ranker.save()
    replaced = Ranking(np.array([0, 2]), None, (np.array([0, 0]), np.array([0.9, 0.9])))
    ranker.learn(replaced, [0, 1])
    np.testing.assert_array_equal(ranker.state.w, before["w"], "clicked, but not what the position wanted")


@pytest.mark.judges("2022-198", "2022-205")
def test_a_click_on_what_was_wanted_is_an_exp3_step() -> None:
    ranker = rankers.RankedExp3(n_items=3, n_positions=2, gamma=0.3)
    ticket = Ranking(np.array([1, 2]), None, (np.array([1, 2]), np.array([0.25, 0.5])))
    ranker.learn(ticket, [1, 0])
    grown = math.exp(0.3 / (3 * 0.25))
    np.testing.assert_allclose(ranker.state.w[0], np.array([1, grown, 1]) / (2 + grown))
    np.testing.assert_allclose(ranker.state.w[1], 1 / 3)


def test_a_small_weight_never_dies() -> None:
    ranker = rankers.RankedExp3(n_items=2, n_positions=1, gamma=1.0)
    ticket = Ranking(np.array([0]), None, (np.array([0]), np.array([0.5])))
    for _ in range(3000):
        ranker.learn(ticket, [1])
    assert ranker.state.w.min() > 0
    assert ranker.current().tolist() == [0]


def test_it_learns_the_first_position_first() -> None:
    people = environments.PositionBased(attraction=np.linspace(0.9, 0.1, 5), examination=[1.0, 0.5])
    ranker = rankers.RankedExp3(n_items=5, n_positions=2, horizon=50_000)
    trace = simulation.play(ranker, people, rounds=50_000, seed=1, points=10)
    assert ranker.current()[0] == 0
    assert trace.total_regret < 0.5 * 50_000 * (1.3 - 0.75)


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="horizon must be"):
        rankers.RankedExp3(n_items=3)
    with pytest.raises(ValueError, match=r"gamma must be .* got 1\.5"):
        rankers.RankedExp3(n_items=3, gamma=1.5)
    ranker = rankers.RankedExp3(n_items=3, gamma=0.5)
    chances = np.full(3, 0.5)
    with pytest.raises(ValueError, match="must name items below 3"):
        ranker.learn(Ranking(np.arange(3), None, (np.array([0, 1, 7]), chances)), [0, 0, 1])
    with pytest.raises(ValueError, match="must hold probabilities"):
        ranker.learn(Ranking(np.arange(3), None, (np.arange(3), 0 * chances)), [0, 0, 1])
    with pytest.raises(ValueError, match="saved state 'w' must be weights"):
        ranker.load(ranker.save() | {"w": np.ones((3, 3))})
