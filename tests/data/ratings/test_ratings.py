"""From ratings to grades: which items, which users, which cuts, and what of the blanks."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankloop import data

NAN = np.nan


def ratings(rows: Any, **changed: Any) -> data.Ratings:
    values = np.array(rows, dtype=float)
    fields: dict[str, Any] = {
        "values": values,
        "user_ids": np.arange(values.shape[0]),
        "item_ids": np.arange(values.shape[1]),
        "scale": (-10.0, 10.0),
        "name": "small",
    }
    return data.Ratings(**(fields | changed))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"values": np.zeros(2)}, "values must be a non-empty users x items matrix, got shape"),
        ({"values": np.zeros((0, 2))}, "values must be a non-empty users x items matrix, got shape"),
        ({"values": np.array([[0, 11.0]])}, "values must lie on the scale -10 to 10, got 11"),
        ({"values": np.array([[0, -np.inf]])}, "values must lie on the scale -10 to 10, got -inf"),
        ({"user_ids": np.array([1, 2])}, "user_ids must be 1 different integers"),
        ({"item_ids": np.array([3, 3])}, "item_ids must be 2 different integers"),
        ({"item_names": ("one",)}, "item_names must be 2 names, got 1"),
        ({"scale": (1.0, 1.0)}, "scale must be two finite numbers in increasing order"),
        ({"scale": (0.0, np.inf)}, "scale must be two finite numbers in increasing order"),
        ({"scale": (NAN, 1.0)}, "scale must be two finite numbers in increasing order"),
    ],
)
def test_a_wrong_field_is_named(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ratings([[0.0, 1.0]], **changed)


def test_ratings_are_frozen_and_leave_the_callers_array_alone() -> None:
    values = np.zeros((1, 2))
    frozen = ratings(values, values=values)
    with pytest.raises(ValueError, match="read-only"):
        frozen.values[0, 0] = 1.0
    values[0, 0] = 5.0
    assert frozen.values[0, 0] == 0.0


def test_most_rated_prefers_the_smaller_id_and_keeps_the_order() -> None:
    whole = ratings(
        [[1, 2, NAN, 4], [5, NAN, 7, 8], [NAN, 2, 3, 4]],
        item_ids=np.array([40, 30, 20, 10]),
        item_names=("d", "c", "b", "a"),
        user_ids=np.array([7, 8, 9]),
    )
    chosen = whole.most_rated(
        2
    )  # item 10 has three ratings; of the others with two each, 20 has the smallest id
    assert chosen.item_ids.tolist() == [20, 10]
    assert chosen.item_names == ("b", "a")
    assert chosen.user_ids.tolist() == [8, 9]
    assert chosen.values.tolist() == [[7, 8], [3, 4]]
    everyone = whole.most_rated(2, complete=False)
    assert everyone.user_ids.tolist() == [7, 8, 9]
    assert np.isnan(everyone.values).sum() == 1


def test_most_rated_refuses_what_cannot_be() -> None:
    small = ratings([[1, NAN], [NAN, 1]])
    for n_items in (0, 3):
        with pytest.raises(ValueError, match=f"n_items must be a whole number from 1 to 2, got {n_items}"):
            small.most_rated(n_items)
    with pytest.raises(ValueError, match="no user rated all of the 2 most-rated items"):
        small.most_rated(2)


def test_binary_relevance_is_strictly_above_the_cut() -> None:
    row = ratings([[-10, -0.01, 0, 0.01, 3, 10]])
    assert row.relevance().tolist() == [[0, 0, 0, 1, 1, 1]]
    assert row.relevance().dtype == np.int64
    assert row.relevance(threshold=3.0).tolist() == [[0, 0, 0, 0, 0, 1]]
    assert row.relevance(threshold=-10.0).tolist() == [[0, 1, 1, 1, 1, 1]]


def test_grades_cut_the_scale_into_equal_parts() -> None:
    row = ratings([[-10, -6, -5.9, -2, 1.9, 2.1, 6, 6.1, 10]])
    assert row.relevance(grades=4).tolist() == [[0, 0, 1, 1, 2, 3, 3, 4, 4]]
    stars = ratings([[0.5, 2, 2.5, 3.5, 4, 5]], scale=(0.5, 5.0))
    assert stars.relevance(grades=2).tolist() == [[0, 0, 1, 1, 2, 2]]


def test_missing_ratings_are_dropped_zero_or_filled() -> None:
    gaps = ratings([[5, NAN], [-5, 8], [9, -2]])
    assert gaps.relevance().tolist() == [[0, 1], [1, 0]]
    assert gaps.relevance(missing="zero").tolist() == [[1, 0], [0, 1], [1, 0]]
    assert gaps.relevance(missing="item-mean").tolist() == [
        [1, 1],
        [0, 1],
        [1, 0],
    ]  # (8 - 2) / 2 = 3 is liked


def test_missing_ratings_that_cannot_be_handled() -> None:
    gaps = ratings([[5, NAN], [-5, NAN]], item_ids=np.array([3, 4]))
    with pytest.raises(ValueError, match="missing='drop' leaves no user"):
        gaps.relevance()
    with pytest.raises(ValueError, match="no mean for item 4: no user rated it"):
        gaps.relevance(missing="item-mean")
    with pytest.raises(ValueError, match="missing must be one of drop, zero, item-mean, got 'ignore'"):
        gaps.relevance(missing="ignore")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"grades": 0}, "grades must be a whole number of at least 1, got 0"),
        ({"grades": 2, "threshold": 1.0}, "threshold cuts into two grades, got threshold=1.0 with grades=2"),
        ({"threshold": 10.0}, "threshold must lie on the scale, -10 <= threshold < 10, got 10.0"),
        ({"threshold": NAN}, "threshold must lie on the scale"),
    ],
)
def test_a_wrong_cut_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ratings([[1.0]]).relevance(**arguments)


@given(seed=st.integers(0, 2**32), grades=st.integers(1, 6), missing=st.sampled_from(["zero", "item-mean"]))
def test_grades_rise_with_ratings_and_shuffling_only_reorders_users(
    seed: int, grades: int, missing: Any
) -> None:
    people = data.synthetic_ratings(n_users=30, n_items=4, seed=seed)
    relevance = people.relevance(grades=grades, missing=missing)
    assert relevance.shape == people.values.shape
    assert relevance.min() >= 0
    assert relevance.max() <= grades
    rated = ~np.isnan(people.values)
    in_order = np.argsort(people.values[rated])
    assert (np.diff(relevance[rated][in_order]) >= 0).all()
    shuffled = people.relevance(grades=grades, missing=missing, shuffle_seed=seed)
    assert sorted(map(tuple, shuffled)) == sorted(map(tuple, relevance))
    again = people.relevance(grades=grades, missing=missing, shuffle_seed=seed)
    np.testing.assert_array_equal(shuffled, again)
    assert not people.values.flags.writeable


def test_shuffling_moves_users() -> None:
    people = ratings(np.eye(50))
    assert not np.array_equal(people.relevance(shuffle_seed=0), people.relevance())
