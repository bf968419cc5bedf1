"""Logs with propensities, from tables and from pages."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from rankloop import data
from rankloop.feedback import LoggedLists


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
