"""Made-up people have what real ones have: better items, blanks, and tastes that are shared."""

from typing import Any

import numpy as np
import pytest

from rankloop import data


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
