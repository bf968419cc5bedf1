"""Synthetic queries and ratings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rankloop import data


def test_same_seed_same_queries() -> None:
    one, other = (data.synthetic_letor(n_queries=30, n_features=5, seed=3) for _ in range(2))
    np.testing.assert_array_equal(one.features, other.features)
    np.testing.assert_array_equal(one.relevance, other.relevance)
    assert not np.array_equal(one.offsets, data.synthetic_letor(n_queries=30, n_features=5, seed=4).offsets)


@pytest.mark.parametrize("max_grade", [1, 2, 4])
def test_shares_of_grades_and_lengths(max_grade: int) -> None:
    made = data.synthetic_letor(n_queries=500, n_features=8, seed=0, list_length=(3, 30), max_grade=max_grade)
    assert (made.lengths.min(), made.lengths.max()) == (3, 30)
    assert made.max_grade == made.relevance.max() == max_grade
    shares = [np.mean(made.relevance >= grade) for grade in range(1, max_grade + 1)]
    np.testing.assert_allclose(shares, 0.4 ** np.arange(1, max_grade + 1), atol=0.002)
    hopeless = np.maximum.reduceat(made.relevance, made.offsets[:-1]) == 0
    assert 0 < hopeless.sum() < 100
    norms = np.linalg.norm(made.features, axis=1)
    assert 0.999 < norms.max() <= 1


def test_without_noise_one_weight_vector_orders_every_query() -> None:
    made = data.synthetic_letor(n_queries=200, n_features=6, seed=5, noise=0.0)
    # The first draws are lengths and features, then come the weights.
    rng = np.random.default_rng(5)
    lengths = rng.integers(5, 40, size=200, endpoint=True)
    rng.normal(size=(lengths.sum(), 6))
    weights = rng.normal(size=6)
    for i in range(made.n_queries):
        features, relevance = made.query(i)
        assert (np.diff(relevance[np.argsort(features @ weights)]) >= 0).all()


def test_noise_makes_it_harder() -> None:
    def fit(noise: float) -> float:
        made = data.synthetic_letor(n_queries=300, n_features=6, seed=7, noise=noise)
        _, residual, *_ = np.linalg.lstsq(made.features, made.relevance - made.relevance.mean(), rcond=None)
        return float(residual[0]) / float(made.relevance.var() * made.n_documents)

    assert fit(0.0) < fit(1.0) < fit(10.0) < 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_queries": 0}, "n_queries must be a whole number of at least 1, got 0"),
        ({"n_features": 0}, "n_features must be a whole number of at least 1, got 0"),
        ({"max_grade": 0}, "max_grade must be a whole number of at least 1, got 0"),
        (
            {"list_length": (0, 3)},
            r"list_length must be two lengths in rising order, at least 1, got \(0, 3\)",
        ),
        ({"list_length": (5, 3)}, "list_length must be two lengths in rising order"),
        ({"noise": -1.0}, "noise must be a finite number at least 0, got -1"),
        ({"noise": np.nan}, "noise must be a finite number at least 0, got nan"),
    ],
)
def test_what_makes_no_sense_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        data.synthetic_letor(**{"n_queries": 2, "n_features": 2, "seed": 0, **changes})


def test_same_seed_same_people() -> None:
    first = data.synthetic_ratings(n_users=40, n_items=6, seed=3)
    again = data.synthetic_ratings(n_users=40, n_items=6, seed=3)
    other = data.synthetic_ratings(n_users=40, n_items=6, seed=4)
    np.testing.assert_array_equal(first.values, again.values)
    assert not np.array_equal(first.values, other.values, equal_nan=True)


def test_shape_scale_and_share_of_blanks() -> None:
    people = data.synthetic_ratings(n_users=2000, n_items=20, seed=0, missing=0.3, scale=(0.5, 5.0))
    assert people.values.shape == (2000, 20)
    assert people.scale == (0.5, 5.0)
    # 40,000 independent blanks: five standard deviations are 0.0115.
    assert abs(np.isnan(people.values).mean() - 0.3) < 0.012
    assert not np.isnan(data.synthetic_ratings(n_users=50, n_items=5, seed=0, missing=0).values).any()


def test_without_noise_tastes_are_all_there_is() -> None:
    # A scale so wide that nothing is cut off: what is left after item and user means has rank n_tastes.
    people = data.synthetic_ratings(n_users=60, n_items=12, seed=5, missing=0, n_tastes=2, noise=0.0)
    inside = np.abs(people.values).max(axis=1) < 10
    values = people.values[inside]
    values = values - values.mean(axis=1, keepdims=True)
    singular = np.linalg.svd(values - values.mean(axis=0), compute_uv=False)
    assert singular[1] > 1.0
    assert singular[2] < 0.2  # rounding to hundredths


def test_some_items_are_better_than_others() -> None:
    liked = data.synthetic_ratings(n_users=2000, n_items=10, seed=0, missing=0).relevance().mean(axis=0)
    assert np.ptp(liked) > 0.2


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_users": 0}, "n_users must be a whole number of at least 1, got 0"),
        ({"n_items": -1}, "n_items must be a whole number of at least 1, got -1"),
        ({"n_tastes": -1}, "n_tastes must be a whole number of at least 0, got -1"),
        ({"missing": 1.0}, "missing must be a finite number at least 0 and below 1, got 1.0"),
        ({"missing": -0.1}, "missing must be a finite number at least 0 and below 1, got -0.1"),
        ({"noise": np.inf}, "noise must be a finite number at least 0, got inf"),
        ({"scale": (1.0, 0.0)}, "scale must be two finite numbers in increasing order"),
    ],
)
def test_a_wrong_argument_is_named(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        data.synthetic_ratings(**({"n_users": 3, "n_items": 2, "seed": 0} | changed))


def test_nobody_needs_tastes() -> None:
    assert data.synthetic_ratings(n_users=3, n_items=2, seed=0, n_tastes=0).n_users == 3
