"""Pages one by one: counted, cut down, and refused where they cannot be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rankloop.feedback import ClickLog, Sessions


@pytest.fixture
def pages() -> Sessions:
    return Sessions(
        items=np.array([[0, 2, 1], [2, 0, -1], [1, -1, -1], [2, 0, 1]]),
        clicks=np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0], [0, 0, 1]]),
        queries=np.array([0, 1, 0, 1]),
        order=np.array([[0, 2, 1], [1, 0, 0], [1, 0, 0], [0, 0, 1]]),
        query_ids=("a", "b"),
        item_ids=("x", "y", "z"),
        bad_rows={"nonsense": 1},
        name="four",
    )


def test_what_it_says(pages: Sessions) -> None:
    assert repr(pages) == (
        "Sessions('four': 4 pages of up to 3, 2 queries, 3 items, 5 clicks; 1 bad row left out)"
    )
    assert (pages.n_rows, pages.n_queries, pages.n_items, pages.n_positions) == (4, 2, 3, 3)
    names, which = pages.pairs()
    assert names == (("a", "x"), ("a", "y"), ("a", "z"), ("b", "x"), ("b", "y"), ("b", "z"))
    assert which.tolist() == [[0, 2, 1], [5, 3, -1], [1, -1, -1], [5, 3, 4]]
    with pytest.raises(ValueError, match="read-only"):
        pages.items[0, 0] = 1


def test_counted_it_is_the_log_of_its_cells(pages: Sessions) -> None:
    log = pages.count()
    cells = zip(log.queries, log.items, log.positions, log.shown, log.clicked, strict=True)
    assert sorted(tuple(int(x) for x in cell) for cell in cells) == [
        (0, 0, 0, 1, 0),
        (0, 1, 0, 1, 1),
        (0, 1, 2, 1, 1),
        (0, 2, 1, 1, 1),
        (1, 0, 1, 2, 0),
        (1, 1, 2, 1, 1),
        (1, 2, 0, 2, 1),
    ]
    assert (log.rows.tolist(), log.bad_rows, log.name) == ([2, 2], {"nonsense": 1}, "four")
    rng = np.random.default_rng(3)
    items, clicks = (
        rng.permuted(np.tile(np.arange(5), (200, 1)), axis=1)[:, :3],
        rng.integers(2, size=(200, 3)),
    )
    for ours, theirs in zip(
        Sessions(items=items, clicks=clicks).count().matrices(),
        ClickLog.count(items=items, clicks=clicks).matrices(),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_one_query_fewer_positions_and_the_past(pages: Sessions) -> None:
    b = pages.select(query="b", positions=2)
    assert (b.query_ids, b.items.tolist(), b.queries.tolist()) == (("b",), [[2, 0], [2, 0]], [0, 0])
    assert b.order is not None
    assert b.order.tolist() == [[1, 0], [0, 0]]
    past, later = pages.split(0.75)
    assert (past.n_rows, later.items.tolist()) == (3, [[2, 0, 1]])
    assert later.query_ids == pages.query_ids
    with pytest.raises(ValueError, match="query must be one of the log's 2, got 'c'"):
        pages.select(query="c")
    with pytest.raises(ValueError, match=r"first must leave pages on both sides, got 0.01 of 4"):
        pages.split(0.01)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"items": [1, 2]}, "items must be a matrix"),
        ({"items": [[0.5, 1]]}, "items must be whole numbers"),
        ({"items": [[-1, 1]]}, "items must be -1 only behind the last item"),
        ({"items": [[-1, -1]]}, "a page must show one"),
        ({"clicks": [[2, 0]]}, "clicks must be 0 or 1"),
        ({"items": [[1, -1]], "clicks": [[0, 1]]}, "clicks must be 0 or 1"),
        ({"clicks": [[1]]}, "clicks must be 0 or 1"),
        ({"queries": [0, 0]}, "queries must be 1 query numbers"),
        ({"queries": [1], "query_ids": ("a",)}, "query_ids must name number 1, got 1 names"),
        ({"item_ids": ("a",)}, "item_ids must name number 1, got 1 names"),
        ({"order": [[0, 1]]}, "order must be above 0 for each click"),
    ],
)
def test_what_is_no_page_is_refused(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Sessions(**({"items": [[0, 1]], "clicks": [[1, 0]]} | arguments))
