"""FixedItems: who comes when, what a ranking is worth to them, and which would have been best."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rankloop import measures, rankers, simulation
from rankloop.base import Ints, Ranking
from rankloop.environments import FixedItems, users
from tests.measures.cases import NAMES

GRADED = [name for name in NAMES if not measures.get(name).binary]


def orders(m: int) -> Ints:
    return np.array(list(permutations(range(m))), dtype=np.int64)


@pytest.mark.judges("2015-005")
def test_a_matrix_comes_row_after_row_and_then_says_that_it_is_over() -> None:
    matrix = np.random.default_rng(1).integers(0, 2, (5, 3))
    people = FixedItems(matrix)
    rng = np.random.default_rng(2)
    for t, row in enumerate(matrix):
        assert people.remaining == 5 - t
        people.arrive(rng=rng)
        np.testing.assert_array_equal(people.respond(Ranking(np.array([2, 0, 1])), rng=rng), row[[2, 0, 1]])
    assert people.remaining == 0
    state = [part.copy() for part in people.state]
    with pytest.raises(ValueError, match="restart"):
        people.arrive(rng=rng)
    for before, after in zip(state, people.state, strict=True):
        np.testing.assert_array_equal(before, after)
    people.restart()
    people.arrive(rng=rng)
    np.testing.assert_array_equal(people.state.relevance, matrix[0])


@pytest.mark.parametrize("fused", [True, False])
def test_playing_beyond_the_last_user_is_refused_before_the_first_round(fused: bool) -> None:
    people = FixedItems(np.ones((50, 2), int))
    ranker = rankers.FTPL(n_items=2)
    simulation.play(ranker, people, rounds=30, seed=1, fused=fused)
    with pytest.raises(ValueError, match="rounds"):
        simulation.play(ranker, people, rounds=21, seed=1, fused=fused)
    assert (people.state.t[0], ranker.state.t[0]) == (30, 30)
    simulation.play(ranker, people, rounds=20, seed=1, fused=fused)
    assert people.remaining == 0


def test_users_without_end_have_no_number() -> None:
    assert FixedItems(users.bernoulli([0.5])).remaining is None
    assert FixedItems(users.listed([[1]])).remaining is None
    assert FixedItems(users.listed([[1]], in_order=True)).remaining == 1


@pytest.mark.judges("2015-006", "2015-051")
@settings(max_examples=20)
@given(st.integers(1, 4), st.integers(1, 25), st.integers(0, 2**32 - 1))
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["bernoulli", "listed"])
def test_hindsight_is_the_best_of_all_rankings(kind: str, name: str, m: int, rounds: int, seed: int) -> None:
    assume(m >= 2 or not name.startswith("precision"))  # refused
    rng = np.random.default_rng(seed)
    who = (
        users.bernoulli(rng.random(m))
        if kind == "bernoulli"
        else users.listed(rng.integers(0, 2, (3, m)), weights=rng.random(3) + 0.1)
    )
    _check_hindsight(FixedItems(who, measure=name), measures.get(name), rounds, rng)


@settings(max_examples=20)
@given(st.integers(1, 3), st.integers(1, 15), st.integers(0, 2**32 - 1))
@pytest.mark.parametrize("name", GRADED)
def test_hindsight_is_the_best_of_all_rankings_for_grades(name: str, m: int, rounds: int, seed: int) -> None:
    assume(m >= 2 or not name.startswith("precision"))  # refused
    rng = np.random.default_rng(seed)
    scored = measures.get(name).graded(3) if name.startswith("err") else measures.get(name)
    who = users.graded(rng.dirichlet(np.ones(4), size=m))
    _check_hindsight(FixedItems(who, measure=name), scored, rounds, rng)


def _check_hindsight(people: FixedItems, scored: Any, rounds: int, rng: np.random.Generator) -> None:
    seen = []
    for _ in range(rounds):
        people.arrive(rng=rng)
        seen.append(people.state.relevance.copy())
        order = rng.permutation(people.n_items)
        expected = scored(order, seen[-1])
        np.testing.assert_allclose(people.value(Ranking(order)), expected, rtol=1e-12, atol=1e-12)
    totals = np.asarray(scored(orders(people.n_items)[:, None], np.array(seen)[None])).sum(axis=1)
    best = totals.min() if scored.is_loss else totals.max()
    np.testing.assert_allclose(people.hindsight(), best, rtol=1e-12, atol=1e-12)


def test_hindsight_before_anybody_came_is_nothing() -> None:
    for name in NAMES:
        assert FixedItems(users.bernoulli([0.5, 0.5]), measure=name).hindsight() == 0.0


@pytest.mark.parametrize("name", ["average_precision", "err"])
def test_with_too_many_rankings_to_try_regret_is_nan_and_the_rest_is_not(name: str) -> None:
    people = FixedItems(users.noisy_halves(n_items=9), measure=name)
    trace = simulation.play(rankers.Uniform(n_items=9), people, rounds=50, seed=1)
    assert np.isnan(trace.regret).all()
    assert np.isfinite(trace.value).all()
    assert np.isnan(people.hindsight())


def test_broken_grades_have_no_table_and_so_no_regret() -> None:
    people = FixedItems([[0.5, 1.0, 0.25]], measure="err")
    assert np.isnan(simulation.play(rankers.Uniform(n_items=3), people, rounds=1, seed=1).total_regret)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_best_for_listed_users_is_the_best_of_all_rankings(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scored = measures.get(name)
    vectors, weights = rng.integers(0, 2, (6, 4)), rng.random(6)
    for who, shares in (
        (users.listed(vectors, weights=weights), weights),
        (users.listed(vectors, in_order=True), np.ones(6)),
    ):
        totals = np.asarray(scored(orders(4)[:, None], vectors[None])) @ shares
        best = totals.min() if scored.is_loss else totals.max()
        shown = FixedItems(who, measure=name).best()
        assert np.asarray(scored(shown.items, vectors)) @ shares == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_best_for_independent_users_is_the_best_in_expectation(name: str, seed: int) -> None:
    chances = np.random.default_rng(seed).random(4)
    outcomes = np.array(list(product((0, 1), repeat=4)))
    weights = np.prod(np.where(outcomes, chances, 1 - chances), axis=1)
    scored = measures.get(name)
    expected = np.asarray(scored(orders(4)[:, None], outcomes[None])) @ weights
    best = expected.min() if scored.is_loss else expected.max()
    shown = FixedItems(users.bernoulli(chances), measure=name).best()
    assert np.asarray(scored(shown.items, outcomes)) @ weights == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("name", ["sum_loss", "dcg", "dcg@2", "precision@2"])
def test_best_for_graded_and_switching_users_is_the_best_in_expectation(name: str) -> None:
    scored = measures.get(name)
    chances = np.array(
        [[0.0, 1.0, 0.0], [0.6, 0.0, 0.4], [0.3, 0.5, 0.2]]
    )  # the second wins by its high grades
    means = chances @ np.asarray(scored.gain(np.arange(3.0)))
    people = FixedItems(users.graded(chances), measure=name)
    assert means[people.best().items].tolist() == sorted(means, reverse=True)
    phases = np.array([[0.9, 0.2, 0.5], [0.0, 0.8, 0.5]])
    switching = FixedItems(users.switching(list(phases), period=3), measure=name)
    assert phases.sum(axis=0)[switching.best().items].tolist() == sorted(phases.sum(axis=0), reverse=True)


@pytest.mark.parametrize("name", ["ndcg", "average_precision", "auc", "err"])
def test_best_for_users_that_change_their_minds_is_the_best_in_expectation(name: str) -> None:
    # Item 0 is liked alone, the others together: a normalised measure gives it more than its mean relevance.
    phases = np.array([[0.0, 0.6, 0.9, 0.9], [0.5, 0.0, 0.0, 0.0]])
    outcomes = np.array(list(product((0, 1), repeat=4)))
    weights = np.mean([np.prod(np.where(outcomes, phase, 1 - phase), axis=1) for phase in phases], axis=0)
    scored = measures.get(name)
    expected = np.asarray(scored(orders(4)[:, None], outcomes[None])) @ weights
    best = expected.min() if scored.is_loss else expected.max()
    shown = FixedItems(users.switching(list(phases), period=5), measure=name).best()
    assert np.asarray(scored(shown.items, outcomes)) @ weights == pytest.approx(best, rel=1e-12)


def test_the_best_ranking_of_too_many_is_refused_with_a_reason() -> None:
    people = FixedItems(users.listed(np.eye(9, dtype=int)), measure="average_precision")
    with pytest.raises(ValueError, match="average_precision"):
        people.best()


def test_a_scale_of_err_above_the_grades_is_kept() -> None:
    # Binary users on a scale of grades 0 to 4: stopping at a relevant item has probability 1/16, not 1/2.
    scored = measures.get("err", max_grade=4)
    people = FixedItems([[1, 0, 1]], measure=scored)
    people.arrive(rng=np.random.default_rng(1))
    assert people.value(Ranking(np.array([0, 1, 2]))) == pytest.approx(
        scored([0, 1, 2], [1, 0, 1]), rel=1e-12
    )
    assert people.hindsight() == pytest.approx(scored([0, 2, 1], [1, 0, 1]), rel=1e-12)


def test_err_takes_its_scale_from_the_users() -> None:
    people = FixedItems([[3, 0, 1]], measure="err")
    people.arrive(rng=np.random.default_rng(1))
    expected = measures.get("err", max_grade=3)([0, 1, 2], [3, 0, 1])
    assert people.value(Ranking(np.array([0, 1, 2]))) == pytest.approx(expected, rel=1e-12)


def test_pairwise_loss_of_broken_grades_counts_pairs() -> None:
    relevance = [0.3, 0.7, 0.5]
    people = FixedItems([relevance], measure="pairwise_loss")
    people.arrive(rng=np.random.default_rng(1))
    for order in orders(3):
        assert people.value(Ranking(order)) == measures.get("pairwise_loss")(order, relevance)


@pytest.mark.parametrize("name", ["auc", "average_precision"])
def test_broken_grades_are_refused_by_a_binary_measure(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        FixedItems([[0.3, 0.7, 0.5]], measure=name)


def test_grades_above_those_of_the_measure_are_refused() -> None:
    with pytest.raises(ValueError, match=r"measure|relevance"):
        FixedItems([[3, 0]], measure=measures.get("dcg", max_grade=1))


def test_the_matrix_belongs_to_the_environment() -> None:
    for dtype in (np.int8, np.float64, np.int64):
        matrix = np.full((2, 2), 0.5 if dtype is np.float64 else 1, dtype=dtype)
        people = FixedItems(matrix)
        matrix[:] = 0
        people.arrive(rng=np.random.default_rng(1))
        assert people.state.relevance.all(), (
            f"changing a {np.dtype(dtype)} matrix changed the users made of it"
        )


def test_listed_weights_belong_to_the_users() -> None:
    weights = np.array([1.0, 0.0])
    who = users.listed([[1, 0], [0, 1]], weights=weights)
    weights[:] = [0, 1]
    assert who.weights is not None
    assert who.weights.tolist() == [1, 0]


QUESTIONS = """
import numpy as np
from rankloop.base import Ranking
from rankloop.environments import FixedItems

