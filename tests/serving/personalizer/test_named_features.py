"""Features by name: what is read from JSON, and what rows are made of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rankloop.serving.errors import RequestError, TooLarge
from rankloop.serving.personalizer.named_features import read_features, to_rows


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, []),
        ([], []),
        ([{}], []),
        ([{"a": None}], []),
        ([{"a": True, "b": False}], [("a=true", 1.0), ("b=false", 1.0)]),
        ([{"a": {"b": {"c": "x"}}}], [("a.b.c=x", 1.0)]),
        ([{"a": [1.5, -2]}], [("a[0]", 1.5), ("a[1]", -2.0)]),
        ([{"a": [{"b": 1}, {"c": "y"}]}], [("a.b", 1.0), ("a.c=y", 1.0)]),
        ([{"_a": 1, "b": {"_c": 2}}], []),
        (["new"], [("=new", 1.0)]),
    ],
)
def test_names_and_values(given: Any, expected: list[tuple[str, float]]) -> None:
    assert read_features(given, field="features") == expected


@pytest.mark.parametrize("number", [1e31, -1e31, 10**400])
def test_a_number_that_is_too_large_is_named(number: float) -> None:
    with pytest.raises(RequestError, match=r"price must be at most 1e\+30") as caught:
        read_features([{"price": number}], field="actions")
    assert caught.value.field == "actions"


def test_rows_have_length_one_also_of_large_numbers() -> None:
    rows = to_rows([[("a", 1e30), ("b", 1e30)], [("a", 1e-30)], []], [("c", 1e30)], n_features=256)
    np.testing.assert_allclose((rows.astype(float) ** 2).sum(axis=1), [1.0, 1.0, 0.0], rtol=1e-6)


def test_a_feature_counts_alone_and_with_each_of_the_context() -> None:
    rows = to_rows([[("a", 3.0)]], [("c", 2.0), ("d", 0.5)], n_features=4_096)
    worth = np.sort(np.abs(rows[rows != 0].astype(float)))
    np.testing.assert_allclose(worth / worth[1], [0.5, 1.0, 2.0], rtol=1e-6)


def test_the_context_alone_tells_actions_apart_only_together_with_their_features() -> None:
    actions = [[("a", 1.0)], [("b", 1.0)]]
    rows = to_rows(actions, [("c", 1.0)], n_features=4_096)
    assert not (rows[0] * rows[1]).any()  # nothing in common, so nothing of the context alone
    assert (rows == to_rows(actions, [("c", 1.0)], n_features=4_096)).all()


def test_order_within_a_pair_counts() -> None:
    one = to_rows([[("a", 1.0)]], [("b", 1.0)], n_features=4_096)
    other = to_rows([[("b", 1.0)]], [("a", 1.0)], n_features=4_096)
    assert not (one * other).any()


def test_columns_are_used_evenly_and_signs_cancel() -> None:
    """A hash that used few columns, or one sign, would fail: 4,000 names over 64 columns, within five deviations."""
    rows = to_rows([[(f"name={i}", 1.0)] for i in range(4_000)], [], n_features=64)
    used = np.abs(rows).sum(axis=0)
    assert np.abs(used - 62.5).max() < 5 * 62.5**0.5
    assert abs(rows.sum()) < 5 * 4_000**0.5


def test_too_many_products_are_refused() -> None:
    with pytest.raises(TooLarge, match="at most 1,000,000, got 2,002,000"):
        to_rows([[("a", 1.0)] * 1_000] * 2, [("c", 1.0)] * 1_000, n_features=8)
