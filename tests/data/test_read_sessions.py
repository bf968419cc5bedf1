"""Pages one by one, from the shapes in which logs are published."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from rankloop import data

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
    {"query_id": "1", "user_query": "shoes", "query_response_hit_ids": ["a", "b", "c"], "timestamp": "t0"},
    {"query_id": "2", "user_query": "shoes", "query_response_hit_ids": ["b", "a"], "timestamp": "t0"},
    {"query_id": "3", "user_query": "hats", "query_response_hit_ids": [], "timestamp": "t0"},
    {
        "action_name": "click",
        "query_id": "1",
        "timestamp": "t3",
        "event_attributes": {"object": {"object_id": "a"}, "position": {"ordinal": 1}},
    },
    {
        "action_name": "click",
        "query_id": "1",
        "timestamp": "t2",
        "event_attributes": {"object": {"object_id": "c"}},
    },
    {"action_name": "add_to_cart", "query_id": "1", "timestamp": "t4", "event_attributes": {}},
    {"action_name": "click", "query_id": "2", "timestamp": "t4", "event_attributes": {}},
    {
        "action_name": "click",
        "query_id": "9",
        "timestamp": "t4",
        "event_attributes": {"object": {"object_id": "a"}},
    },
    {
        "action_name": "click",
        "query_id": "2",
        "timestamp": "t4",
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
    with pytest.raises(ValueError, match="line 1: neither a query"):
        data.read_sessions(tmp_path, format="ubi")


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