rng = np.random.default_rng(1)
people = FixedItems([[1, 0, 1]])
people.arrive(rng=rng)
for items in ([0.0, 1.0, 2.0], [[0, 1, 2]], list(range(4000)), [], [0, 1]):
    ranking = Ranking(np.array(items))
    for ask in (people.value, lambda ranking: people.respond(ranking, rng=rng)):
        try:
            ask(ranking)
        except ValueError as refused:
            print("items" in str(refused), flush=True)
        else:
            print("answered", flush=True)
"""


def test_a_ranking_of_another_shape_is_refused() -> None:
    # In a process of its own: kernels do not check bounds, and reading beyond an array may end the process.
    done = subprocess.run([sys.executable, "-c", QUESTIONS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-300:] or "it crashed"
    assert done.stdout.split() == ["True"] * 10


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: FixedItems([]), "relevance"),
        (lambda: FixedItems([[]]), "relevance"),
        (lambda: FixedItems([1, 0]), "relevance"),
        (lambda: FixedItems([[[1]]]), "relevance"),
        (lambda: FixedItems(3), "relevance"),
        (lambda: FixedItems(None), "relevance"),  # type: ignore[arg-type]
        (lambda: FixedItems([[1, np.nan]]), "relevance"),
        (lambda: FixedItems([[1, np.inf]]), "relevance"),
        (lambda: FixedItems([[1, -1]]), "relevance"),
        (lambda: FixedItems([[1, 1e6]]), "relevance"),
        (lambda: FixedItems([[1], [1, 0]]), "relevance"),
        (lambda: FixedItems([["a", "b"]]), "relevance"),
        (lambda: FixedItems([[1, 0]], measure="dgc"), "dgc"),
        (lambda: FixedItems([[1, 0]], measure="precision"), "precision"),
        (lambda: FixedItems([[1, 0]], measure="dcg@0"), "k"),
        (
            lambda: FixedItems([[1, 0]], measure="precision@3"),
            "cut-off of at most n_items=2, got 'precision@3'",
        ),
        (lambda: FixedItems([[1, 2]], measure="auc"), "auc"),
        (lambda: FixedItems([[1, 2]], measure="average_precision"), "average_precision"),
    ],
)
def test_what_cannot_be_an_environment_is_refused_by_name(make: Callable[[], Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        make()
