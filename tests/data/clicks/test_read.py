"""Click logs in every format come out as the same counts; bad rows are told, broken files refused."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from rankloop import data
from rankloop.data.clicks import batches, tally
from rankloop.data.clicks import pages as click_pages
from rankloop.feedback import ClickLog, PositionBasedModel


@pytest.fixture(scope="module")
def pages() -> list[dict[str, Any]]:
    """400 pages of two queries, three of seven items each, some clicked twice or not at all."""
    rng = np.random.default_rng(5)
    model = PositionBasedModel(attraction=rng.random(7), examination=[1.0, 0.6, 0.3])
    made = []
    for _ in range(400):
        items = rng.permutation(7)[:3]
        clicks = items[model.click(items, rng=rng) == 1].tolist() * 2
        made.append(
            {"q": f"q{rng.integers(2)}", "docs": (100 + items).tolist(), "clicks": [100 + c for c in clicks]}
        )
    return made


def impressions(pages: list[dict[str, Any]]) -> pl.DataFrame:
    rows = [
        (page["q"], doc, j + 1, int(doc in page["clicks"]))
        for page in pages
        for j, doc in enumerate(page["docs"])
    ]
    return pl.DataFrame(rows, schema=["query", "item", "position", "click"], orient="row")


def write_jsonl(pages: list[dict[str, Any]], path: Path) -> Path:
    path.write_text("".join(json.dumps(page) + "\n" for page in pages))
    return path


def same(one: ClickLog, other: ClickLog) -> None:
    assert one.query_ids == other.query_ids
    assert one.item_ids == other.item_ids
    assert one.n_positions == other.n_positions
    for column in ("queries", "items", "positions", "shown", "clicked"):
        np.testing.assert_array_equal(getattr(one, column), getattr(other, column), err_msg=column)


def test_pages_are_counted_cell_by_cell(pages: list[dict[str, Any]], tmp_path: Path) -> None:
    log = data.read_clicks(write_jsonl(pages, tmp_path / "log.jsonl"))
    shown: dict[tuple[str, str, int], list[int]] = {}
    for page in pages:
        for j, doc in enumerate(page["docs"]):
            cell = shown.setdefault((page["q"], str(doc), j), [0, 0])
            cell[0] += 1
            cell[1] += doc in page["clicks"]
    found = {
        (log.query_ids[q], log.item_ids[i], int(j)): [int(n), int(c)]
        for q, i, j, n, c in zip(log.queries, log.items, log.positions, log.shown, log.clicked, strict=True)
    }
    assert found == shown
    assert log.n_rows == 400
    assert dict(zip(log.query_ids, log.rows.tolist(), strict=True)) == {
        q: sum(page["q"] == q for page in pages) for q in ("q0", "q1")
    }
    assert log.bad_rows == {}
    assert log.name == "log"


WRITERS: dict[str, Callable[[pl.DataFrame, Path], None]] = {
    "impressions.csv": lambda frame, path: frame.write_csv(path),
    "impressions.csv.gz": lambda frame, path: (
        path.write_bytes(gzip.compress(frame.write_csv().encode())) and None
    ),
    "misnamed.txt": lambda frame, path: frame.write_csv(path),
    "impressions.parquet": lambda frame, path: frame.write_parquet(path, row_group_size=100),
    "booleans.parquet": lambda frame, path: frame.cast({"click": pl.Boolean}).write_parquet(path),
    "floats.parquet": lambda frame, path: frame.cast(
        {"click": pl.Float64, "position": pl.Float32}
    ).write_parquet(path),
    "categories.parquet": lambda frame, path: frame.cast({"query": pl.Categorical}).write_parquet(path),
    "other names.csv": lambda frame, path: frame.rename(
        {"query": "q", "item": "doc_id", "position": "rank", "click": "clicked"}
    ).write_csv(path),
    "impressions.jsonl": lambda frame, path: frame.write_ndjson(path),
    "booleans.jsonl.gz": lambda frame, path: (
        path.write_bytes(gzip.compress(frame.cast({"click": pl.Boolean}).write_ndjson().encode())) and None
    ),
    "counts.jsonl": lambda frame, path: _counts(frame).write_ndjson(path),
    "counts.csv": lambda frame, path: _counts(frame).write_csv(path),
    "counts.parquet": lambda frame, path: _counts(frame).write_parquet(path),
}


def _counts(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.group_by("query", "item", "position").agg(
        pl.len().alias("shown"), pl.col("click").sum().alias("clicks")
    )


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_counts(name: str, pages: list[dict[str, Any]], tmp_path: Path) -> None:
    log = data.read_clicks(write_jsonl(pages, tmp_path / "log.jsonl"))
    WRITERS[name](impressions(pages), tmp_path / name)
    same(data.read_clicks(tmp_path / name), log)


def test_gzip_pages_several_files_and_small_pieces(
    pages: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = data.read_clicks(write_jsonl(pages, tmp_path / "log.jsonl"))
    first = tmp_path / "first.jsonl.gz"
    first.write_bytes(gzip.compress(write_jsonl(pages[:150], tmp_path / "some.jsonl").read_bytes()))
    impressions(pages[150:]).write_parquet(tmp_path / "rest.parquet")
    monkeypatch.setattr(click_pages, "_CHUNK", 40)
    monkeypatch.setattr(batches, "_ROWS", 70)
    monkeypatch.setattr(tally, "_WAITING", 10)
    same(data.read_clicks([first, tmp_path / "rest.parquet"]), whole)
    monkeypatch.setattr(batches, "_BYTES", 100)
    (tmp_path / "marked.csv").write_bytes(b"\xef\xbb\xbf" + impressions(pages).write_csv().encode())
    same(data.read_clicks(tmp_path / "marked.csv"), whole)


def test_columns_can_be_named_and_positions_may_count_from_zero(
    pages: list[dict[str, Any]], tmp_path: Path
) -> None:
    frame = impressions(pages).with_columns(pl.col("position") - 1).rename({"item": "sku"})
    frame.write_csv(tmp_path / "log.csv")
    log = data.read_clicks(tmp_path / "log.csv", columns={"item": "sku"}, first_position=0, name="shop")
    same(log, data.read_clicks(write_jsonl(pages, tmp_path / "log.jsonl")))
    assert log.name == "shop"
    with pytest.raises(ValueError, match=r"no column for item .* name it with columns"):
        data.read_clicks(tmp_path / "log.csv")


def test_bad_pages_are_told_and_never_used(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(
        '{"query": "a", "shown": ["x", "y"], "clicked": ["y"]}\n'
        '{"query": "a", "shown": ["x", "y"], "clicked": ["x", "z"]}\n'
        '{"query": "a", "shown": ["x", "x"], "clicked": ["x"]}\n'
        '{"query": "a", "shown": [], "clicked": []}\n'
        "\n"
        '{"query": "a", "shown": ["x", "y"], "clicked": ["w"]}\n'
    )
    log = data.read_clicks(path)
    assert log.bad_rows == {
        "a click on an id that was not shown": 2,
        "an id shown twice": 1,
        "nothing shown": 1,
    }
    assert (log.n_rows, log.n_bad_rows) == (1, 4)
    assert log.matrices()[0].tolist() == [[1, 0], [0, 1]]
    assert log.matrices()[1].tolist() == [[0, 0], [0, 1]]
    assert repr(log).endswith("1 row, 1 click; 4 bad rows left out)")


def test_bad_rows_of_a_table_are_told_each_once(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(
        "query,item,position,click\n"
        "a,x,1,1\n"
        "a,x,0,1\n"  # positions count from 1
        "a,x,one,1\n"
        "a,x,1.5,1\n"
        "a,x,-1,2\n"  # two faults, one row
        "a,,1,0\n"
        ",x,1,0\n"
        "a,x,1,2\n"
        "a,x,1,\n"
        "a,x,1\n"
        "a,x,2,False\n"
    )
    log = data.read_clicks(path, first_position=1)
    assert log.bad_rows == {
        "a position that is not a whole number from 1 on": 4,
        "no item": 1,
        "no query": 1,
        "a click that is not 0 or 1": 3,
    }
    assert log.bad_clicks == {"a position that is not a whole number from 1 on": 3}
    path.write_text(path.read_text() + "a,x,1,1,1\n")  # a cell too many: read again by the block
    assert data.read_clicks(path, first_position=1).bad_rows == {
        "a position that is not a whole number from 1 on": 4,
        "no item": 1,
        "no query": 1,
        "a click that is not 0 or 1": 2,
        "too many or too few cells": 2,
    }
    assert log.matrices()[0].tolist() == [[1, 1]]
    assert log.matrices()[1].tolist() == [[1, 0]]


def test_a_cell_too_many_is_noticed_in_columns_that_are_not_wanted(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("item,position,click,user,note\nx,1,1,u,n\nx,1,1,u,n,more\n")
    assert data.read_clicks(path).bad_rows == {"too many or too few cells": 1}


def test_bad_counts_are_told(tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    path.write_text("item,position,shown,clicks\nx,1,5,2\nx,2,3,4\ny,1,-1,-2\ny,2,0,0\ny,1,many,2\n")
    log = data.read_clicks(path)
    assert log.bad_rows == {"more clicks than times shown": 1, "negative counts": 2}
    assert log.query_ids == ("",)
    assert log.item_ids == ("x",)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"q": 1, "docs": [1], "clicks": []}\n{"q": 1,\n', "line 2, column 10: not JSON"),
        ('{"q": 1, "docs": [1]}\n', "line 1: no field clicked or clicks"),
        ('{"q": 1, "docs": 7, "clicks": []}\n', "line 1: not a list of ids"),
        ('{"q": 1, "docs": [1.5], "clicks": []}\n', "line 1: an id must be text or a whole number"),
        ('{"q": null, "docs": [1], "clicks": []}\n', "line 1: an id must be text or a whole number"),
        ('{"q": 1, "docs": [1], "clicks": [2]}\n', "no row to count; bad rows: 1 with a click on an id"),
        ("1\t2\t[3, 4]\t[1, 1]\t[0, 2]\n", "line 1: clicks must be 0 or 1 for each of 2 ids"),
        ("1\t2\t[3, 4]\t[1, 1]\n", "line 1: expected five or six cells"),
        ("item,position\nx,1\n", "no column for shown"),
        ("item,position,click\n", "no row to count"),
        ("", "log: no header line"),
    ],
)
def test_what_is_no_log_is_refused_in_words(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(text)
    with pytest.raises(ValueError, match=told) as caught:
        data.read_clicks(path)
    assert "log" in str(caught.value)


def test_broken_files_are_refused_in_words(tmp_path: Path) -> None:
    whole = gzip.compress(b'{"q": 1, "docs": [1], "clicks": []}\n' * 1000)
    (tmp_path / "cut.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "cut.parquet").write_bytes(b"PAR1 and no more")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\xfa" * 100)
    for name in ("cut.jsonl.gz", "cut.parquet", "bytes"):
        with pytest.raises(ValueError, match=name):
            data.read_clicks(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        data.read_clicks(tmp_path / "nowhere.csv")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"paths": []}, "paths must name at least one file"),
        ({"format": "xml"}, "format must be one of"),
        ({"first_position": -1}, "first_position must be a whole number"),
        ({"columns": {"stuff": "item"}, "format": "csv"}, "columns must name any of"),
        ({"columns": {"item": "stuff"}, "format": "csv"}, "has no column 'stuff'"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], told: str, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("item,position,click\nx,1,0\n")
    with pytest.raises(ValueError, match=told):
        data.read_clicks(**({"paths": path} | arguments))


@pytest.mark.parametrize(
    ("relative", "rows", "bad", "clicks", "queries"),
    [
        ("yandex_wscd/trainSample.jsonl.gz", 34_873, 191, 42_462, 20),
        ("yandex_wscd/testSample.jsonl.gz", 21_280, 133, 31_104, 20),
        ("tiangong_st_demo/train_per_query_quid.txt.gz", 2_872, 0, 1_293, 2_055),
        ("tiangong_st_demo/human_label_for_NCM_per_query_quid.txt.gz", 856, 0, 502, 488),
        ("obd/random/men/men.csv.gz", 10_000, 0, 46, 1),
        ("obd/bts/men/men.csv.gz", 10_000, 0, 69, 1),
        ("obd/random/women/women.csv.gz", 10_000, 0, 46, 1),
        ("obd/bts/women/women.csv.gz", 10_000, 0, 46, 1),
    ],
)
def test_real_logs(relative: str, rows: int, bad: int, clicks: int, queries: int) -> None:
    try:
        path = data.find(f"clicks/{relative}")
    except data.DataMissing as missing:
        pytest.skip(str(missing))
    log = data.read_clicks(path)
    assert (log.n_rows, log.n_bad_rows) == (rows, bad)
    assert (log.clicked.sum(), len(log.query_ids)) == (clicks, queries)
    assert log.n_positions == (3 if "obd" in relative else 10)
    assert log.shown.sum() == rows * (1 if "obd" in relative else 10)
