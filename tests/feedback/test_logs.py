"""Counts, lists and pages: built by hand, counted, cut down, and refused where they cannot be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rankloop.feedback import Candidates, ClickLog, LoggedLists, Sessions


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


def test_what_a_click_log_says(log: ClickLog) -> None:
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
    ("shown", "clicked", "message"),
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
def test_matrices_that_are_none_are_refused(shown: Any, clicked: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ClickLog.from_matrices(shown=shown, clicked=clicked)


@pytest.mark.parametrize(
    ("items", "clicks", "message"),
    [
        ([0, 1], [0, 1], "items must be a matrix"),
        ([[0, -1]], [[0, 1]], "items must be a matrix of item numbers"),
        ([[0, 1]], [[0, 2]], "clicks must be 0 or 1"),
        ([[0, 1]], [[0]], "clicks must be 0 or 1"),
    ],
)
def test_lists_that_are_none_are_refused(items: Any, clicks: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ClickLog.count(items=items, clicks=clicks)


FEATURES = [[[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]], [[0.2, 0.3]]]


def test_lists_of_different_lengths_keep_their_candidates() -> None:
    log = LoggedLists(items=[[2, 0], [0, -1]], clicks=[[0, 1], [1, 0]], features=FEATURES)
    assert log.features is not None
    assert (log.n_rows, log.n_items, log.n_positions) == (2, 3, 2)
    assert log.features.sizes.tolist() == [3, 1]
    np.testing.assert_array_equal(log.features[1], FEATURES[1])
    assert len(log.features) == 2
    assert "2 lists of 2, up to 3 candidates with 2 features, 2 clicks" in repr(log)
    assert Candidates.read(log.features) is log.features
    with pytest.raises(ValueError, match="read-only"):
        log.features.rows[0] = 0.0
    with pytest.raises(ValueError, match="this log has features"):
        log.shares()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"features": FEATURES[:1]}, "features must be given for 2 lists, got 1"),
        ({"features": []}, "features must be given for at least one list"),
        ({"features": [[[1.0, 2.0]], [[1.0]]]}, "features of list 1 must be items x features"),
        ({"features": [[[1.0, np.nan]], [[1.0, 2.0]]]}, "features of list 0 must be finite"),
        (
            {"items": [[3, 0], [0, -1]]},
            r"items must be candidates of their list, got \[3. 0.\] for list 0 of 3",
        ),
        ({"items": [[0, 0], [0, -1]]}, r"items must not show a candidate twice, got \[0. 0.\] for list 0"),
        ({"items": [[-1, 0], [0, -1]]}, "items must be -1 only behind the last item"),
        ({"items": [[1, 0], [0, -2]]}, "items must be -1 only behind the last item"),
        ({"clicks": [[0, 0], [0, 1]]}, "clicks must be 0 where nothing was shown"),
        ({"features": None}, "items must be a matrix of item numbers"),
    ],
)
def test_mistakes_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LoggedLists(
            **({"items": [[2, 0], [0, -1]], "clicks": [[0, 1], [1, 0]], "features": FEATURES} | arguments)
        )


def test_candidates_by_hand_are_checked() -> None:
    for starts in ([0], [1, 2], [0, 0, 2], [0, 1]):
        with pytest.raises(ValueError, match="starts must"):
            Candidates(np.ones((2, 1)), np.array(starts))


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


def test_what_sessions_say(pages: Sessions) -> None:
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
    items = rng.permuted(np.tile(np.arange(5), (200, 1)), axis=1)[:, :3]
    clicks = rng.integers(2, size=(200, 3))
    counted = Sessions(items=items, clicks=clicks).count()
    np.testing.assert_array_equal(counted.matrices(), ClickLog.count(items=items, clicks=clicks).matrices())


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
    ("arguments", "message"),
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
def test_what_is_no_page_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Sessions(**({"items": [[0, 1]], "clicks": [[1, 0]]} | arguments))
