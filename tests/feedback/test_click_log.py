"""Counts of clicks: built by hand, cut down, and refused where they cannot be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rankloop.feedback import ClickLog


@pytest.fixture
def log() -> ClickLog:
    return ClickLog(
        queries=[0, 0, 0, 1, 1],  # type: ignore[arg-type]
        items=[0, 0, 2, 1, 2],  # type: ignore[arg-type]
        positions=[0, 1, 0, 0, 2],  # type: ignore[arg-type]
        shown=[5, 6, 20, 7, 8],  # type: ignore[arg-type]
        clicked=[1, 2, 3, 4, 0],  # type: ignore[arg-type]
        query_ids=("a", "b"),
        item_ids=("x", "y", "z"),
        rows=[31, 15],  # type: ignore[arg-type]
        n_positions=3,
        bad_rows={"nonsense": 2},
        name="two",
    )


def test_what_it_says(log: ClickLog) -> None:
    assert repr(log) == (
        "ClickLog('two': 2 queries, 3 items, 3 positions, 46 rows, 10 clicks; 2 bad rows left out)"
    )
    assert (log.n_cells, log.n_rows, log.n_bad_rows) == (5, 46, 2)
    names, which = log.pairs()
    assert names == (("a", "x"), ("a", "z"), ("b", "y"), ("b", "z"))
    assert which.tolist() == [0, 0, 1, 2, 3]
    shown, clicked = log.matrices()
    assert shown.tolist() == [[5, 6, 0], [7, 0, 0], [20, 0, 8]]
    assert clicked.tolist() == [[1, 2, 0], [4, 0, 0], [3, 0, 0]]


def test_one_query_and_the_items_shown_most(log: ClickLog) -> None:
    a = log.select(query="a")
    assert (a.query_ids, a.item_ids, a.rows.tolist()) == (("a",), ("x", "z"), [31])
    assert a.matrices()[0].tolist() == [[5, 6, 0], [20, 0, 0]]
    assert a.bad_rows == log.bad_rows
    top = log.select(top=2)  # (a, z) was shown 20 times, (a, x) 11 times
    assert top.pairs()[0] == (("a", "x"), ("a", "z"))
    assert log.select(query="b", top=1).item_ids == ("z",)
    assert log.select(query="b", top=9).item_ids == ("y", "z")
    first = log.select(positions=1)
    assert (first.n_positions, first.item_ids, first.n_cells) == (1, ("x", "y", "z"), 3)
    assert log.select(positions=2, top=1).pairs()[0] == (("a", "z"),)
    assert log.select(positions=9).n_positions == 3
    with pytest.raises(ValueError, match="positions must be a whole number of at least 1, got 0"):
        log.select(positions=0)
    with pytest.raises(ValueError, match="query must be one of a, b, got 'c'"):
        log.select(query="c")
    with pytest.raises(ValueError, match="top must be a whole number of at least 1, got 0"):
        log.select(top=0)
    with pytest.raises(ValueError, match="query must be left out, the log names none"):
        ClickLog.count(items=[[0]], clicks=[[1]]).select(query="a")


def test_counting_lists() -> None:
    rng = np.random.default_rng(1)
    items = np.array([rng.permutation(5)[:3] for _ in range(200)])
    clicks = rng.integers(0, 2, items.shape)
    shown, clicked = ClickLog.count(items=items, clicks=clicks).matrices()
    for i in range(5):
        for j in range(3):
            assert shown[i, j] == (items[:, j] == i).sum()
            assert clicked[i, j] == clicks[:, j][items[:, j] == i].sum()
    again = ClickLog.from_matrices(shown=shown, clicked=clicked)
    assert again.n_rows == 200
    np.testing.assert_array_equal(again.matrices(), (shown, clicked))


def test_nothing_can_be_written_to(log: ClickLog) -> None:
    with pytest.raises(ValueError, match="read-only"):
        log.shown[0] = 9
    with pytest.raises(TypeError):
        log.bad_rows["more"] = 1  # type: ignore[index]


@pytest.mark.parametrize(
    ("shown", "clicked", "told"),
    [
        ([[1, 2]], [[2, 0]], "clicked must not exceed shown"),
        ([[1, 2]], [[1]], "clicked must have the shape of shown"),
        ([[1.5]], [[1]], "shown must be counts"),
        ([[1]], [[-1]], "clicked must be counts"),
        ([[np.inf]], [[1]], "shown must be counts"),
        ([1], [1], "shown must be a matrix"),
        ("no", [[1]], "shown must be numbers"),
    ],
)
def test_matrices_that_are_none_are_refused(shown: Any, clicked: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        ClickLog.from_matrices(shown=shown, clicked=clicked)


@pytest.mark.parametrize(
    ("items", "clicks", "told"),
    [
        ([0, 1], [0, 1], "items must be a matrix"),
        ([[0, -1]], [[0, 1]], "items must be a matrix of item numbers"),
        ([[0, 1]], [[0, 2]], "clicks must be 0 or 1"),
        ([[0, 1]], [[0]], "clicks must be 0 or 1"),
    ],
)
def test_lists_that_are_none_are_refused(items: Any, clicks: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        ClickLog.count(items=items, clicks=clicks)
