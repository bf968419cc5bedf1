"""Each kind of users comes as often as it says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from rankloop.base import Floats, Ranking
from rankloop.environments import FixedItems, users

UNLIKELY = 1e-4
N = 8_000


def draw(who: users.Users, n: int = N, seed: int = 1) -> Floats:
    """The relevance vectors of the first `n` users, seen through the front door."""
    people = FixedItems(who)
    as_listed = Ranking(np.arange(people.n_items))
    rng = np.random.default_rng(seed)
    seen = []
    for _ in range(n):
        people.arrive(rng=rng)
        seen.append(people.respond(as_listed, rng=rng))
    return np.array(seen)


def assert_frequencies(seen: Floats, chances: Floats) -> None:
    error = np.sqrt(chances * (1 - chances) / len(seen))
    assert (np.abs(seen.mean(axis=0) - chances) <= 4.5 * error).all(), (seen.mean(axis=0), chances)


def test_bernoulli_items_are_relevant_as_often_as_said_and_independently() -> None:
    chances = np.array([0.0, 0.2, 0.5, 0.9, 1.0])
    seen = draw(users.bernoulli(chances))
    assert_frequencies(seen, chances)
    joint = Counter(map(tuple, seen[:, 1:4].astype(int).tolist()))
    outcomes = [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)]
    expected = [
        N * np.prod(np.where(outcome, chances[1:4], 1 - chances[1:4])) for outcome in np.array(outcomes)
    ]
    assert stats.chisquare([joint[outcome] for outcome in outcomes], expected).pvalue > UNLIKELY


def test_one_user_says_nothing_about_the_next() -> None:
    seen = draw(users.bernoulli([0.5, 0.5]))[:, 0].astype(int)
    pairs = Counter(zip(seen[:-1:2].tolist(), seen[1::2].tolist(), strict=True))
    assert stats.chisquare(list(pairs.values())).pvalue > UNLIKELY


@pytest.mark.parametrize("m", [1, 2, 5, 10])
@pytest.mark.parametrize("noise", [0.25, 0.5, 1.0])
def test_noisy_halves_flip_like_a_gaussian_cut_in_the_middle(m: int, noise: float) -> None:
    flip = stats.norm.cdf(-0.5 / noise)  # erratum A23
    relevant = np.arange(m) < (m + 1) // 2
    np.testing.assert_allclose(
        users.noisy_halves(n_items=m, noise=noise).tails[0, 0], np.where(relevant, 1 - flip, flip)
    )


@pytest.mark.judges("2015-066")
def test_noisy_halves_come_as_the_paper_made_them() -> None:
    true = np.array([1, 1, 1, 0, 0, 0])
    made = true + 0.5 * np.random.default_rng(2).standard_normal((N, 6)) > 0.5
    assert_frequencies(
        draw(users.noisy_halves(n_items=6, noise=0.5)), np.where(true, stats.norm.cdf(1), stats.norm.cdf(-1))
    )
    np.testing.assert_allclose(
        made.mean(axis=0), users.noisy_halves(n_items=6, noise=0.5).tails[0, 0], atol=0.02
    )


def test_without_noise_everybody_agrees() -> None:
    assert (draw(users.noisy_halves(n_items=4, noise=0.0), n=50) == [1, 1, 0, 0]).all()


def test_switching_users_change_their_minds_together_and_on_time() -> None:
    phases = np.array([[0.9, 0.1, 0.5], [0.1, 0.9, 0.5], [0.5, 0.5, 0.0]])
    seen = draw(users.switching(list(phases), period=7), n=9_030)
    phase = np.arange(len(seen)) // 7 % 3
    for i in range(3):
        assert_frequencies(seen[phase == i], phases[i])


def test_switching_after_every_round_and_after_very_many() -> None:
    assert (draw(users.switching([[1, 0], [0, 1]], period=1), n=6)[:, 0] == [1, 0, 1, 0, 1, 0]).all()
    assert (draw(users.switching([[1, 0], [0, 1]], period=10**9), n=6)[:, 0] == 1).all()


def test_switching_takes_users_as_well_as_chances() -> None:
    one, other = users.bernoulli([0.9, 0.1]), [0.2, 0.8]
    both = users.switching([one, other], period=3)
    np.testing.assert_allclose(both.tails[:, 0, :], [[0.9, 0.1], [0.2, 0.8]])


def test_graded_users_give_each_grade_as_often_as_said() -> None:
    chances = np.array([[0.2, 0.3, 0.5], [0.7, 0.0, 0.3], [0.0, 1.0, 0.0], [0.1, 0.8, 0.1]])
    seen = draw(users.graded(chances)).astype(int)
    for item, row in enumerate(chances):
        counts = np.bincount(seen[:, item], minlength=3)
        assert len(counts) == 3
        assert (counts[row == 0] == 0).all()
        possible = row > 0
        if possible.sum() > 1:
            assert stats.chisquare(counts[possible], N * row[possible]).pvalue > UNLIKELY


@pytest.mark.parametrize("weights", [None, [1, 2, 3, 4], [0.5, 0, 0, 0.5], [0, 7, 0, 0]])
def test_listed_users_come_by_weight(weights: list[float] | None) -> None:
    vectors = np.array([[0, 0, 1], [2, 0, 0], [0, 3, 0], [0.5, 0.25, 0]])
    shares = np.full(4, 0.25) if weights is None else np.array(weights) / sum(weights)
    seen = draw(users.listed(vectors, weights=weights))
    counts = np.array([(seen == vector).all(axis=1).sum() for vector in vectors])
    assert counts.sum() == N
    assert (counts[shares == 0] == 0).all()
    if (shares > 0).sum() > 1:
        assert stats.chisquare(counts[shares > 0], N * shares[shares > 0]).pvalue > UNLIKELY


def test_listed_users_in_order_are_a_matrix() -> None:
    vectors = np.random.default_rng(3).integers(0, 3, (20, 4))
    np.testing.assert_array_equal(draw(users.listed(vectors, in_order=True), n=20), vectors)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.float32, np.float64])
def test_relevance_of_any_type_means_the_same(dtype: Any) -> None:
    matrix = np.array([[1, 0, 1], [0, 0, 1]], dtype=dtype)
    np.testing.assert_array_equal(draw(users.listed(matrix, in_order=True), n=2), matrix)


@pytest.mark.parametrize("grades", [[0, 127], [0, 128], [0, 1000], [0.5, 2.25]])
def test_high_and_broken_grades_survive(grades: list[float]) -> None:
    np.testing.assert_array_equal(draw(users.listed([grades], in_order=True), n=1), [grades])


BAD_NUMBERS: list[Any] = [float("nan"), float("inf"), -0.1, 1.1]


@pytest.mark.parametrize(
    ("make", "named"),
    [
        *((lambda bad=bad: users.bernoulli([0.5, bad]), "probabilities") for bad in BAD_NUMBERS),
        (lambda: users.bernoulli([]), "probabilities"),
        (lambda: users.bernoulli([[0.5]]), "probabilities"),
        (lambda: users.bernoulli(0.5), "probabilities"),
        (lambda: users.bernoulli(None), "probabilities"),
        (lambda: users.bernoulli(["a"]), "probabilities"),
        (lambda: users.noisy_halves(n_items=0), "n_items"),
        (lambda: users.noisy_halves(n_items=2.5), "n_items"),
        *((lambda bad=bad: users.noisy_halves(noise=bad), "noise") for bad in BAD_NUMBERS[:3]),
        (lambda: users.noisy_halves(noise="loud"), "noise"),
        (lambda: users.switching([], period=1), "phases"),
        (lambda: users.switching([[0.5], [0.5, 0.5]], period=1), "phases"),
        (lambda: users.switching([[0.5, 2]], period=1), r"phases\[0\]"),
        (lambda: users.switching([[0.5], ["a"]], period=1), "phases"),
        (lambda: users.switching([[0.5]], period=0), "period"),
        (lambda: users.switching([[0.5]], period=1.5), "period"),
        (lambda: users.graded([[1.0]]), "probabilities"),
        (lambda: users.graded([0.5, 0.5]), "probabilities"),
        (lambda: users.graded([[0.5, 0.4]]), "probabilities"),
        (lambda: users.graded([[1.5, -0.5]]), "probabilities"),
        (lambda: users.graded([[0.5, float("nan")]]), "probabilities"),
        (lambda: users.graded([[0.5, 0.5], [1.0]]), "probabilities"),
        (lambda: users.listed([]), "vectors"),
        (lambda: users.listed([[]]), "vectors"),
        (lambda: users.listed([1, 0]), "vectors"),
        (lambda: users.listed([[1, -1]]), "vectors"),
        (lambda: users.listed([[1, float("nan")]]), "vectors"),
        (lambda: users.listed([[1, float("inf")]]), "vectors"),
        (lambda: users.listed([[1, 1001]]), "vectors"),
        (lambda: users.listed([[1, 0], [1]]), "vectors"),
        (lambda: users.listed([["a", "b"]]), "vectors"),
        (lambda: users.listed([[None, 1]]), "vectors"),
        (lambda: users.listed([[1j, 1]]), "vectors"),
        (lambda: users.listed([[1, 0]], weights=[1, 2]), "weights"),
        (lambda: users.listed([[1, 0]], weights=[0]), "weights"),
        (lambda: users.listed([[1, 0], [0, 1]], weights=[2, -1]), "weights"),
        (lambda: users.listed([[1, 0]], weights=[float("nan")]), "weights"),
        (lambda: users.listed([[1, 0]], weights="x"), "weights"),
        (lambda: users.listed([[1, 0]], weights=[1], in_order=True), "weights"),
    ],
)
def test_users_that_cannot_be_are_refused_by_name(make: Callable[[], Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        make()


def test_hardly_any_noise_and_nothing_but_noise() -> None:
    np.testing.assert_allclose(users.noisy_halves(n_items=2, noise=1e-300).tails[0, 0], [1, 0])
    assert users.noisy_halves(n_items=2, noise=1e9).tails[0, 0, 0] == pytest.approx(0.5, abs=1e-6)
