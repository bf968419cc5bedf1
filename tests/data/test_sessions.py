"""Pages and lists of any known shape, one by one; bad ones are told."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankloop import data
from rankloop.feedback import LoggedLists

YANDEX = """\
7 0 Q q1 1 a b c
7 5 C b
7 9 C a
7 12 C z
7 20 Q q2 1 c d
7 21 C c
8 0 Q q1 1 b a c
8 1 Q q3 1 e e
"""

UBI = [
    {
        "query_id": "1",
        "user_query": "shoes",
        "query_response_hit_ids": ["a", "b", "c"],
        "timestamp": "2024-06-01T00:00:00Z",
    },
    {
        "query_id": "2",
        "user_query": "shoes",
        "query_response_hit_ids": ["b", "a"],
        "timestamp": "2024-06-01T00:00:00Z",
    },
    {
        "query_id": "3",
        "user_query": "hats",
        "query_response_hit_ids": [],
        "timestamp": "2024-06-01T00:00:00Z",
    },
    {
        "action_name": "click",
        "query_id": "1",
        "timestamp": "2024-06-01T00:00:03Z",
        "event_attributes": {"object": {"object_id": "a"}, "position": {"ordinal": 1}},
    },
    {
        "action_name": "click",
        "query_id": "1",
        "timestamp": "2024-06-01T00:00:02Z",
        "event_attributes": {"object": {"object_id": "c"}},
    },
    {
        "action_name": "add_to_cart",
        "query_id": "1",
        "timestamp": "2024-06-01T00:00:04Z",
        "event_attributes": {},
    },
    {"action_name": "click", "query_id": "2", "timestamp": "2024-06-01T00:00:04Z", "event_attributes": {}},
    {
        "action_name": "click",
        "query_id": "9",
        "timestamp": "2024-06-01T00:00:04Z",
        "event_attributes": {"object": {"object_id": "a"}},
    },
    {
        "action_name": "click",
        "query_id": "2",
        "timestamp": "2024-06-01T00:00:04Z",
        "event_attributes": {"object": {"object_id": "x"}},
    },
]


def test_yandex_lines(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text(YANDEX.replace(" ", "\t"))
    pages = data.read_sessions(path, format="yandex")
    assert pages.query_ids == ("q1", "q2")
    assert pages.item_ids == ("a", "b", "c", "d")
    assert pages.items.tolist() == [[0, 1, 2], [2, 3, -1], [1, 0, 2]]
    assert pages.order is not None
    assert pages.order.tolist() == [[2, 1, 0], [1, 0, 0], [0, 0, 0]]
    assert pages.queries.tolist() == [0, 1, 0]
    assert pages.bad_rows == {"a click on an id that was not shown": 1, "an id shown twice": 1}
    assert data.read_clicks(path, format="yandex").clicked.sum() == 3
    path.write_text("7\t0\tX\tq\n")
    with pytest.raises(ValueError, match="line 1: not a line of type Q or C"):
        data.read_sessions(path, format="yandex")


def test_ubi_queries_and_events(tmp_path: Path) -> None:
    for name, part in (("ubi_events", UBI[3:]), ("ubi_queries", UBI[:3])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in part))
    pages = data.read_sessions(tmp_path, format="ubi")
    assert pages.query_ids == ("shoes",)
    assert pages.items.tolist() == [[0, 1, 2], [1, 0, -1]]
    assert pages.order is not None
    assert pages.order.tolist() == [[2, 0, 1], [0, 0, 0]]
    assert pages.bad_rows == {
        "a click without an object_id": 1,
        "a click of a query that is not in the log": 1,
        "a click on an id that was not shown": 1,
        "nothing shown": 1,
    }
    (tmp_path / "ubi_events.jsonl").write_text("{}\n")
    alone = data.read_sessions(tmp_path, format="ubi")
    assert alone.bad_rows["neither a query (user_query) nor an event (action_name)"] == 1


def test_baidu_pages(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "query_md5": ["q", "r"],
            "url_md5": [["a", "b"], ["b", "c"]],
            "position": [[2, 1], [1, 2]],
            "click": [[1, 0], [0, 0]],
        }
    )
    frame.write_parquet(tmp_path / "part.parquet")
    pages = data.read_sessions(tmp_path / "part.parquet", format="baidu-ultr")
    assert [[pages.item_ids[i] for i in page] for page in pages.items] == [["b", "a"], ["b", "c"]]
    assert pages.clicks.tolist() == [[0, 1], [0, 0]]
    assert pages.order is None
    frame.drop("click").write_parquet(tmp_path / "part.parquet")
    with pytest.raises(ValueError, match="no column click, only query_md5"):
        data.read_sessions(tmp_path / "part.parquet", format="baidu-ultr")


def test_tables_of_impressions_with_a_page(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(
        "serp,query,item,position,click\n1,q,a,1,0\n2,q,b,1,1\n1,q,b,2,1\n3,q,a,2,0\n3,q,b,2,0\n2,q,c,x,1\n"
    )
    pages = data.read_sessions(path, columns={"page": "serp"})
    assert pages.items.tolist() == [[0, 1], [1, -1]]
    assert pages.clicks.tolist() == [[0, 1], [1, 0]]
    assert pages.bad_rows == {
        "a position that is not a whole number from 1 on": 1,
        "a page with a position twice or left out": 1,
    }
    with pytest.raises(ValueError, match="no column for page, which pages need"):
        data.read_sessions(path)


def test_published_tables_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "training.txt"
    path.write_text("1\t3\tu\tad7\tv\t2\t1\tq5\t0\t0\t0\t9\n0\t4\tu\tad8\tv\t2\t2\tq5\t0\t0\t0\t9\n")
    log = data.read_clicks(path, format="kdd-cup-2012")
    assert (log.query_ids, log.item_ids) == (("q5",), ("ad7", "ad8"))
    assert [m.tolist() for m in log.matrices()] == [[[3, 0], [0, 4]], [[1, 0], [0, 0]]]
    path.write_text(path.read_text() + "too few\n")
    assert data.read_clicks(path, format="kdd-cup-2012").bad_rows == {"no query": 1}
    path.write_text(path.read_text() + "1\t2\tu\tad7\tv\t2\t1\tq5\t0\t0\t0\t9\tmany\n")
    assert data.read_clicks(path, format="kdd-cup-2012").bad_rows == {"too many or too few cells": 2}
    path = tmp_path / "men.csv"
    path.write_text(",timestamp,item_id,position,click,propensity_score\n0,t,3,1,1,0.1\n1,t,4,3,0,0.1\n")
    assert data.read_clicks(path, format="open-bandit").shown.sum() == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"format": "xml"}, "format must be one of"),
        ({"first_position": -1}, "first_position must be"),
        ({"paths": []}, "paths must name at least one file"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], told: str, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"q": 1, "docs": [1], "clicks": [2]}\n')
    with pytest.raises(ValueError, match=told):
        data.read_sessions(**({"paths": path} | arguments))
    with pytest.raises(ValueError, match=r"log: no page to read; bad rows: 1 with a click on an id"):
        data.read_sessions(path)


def test_real_pages_are_those_that_are_counted() -> None:
    try:
        path = data.find("clicks/yandex_wscd/testSample.jsonl.gz")
    except data.DataMissing as missing:
        pytest.skip(str(missing))
    pages, log = data.read_sessions(path), data.read_clicks(path)
    assert (pages.n_rows, sum(pages.bad_rows.values())) == (21_280, 133)
    counted = pages.count()
    assert counted.clicked.sum() == log.clicked.sum()
    assert counted.n_cells == log.n_cells
    assert pages.order is not None
    np.testing.assert_array_equal(pages.order > 0, pages.clicks == 1)


ROWS = [
    {
        "page": "p",
        "query": "cat",
        "item": "b",
        "position": 2,
        "click": 1,
        "relevance": 3.0,
        "propensity": 0.5,
    },
    {
        "page": "p",
        "query": "cat",
        "item": "a",
        "position": 1,
        "click": 0,
        "relevance": 0.0,
        "propensity": 0.25,
    },
    {
        "page": "q",
        "query": "dog",
        "item": "c",
        "position": 1,
        "click": 0,
        "relevance": 1.0,
        "propensity": None,
    },
]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def test_a_table_gives_lists_by_position_with_propensities(tmp_path: Path) -> None:
    path = write(tmp_path / "log.parquet", ROWS)
    assert list(data.read_lists(path)) == [
        {"items": ["a", "b"], "clicks": [0, 1], "query": "cat", "propensities": [0.25, 0.5]},
        {"items": ["c"], "clicks": [0], "query": "dog"},
    ]
    assert list(data.read_lists(path, query="dog", feedback="relevance")) == [
        {"items": ["c"], "relevance": [1.0], "query": "dog"}
    ]


def test_a_column_of_features_comes_with_the_items(tmp_path: Path) -> None:
    rows = [row | {"features": [1.0, float(row["position"])]} for row in ROWS[:2]]
    (found,) = data.read_lists(write(tmp_path / "log.parquet", rows))
    assert found["features"] == [[1.0, 1.0], [1.0, 2.0]]


def test_bad_rows_and_pages_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = [
        *ROWS[:2],
        ROWS[2] | {"propensity": 2.0},
        ROWS[0] | {"page": "gap"},
        ROWS[0] | {"page": "twice", "position": 1},
        ROWS[0] | {"page": "twice"},
    ]
    bad: Counter[str] = Counter()
    found = list(data.read_lists(write(tmp_path / "log.parquet", rows), bad_rows=bad))
    assert [one["items"] for one in found] == [["a", "b"]]
    assert bad == {
        "a propensity that is not above 0 and up to 1": 1,
        "a page with a position twice or left out": 1,
        "an id shown twice": 1,
    }


def test_pages_of_json_lines_and_of_ubi(tmp_path: Path) -> None:
    lines = [
        {"query": "cat", "shown": ["a", "b"], "clicked": ["b"], "propensity": [0.5, 0.25]},
        {"query": "cat", "shown": ["a"], "clicked": [], "candidates": ["b", "a"], "features": [[1.0], [2.0]]},
        {"query": "dog", "shown": ["a"], "clicked": [], "propensity": 0.5},
    ]
    path = tmp_path / "pages.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert list(data.read_lists(path)) == [
        {"items": ["a", "b"], "clicks": [0, 1], "query": "cat", "propensities": [0.5, 0.25]},
        {"items": ["a"], "clicks": [0], "query": "cat", "features": [[2.0]]},
        {"items": ["a"], "clicks": [0], "query": "dog"},
    ]
    events = [
        {"query_id": "1", "user_query": "cat", "query_response_hit_ids": ["a", "b"]},
        {"query_id": "2", "user_query": "dog", "query_response_hit_ids": ["c"]},
        {
            "query_id": "1",
            "action_name": "click",
            "timestamp": 1717200000000,
            "event_attributes": {"object": {"object_id": "b"}},
        },
    ]
    ubi = tmp_path / "ubi.jsonl"
    ubi.write_text("".join(json.dumps(line) + "\n" for line in events))
    assert list(data.read_lists(ubi, format="ubi", query="cat")) == [
        {"items": ["a", "b"], "clicks": [0, 1], "query": "cat"}
    ]
    with pytest.raises(ValueError, match="feedback must be 'clicks' for logs of ubi"):
        next(data.read_lists(ubi, format="ubi", feedback="relevance"))


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "log.parquet", [{"item": "a", "position": 1, "click": 0}])
    with pytest.raises(ValueError, match="no column for page"):
        next(data.read_lists(path))
    with pytest.raises(ValueError, match="feedback must be"):
        data.read_lists(path, feedback="stars")


def test_a_table_of_impressions(tmp_path: Path) -> None:
    path = tmp_path / "shown.csv"
    path.write_text(
        ",item_id,position,click,propensity_score\n"
        "0,10,1,0,0.25\n1,9,3,1,0.5\n2,9,2,1,1.5\n3,9,2,1,none\n4,9,0,1,0.5\n5,9,2,maybe,0.5\n"
    )
    log = data.read_logged_lists(path)
    assert log.item_ids == ("9", "10")
    assert log.items.tolist() == [[1], [0]]
    assert log.positions.tolist() == [[0], [2]]
    assert log.clicks.tolist() == [[0], [1]]
    assert log.propensities is not None
    assert log.propensities.tolist() == [[0.25], [0.5]]
    assert log.bad_rows == {
        "a propensity that is not above 0 and up to 1": 2,
        "a position that is not a whole number from 1 on": 1,
        "a click that is not 0 or 1": 1,
    }
    pl.read_csv(path).write_parquet(tmp_path / "shown.parquet")
    again = data.read_logged_lists(tmp_path / "shown.parquet", item_ids=["10", "x", "9"], name="again")
    assert again.items.tolist() == [[0], [2]]
    assert again.n_items == 3
    assert repr(again) == "LoggedLists('again': 2 lists of 1, 3 items, 1 click; 4 bad rows left out)"


def test_lists_of_one_query(tmp_path: Path) -> None:
    table, pages = tmp_path / "shown.csv", tmp_path / "pages.jsonl"
    table.write_text(
        "q,item,rank,click,propensity\ncat,a,1,1,0.5\ndog,b,1,0,0.5\ncat,b,2,0,0.5\n,a,1,0,0.5\n"
    )
    rows = [
        {"q": query, "shown": ["a"], "clicked": [], "propensity": 0.5, "features": [[1.0]]}
        for query in ("cat", "dog", "cat")
    ]
    pages.write_text("".join(json.dumps(row) + "\n" for row in rows))
    plain = tmp_path / "plain.jsonl"
    plain.write_text(pages.read_text().replace(', "features": [[1.0]]', ""))
    assert data.read_logged_lists(table).bad_rows == {"no query": 1}
    for path in (table, pages, plain):
        together = data.read_logged_lists(path)
        assert (together.n_queries, together.n_rows) == (2, 3)
        assert "3 lists of 1, 2 queries, " in repr(together)
        alone = data.read_logged_lists(path, query="cat")
        assert (alone.n_queries, alone.n_rows) == (1, 2)
        with pytest.raises(ValueError, match=r"query must be one of cat, dog \(.*, got 'cow'"):
            data.read_logged_lists(path, query="cow")
    table.write_text("item,rank,click,propensity\na,1,1,0.5\n")
    with pytest.raises(ValueError, match=r"query must be left out: the log names no queries \(.*, got 'cow'"):
        data.read_logged_lists(table, query="cow")


def test_pages_with_a_chance_for_the_list_or_for_each_position(tmp_path: Path) -> None:
    path = tmp_path / "pages.jsonl"
    page = {"shown": ["b", "a"], "clicked": ["a"]}
    rows = [
        page | {"propensity": 0.5},
        page | {"propensity": 0},
        page | {"propensity": "much"},
        page | {"propensity": [0.5, 0.5]},  # not as the first
        {"shown": ["a"], "clicked": [], "propensity": 0.5},
        page | {"clicked": ["z"], "propensity": 0.5},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    log = data.read_logged_lists(path)
    assert log.items.tolist() == [[1, 0]]
    assert log.clicks.tolist() == [[0, 1]]
    assert log.list_propensities is not None
    assert log.list_propensities.tolist() == [0.5]
    assert log.propensities is None
    assert log.bad_rows == {
        "a propensity that is not above 0 and up to 1": 3,
        "a list of another length than the first": 1,
        "a click on an id that was not shown": 1,
    }
    path.write_text(json.dumps(page | {"propensity": [0.5, 0.25]}))
    each = data.read_logged_lists(path).propensities
    assert each is not None
    assert each.tolist() == [[0.5, 0.25]]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"shown": [1], "clicked": []}\n', "no field propensity"),
        ("item,position,click\nx,1,0\n", "no column for propensity"),
        ("item,position,click,propensity\nx,1,0,7\n", "no row to read; bad rows: 1 with a propensity"),
        ('{"shown": [1], "clicked": [], "propensity": 2}\n', "no row to read"),
        ("1\t2\t[3]\t[1]\t[0]\n", "format must be one with propensities"),
    ],
)
def test_what_has_no_propensities_is_refused(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(text)
    with pytest.raises(ValueError, match=told):
        data.read_logged_lists(tmp_path / "log")


def test_an_unnamed_item_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("item,position,click,propensity\nx,1,0,0.5\n")
    with pytest.raises(ValueError, match=r"item_ids must name every item of .*'x' is missing"):
        data.read_logged_lists(tmp_path / "log.csv", item_ids=["y"])


def test_lists_by_hand_are_checked() -> None:
    good = {"items": [[0, 1], [1, 0]], "clicks": [[0, 1], [0, 0]]}
    log = LoggedLists(**good)  # type: ignore[arg-type]
    assert (log.n_rows, log.n_items, log.n_positions) == (2, 2, 2)
    assert log.positions.tolist() == [[0, 1], [0, 1]]
    for wrong, told in (
        ({"items": [0, 1]}, "items must be a matrix"),
        ({"items": [[0, -1], [0, 1]]}, "items must be a matrix of item numbers"),
        ({"clicks": [[0, 2], [0, 0]]}, "clicks must be 0 or 1"),
        ({"clicks": [[0, 1]]}, "clicks must be 0 or 1"),
        ({"propensities": [0.5, 0.5]}, "propensities must be"),
        ({"propensities": [[0.5, 0.0], [1.0, 1.0]]}, "propensities must be"),
        ({"list_propensities": [0.5, np.nan]}, "list_propensities must be"),
        ({"positions": [[0, 1]]}, "positions must be"),
        ({"positions": [[0, -1], [0, 1]]}, "positions must be"),
        ({"item_ids": ("a",)}, "item_ids must name number 1"),
    ):
        with pytest.raises(ValueError, match=told):
            LoggedLists(**(good | wrong))  # type: ignore[arg-type]


def test_pages_may_bring_features(tmp_path: Path) -> None:
    good = {"candidates": [7, 8, 9], "features": [[1, 0], [0, 1], [2, 2]], "shown": [9, 7], "clicked": [7]}
    rows = [
        good | {"propensity": [0.5, 0.25]},
        {"features": [[3, 4]], "shown": ["a"], "clicked": [], "propensity": [1]},
        good | {"propensity": 0.5},
        good | {"propensity": [0.5, 0]},
        good | {"propensity": [0.5]},
        good | {"propensity": [0.5, 0.5], "features": [[1, 0], [0], [2, 2]]},
        good | {"propensity": [0.5, 0.5], "features": [[1, 0]]},
        good | {"propensity": [0.5, 0.5], "candidates": [7, 8, 1]},
    ]
    path = tmp_path / "documents.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    log = data.read_logged_lists(path)
    assert log.items.tolist() == [[2, 0], [0, -1]]
    assert log.clicks.tolist() == [[0, 1], [0, 0]]
    assert log.propensities is not None
    assert log.propensities.tolist() == [[0.5, 0.25], [1.0, 1.0]]
    assert log.features is not None
    np.testing.assert_array_equal(log.features[0], [[1, 0], [0, 1], [2, 2]])
    assert dict(log.bad_rows) == {
        "a propensity of another kind than the first": 1,
        "a propensity that is not above 0 and up to 1": 2,
        "features that are not rows of as many finite numbers as the first": 1,
        "another number of candidates than of rows of features": 1,
        "something shown that is not among the candidates": 1,
    }
    with pytest.raises(ValueError, match="item_ids must be left out"):
        data.read_logged_lists(path, item_ids=["a"])
    path.write_text(json.dumps(rows[2]) + "\n")
    whole = data.read_logged_lists(path)
    assert whole.list_propensities is not None
    assert whole.list_propensities.tolist() == [0.5]
    path.write_text(json.dumps(good) + "\n")
    with pytest.raises(ValueError, match="no good page"):
        data.read_logged_lists(path)
