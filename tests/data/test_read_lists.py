"""Lists of a log, as a service takes them to learn from."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankloop import data

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
        {"items": ["a", "b"], "clicks": [0, 1], "propensities": [0.25, 0.5]},
        {"items": ["c"], "clicks": [0]},
    ]
    assert list(data.read_lists(path, query="dog", feedback="relevance")) == [
        {"items": ["c"], "relevance": [1.0]}
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
        {"items": ["a", "b"], "clicks": [0, 1], "propensities": [0.5, 0.25]},
        {"items": ["a"], "clicks": [0], "features": [[2.0]]},
        {"items": ["a"], "clicks": [0]},
    ]
    events = [
        {"query_id": "1", "user_query": "cat", "query_response_hit_ids": ["a", "b"]},
        {"query_id": "2", "user_query": "dog", "query_response_hit_ids": ["c"]},
        {
            "query_id": "1",
            "action_name": "click",
            "timestamp": "1",
            "event_attributes": {"object": {"object_id": "b"}},
        },
    ]
    ubi = tmp_path / "ubi.jsonl"
    ubi.write_text("".join(json.dumps(line) + "\n" for line in events))
    assert list(data.read_lists(ubi, format="ubi", query="cat")) == [{"items": ["a", "b"], "clicks": [0, 1]}]
    with pytest.raises(ValueError, match="feedback must be 'clicks' for logs of ubi"):
        next(data.read_lists(ubi, format="ubi", feedback="relevance"))


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "log.parquet", [{"item": "a", "position": 1, "click": 0}])
    with pytest.raises(ValueError, match="no column for page"):
        next(data.read_lists(path))
    with pytest.raises(ValueError, match="feedback must be"):
        data.read_lists(path, feedback="stars")
