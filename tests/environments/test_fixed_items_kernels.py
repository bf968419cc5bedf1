"""Users and their sums, kernel by kernel, against numpy that is plainly the formula."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rankloop import measures
from rankloop.environments import FixedItems, users
from rankloop.measures import Measure
from tests.kernels.splitmix import MASK, uniforms

ORDERS = {m: np.array(list(permutations(range(m)))) for m in range(1, 5)}
SEPARABLE = ["sum_loss", "pairwise_loss", "dcg", "dcg@2", "precision@2", "ndcg", "ndcg@2", "auc"]
TABLED = ["average_precision", "average_precision@2", "err", "err@2"]


def arrive(people: FixedItems, key: int) -> NDArray[np.float64]:
    people.kernels.arrive(people.params, people.state, np.uint64(key))
    return people.state.relevance.copy()


@given(st.integers(0, MASK), st.integers(0, 50), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_independent_users_compare_one_number_an_item_with_their_tails(
    key: int, rounds_before: int, period: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    phases = rng.random((3, 5)).round(1)
    people = FixedItems(users.switching(list(phases), period=period))
    people.state.t[0] = rounds_before
    phase = phases[rounds_before // period % 3]
    np.testing.assert_array_equal(arrive(people, key), np.array(uniforms(key, 5)) < phase)
    assert people.state.t[0] == rounds_before + 1


@given(st.integers(0, MASK), st.integers(0, 2**32 - 1))
def test_graded_users_invert_the_distribution_of_each_item(key: int, seed: int) -> None:
    chances = np.random.default_rng(seed).dirichlet(np.ones(4), size=5)
    u = np.array(uniforms(key, 5))
    at_least = 1 - np.cumsum(chances, axis=1)[:, :-1]
    expected = (u[:, None] < at_least).sum(axis=1)
    np.testing.assert_array_equal(arrive(FixedItems(users.graded(chances)), key), expected)


@given(st.integers(0, MASK), st.lists(st.sampled_from([0.0, 1.0, 2.5]), min_size=2, max_size=9))
def test_listed_users_are_drawn_by_weight_and_never_with_weight_zero(key: int, weights: list[float]) -> None:
    if sum(weights) == 0:
        weights[0] = 1.0
    vectors = np.eye(len(weights))
    shares = np.array(weights) / sum(weights)
    row = int(arrive(FixedItems(users.listed(vectors, weights=weights)), key).argmax())
    assert weights[row] > 0
    u = uniforms(key, 1)[0]
    assert shares[:row].sum() - 1e-12 <= u <= shares[: row + 1].sum() + 1e-12


def test_a_matrix_is_played_row_after_row() -> None:
    matrix = np.random.default_rng(1).integers(0, 5, (7, 3))
    people = FixedItems(matrix)
    np.testing.assert_array_equal([arrive(people, key) for key in range(7)], matrix)


def _totals(measure: Measure, orders: NDArray[Any], seen: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(measure(orders[:, None, :], seen[None, :, :])).sum(axis=1)


@settings(max_examples=30)
@given(st.integers(1, 4), st.integers(1, 12), st.integers(0, 2**32 - 1))
@pytest.mark.parametrize("name", SEPARABLE + TABLED)
def test_value_response_and_hindsight_of_binary_users(name: str, m: int, rounds: int, seed: int) -> None:
    seen = np.random.default_rng(seed).integers(0, 2, (rounds, m))
    _check_against_all_orders(measures.get(name), seen, np.random.default_rng(seed))


@settings(max_examples=30)
@given(st.integers(1, 3), st.integers(1, 8), st.integers(1, 3), st.integers(0, 2**32 - 1))
@pytest.mark.parametrize(
    "name", ["sum_loss", "pairwise_loss", "dcg", "dcg@2", "precision@2", "ndcg", "ndcg@2", "err", "err@2"]
)
def test_value_response_and_hindsight_of_graded_users(
    name: str, m: int, rounds: int, max_grade: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    seen = rng.integers(0, max_grade + 1, (rounds, m))
    seen[0, 0] = max_grade  # the environment takes the scale of err from the highest grade there is
    measure = measures.get(name)
    _check_against_all_orders(measure.graded(max_grade) if name.startswith("err") else measure, seen, rng)


def _check_against_all_orders(measure: Measure, seen: NDArray[Any], rng: np.random.Generator) -> None:
    m = seen.shape[1]
    assume(m >= 2 or measure.family != "precision")  # refused
    people = FixedItems(seen, measure=measure)
    for t, relevance in enumerate(seen):
        np.testing.assert_array_equal(arrive(people, t), relevance)
        order = rng.permutation(m)
        value = people.kernels.value(people.params, people.state, order)
        np.testing.assert_allclose(value, measure(order, relevance), rtol=1e-12, atol=1e-12)
        revealed = np.full(m, np.nan)
        people.kernels.respond(people.params, people.state, order, np.uint64(0), revealed)
        np.testing.assert_array_equal(revealed, relevance[order])
        totals = _totals(measure, ORDERS[m], seen[: t + 1])
        best = totals.min() if measure.is_loss else totals.max()
        hindsight = people.kernels.hindsight(people.params, people.state)
        np.testing.assert_allclose(hindsight, best, rtol=1e-12, atol=1e-12)
