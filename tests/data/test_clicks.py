"""Click logs in every format come out as the same counts; bad rows are told, broken files refused, doubts asked."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from rankloop import data
from rankloop.data import click_counts, click_pages, click_tables, clicks, text
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
    monkeypatch.setattr(text, "BLOCK", 900)
    monkeypatch.setattr(click_tables, "_ROWS", 70)
    monkeypatch.setattr(click_counts, "_WAITING", 10)
    same(data.read_clicks([first, tmp_path / "rest.parquet"]), whole)
    (tmp_path / "marked.csv").write_bytes(b"\xef\xbb\xbf" + impressions(pages).write_csv().encode())
    same(data.read_clicks(tmp_path / "marked.csv"), whole)


def test_columns_can_be_named_and_positions_may_count_from_zero(
    pages: list[dict[str, Any]], tmp_path: Path
) -> None:
    frame = impressions(pages).with_columns(pl.col("position") - 1).rename({"item": "widget"})
    frame.write_csv(tmp_path / "log.csv")
    log = data.read_clicks(tmp_path / "log.csv", columns={"item": "widget"}, first_position=0, name="shop")
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


ROWS = "item,position,click\nx,1,1\ny,2,0\nx,2,1\n"
COUNTS = [[1, 1], [0, 1]]


def shown(path: Path | list[Path] | str, **options: object) -> list[list[int]]:
    found: list[list[int]] = data.read_clicks(path, **options).matrices()[0].tolist()  # type: ignore[arg-type]
    return found


def test_positions_from_zero_are_asked_about(tmp_path: Path) -> None:
    path = tmp_path / "zero.csv"
    path.write_text("item,position,click\nx,0,1\ny,1,0\nx,1,1\ny,0,1\n")
    with pytest.raises(
        ValueError, match=r"2 of 4 rows, with 67% of the clicks, are at position 0.*first_position=0"
    ):
        data.read_clicks(path)
    assert shown(path, first_position=0) == [[1, 1], [1, 1]]
    log = data.read_clicks(path, first_position=1)
    assert log.bad_rows == {"a position that is not a whole number from 1 on": 2}
    assert log.bad_clicks == {"a position that is not a whole number from 1 on": 2}
    stray = "item,position,click\nx,0,1\n" + "x,1,0\n" * 2_000
    path.write_text(stray)  # one row of two thousand is a bad row, not a top position
    assert data.read_clicks(path).n_bad_rows == 1


def test_more_clicks_than_impressions_tell_their_clicks_and_can_be_clipped(tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    path.write_text("item,position,shown,clicks\nx,1,10,5\nx,2,3,20\ny,1,4,1\n")
    log = data.read_clicks(path)
    assert log.bad_rows == {"more clicks than times shown": 1}
    assert log.bad_clicks == {"more clicks than times shown": 20}
    clipped = data.read_clicks(path, clip=True)
    assert clipped.n_bad_rows == 0
    assert clipped.matrices()[1].tolist() == [[5, 3], [1, 0]]


@pytest.mark.parametrize(
    "text",
    [
        ROWS.replace(",", "\t"),
        ROWS.replace(",", ";"),
        ROWS.replace("\n", "\r\n"),
        ROWS.replace(",1,", ",1.0,").replace(",2,", ", 2 ,"),
        ROWS.replace(",1\n", ",1.0\n"),
        ROWS.rstrip("\n"),
        ROWS + "\n\n",
        "\ufeff" + ROWS,
    ],
)
def test_what_is_read_all_the_same(text: str, tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text(text, newline="")
    assert shown(path) == COUNTS
    assert data.read_clicks(path).n_bad_rows == 0
    path.write_bytes(gzip.compress(text.encode()))
    assert shown(path) == COUNTS
    path.write_bytes(pa.compress(text.encode(), codec="zstd", asbytes=True))
    assert shown(path) == COUNTS


def test_zstd_pages(tmp_path: Path) -> None:
    page = b'{"q": 1, "docs": ["x", "y"], "clicks": ["x"]}\n'
    (tmp_path / "p").write_bytes(pa.compress(page * 3, codec="zstd", asbytes=True))
    assert shown(tmp_path / "p") == [[3, 0], [0, 3]]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (ROWS.replace("\n", "\r"), "line 1: lines end in CR alone"),
        (ROWS.replace("item", "stuff"), "no column for item"),
    ],
)
def test_what_is_refused(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(text, newline="")
    with pytest.raises(ValueError, match=told) as caught:
        data.read_clicks(path)
    assert str(path) in str(caught.value)


def test_a_cut_packed_file_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress((ROWS * 1000).encode())
    (tmp_path / "cut.csv").write_bytes(whole[:-20])
    with pytest.raises(ValueError, match=r"cut.csv: broken"):
        data.read_clicks(tmp_path / "cut.csv")


def test_folders_and_patterns(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    (logs / "day=1").mkdir(parents=True)
    (logs / "day=1" / "a.csv").write_text(ROWS)
    pl.read_csv(logs / "day=1" / "a.csv").write_parquet(logs / "b.parquet")
    (logs / "_SUCCESS").write_text("")
    assert shown(logs) == [[2, 2], [0, 2]]
    assert shown(str(logs / "*.parquet")) == COUNTS
    assert shown(str(logs / "**/*.csv")) == COUNTS
    with pytest.raises(ValueError, match="no file matches"):
        data.read_clicks(str(logs / "*.gz"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="has no file"):
        data.read_clicks(tmp_path / "empty")


@pytest.mark.parametrize("ids", [pl.Int32, pl.String])
def test_large_parquet_is_counted_in_parts(
    ids: type[pl.DataType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pl.DataFrame({"item": [1, 2, 1] * 50, "position": [1, 2, 2] * 50, "click": [1, 0, 1] * 50})
    frame.cast({"item": ids}).write_parquet(tmp_path / "log.parquet", row_group_size=20)
    monkeypatch.setattr(click_counts, "PART", 40)
    assert shown(tmp_path / "log.parquet") == [[50, 50], [0, 50]]


@pytest.mark.parametrize("far", [0, -5, 2**40, 2**62])
def test_numbers_of_any_size_are_counted_alike(far: int, tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "query": [3, far, 3, far, 3, None],
            "item": [far, 7, far, 7, 8, 8],
            "position": [1, 2, 1, 3, 2, 1],
            "click": [1, 0, 0, 1, 2, 1],
        }
    )
    frame.write_parquet(tmp_path / "nulls.parquet")
    frame.head(5).write_parquet(tmp_path / "numbers.parquet")
    log = data.read_clicks(tmp_path / "numbers.parquet")
    cells = {
        (log.query_ids[q], log.item_ids[i], int(j)): (int(n), int(c))
        for q, i, j, n, c in zip(log.queries, log.items, log.positions, log.shown, log.clicked, strict=True)
    }
    assert cells == {("3", str(far), 0): (2, 1), (str(far), "7", 1): (1, 0), (str(far), "7", 2): (1, 1)}
    assert log.bad_rows == {"a click that is not 0 or 1": 1}
    assert log.n_rows == 4
    frame.head(4).write_parquet(tmp_path / "good.parquet")
    assert data.read_clicks(tmp_path / "good.parquet").n_rows == 4
    other = data.read_clicks(tmp_path / "nulls.parquet")
    assert other.bad_rows == {"a click that is not 0 or 1": 1, "no query": 1}
    assert other.bad_clicks == {"no query": 1}
    assert other.shown.tolist() == log.shown.tolist()


def test_a_row_without_a_click_at_position_0_is_no_question_where_positions_begin(tmp_path: Path) -> None:
    rows = {"item": [1] * 3_000, "position": [1] * 2_999 + [0], "click": [1] * 2_999 + [7]}
    pl.DataFrame(rows).write_parquet(tmp_path / "log.parquet")
    log = data.read_clicks(tmp_path / "log.parquet")
    assert log.bad_rows == {"a position that is not a whole number from 1 on": 1}
    assert log.shown.tolist() == [2_999]


ENDINGS = (
    "csv",
    "csv.gz",
    "csv.zst",
    "numbers.parquet",
    "text.parquet",
    "jsonl",
    "jsonl.gz",
    "jsonl.zst",
    "txt",
)


def write(path: Path) -> None:
    """Three pages of two items, in the format that the name ends in."""
    ending = path.name.partition(".")[2]
    text = '{"q": "a", "docs": [1, 2], "clicks": [1]}\n' * 3
    if ending.startswith("csv"):
        text = "query,item,position,click\n" + "a,1,1,1\na,2,2,0\n" * 3
    elif ending == "txt":
        text = "s\ta\t[1, 2]\t[1, 1]\t[1, 0]\n" * 3
    elif ending.endswith("parquet"):
        ids = pl.Int64 if ending.startswith("numbers") else pl.String
        rows = pl.DataFrame(
            {"query": [7, 7] * 3, "item": [1, 2] * 3, "position": [1, 2] * 3, "click": [1, 0] * 3}
        )
        rows.with_columns(pl.col("query", "item").cast(ids)).write_parquet(path)
        return
    packed = text.encode()
    if ending.endswith("gz"):
        packed = gzip.compress(packed)
    elif ending.endswith("zst"):
        packed = pa.compress(packed, codec="zstd", asbytes=True)
    path.write_bytes(packed)


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_format_is_added_up_over_files(ending: str, tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.{ending}" for name in "abc"]
    for file in files:
        write(file)

    log = data.read_clicks(files)
    assert log.matrices()[0].tolist() == [[9, 0], [0, 9]]
    assert log.matrices()[1].tolist() == [[9, 0], [0, 0]]


CSV = b"item,position,click\n" + b"".join(b"x%d,1,0\n" % (i * i * 7919 % 9973) for i in range(5_000))
LINE = b'{"q": "a", "docs": [%d, -1], "clicks": [-1]}\n'
JSON = b"".join(LINE % (i * i * 7919 % 9973) for i in range(5_000))


@pytest.mark.parametrize("packing", ["gzip", "zstd"])
@pytest.mark.parametrize("text", [CSV, JSON], ids=["csv", "jsonl"])
def test_packed_files_are_read_and_a_cut_one_is_refused(text: bytes, packing: str, tmp_path: Path) -> None:
    packed = gzip.compress(text) if packing == "gzip" else pa.compress(text, codec="zstd", asbytes=True)
    path = tmp_path / "log"
    path.write_bytes(packed)
    assert data.read_clicks(path).n_rows == 5_000
    path.write_bytes(packed[: len(packed) * 3 // 4])
    with pytest.raises(ValueError, match=r"log: broken (gzip|packed) file, after line \d+: "):
        data.read_clicks(path)


@pytest.mark.parametrize("zipped", [False, True])
def test_bytes_that_are_no_text_are_found(zipped: bool, tmp_path: Path) -> None:
    for log, line, column in ((CSV, 4_001, 2), (JSON, 4_001, 8)):
        lines = log.splitlines(keepends=True)
        lines[line - 1] = lines[line - 1][: column - 1] + b"\xe9" + lines[line - 1][column:]
        whole = b"".join(lines)
        (tmp_path / "log").write_bytes(gzip.compress(whole) if zipped else whole)
        with pytest.raises(
            ValueError, match=rf"log, line {line}, column {column}: not UTF-8 text: byte 0xe9"
        ):
            data.read_clicks(tmp_path / "log")


@pytest.mark.parametrize("ids", [pl.Int64, pl.String])
def test_broken_parquet_is_refused(ids: type[pl.DataType], tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    frame = pl.DataFrame({"item": range(1_000), "position": [1, 2] * 500, "click": [0] * 1_000})
    frame.cast({"item": ids}).write_parquet(path, row_group_size=250, compression="zstd")
    told = pyarrow.parquet.read_metadata(path).row_group(2).column(0)
    assert told.path_in_schema == "item"
    start = told.dictionary_page_offset or told.data_page_offset
    whole = bytearray(path.read_bytes())
    for at in range(start, start + told.total_compressed_size):
        whole[at] ^= 0x5A
    path.write_bytes(bytes(whole))
    with pytest.raises(ValueError, match=r"log.parquet: broken Parquet file"):
        data.read_clicks(path)
    path.write_bytes(bytes(whole[:-10]))
    with pytest.raises(ValueError, match=r"log.parquet: broken Parquet file"):
        data.read_clicks(path)


def test_columns_of_other_types_are_named(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    pl.DataFrame({"item": [[1], [2]], "position": [1, 2], "click": [0, 1]}).write_parquet(path)
    with pytest.raises(
        ValueError, match=r"column 'item', for item, holds List\(Int64\), not text or numbers"
    ):
        data.read_clicks(path)


def test_the_error_of_one_of_many_files_names_that_one(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({"q": 1, "docs": [1], "clicks": []}) + "\n")
    (tmp_path / "b.csv").write_text("item,place,click\nx,1,1\n")
    with pytest.raises(ValueError, match=r"b.csv: no column for position .* among item, place, click"):
        data.read_clicks(str(tmp_path / "*"))


GOOD = '{"query": "a", "shown": [1, 2], "clicked": []}\n{"query": "b", "shown": [2, 3], "clicked": [3, 3]}\n'


@pytest.mark.parametrize(
    "line",
    [
        '{"query": 1, "shown": ["a", 2], "clicked": [2]}',
        '{"query": "c", "query": "d", "shown": [1], "clicked": []}',
        '{"query": "c", "q": "d", "shown": [1], "clicked": [1]}',
        '{"q": "c", "shown": [1], "clicked": [1]}',
        '{"query": "c", "shown": [12345678901234567890], "clicked": []}',
        '{"query": "ü", "shown": ["\\u00fc"], "clicked": ["ü"]}',
    ],
)
def test_lines_unlike_the_first_are_read_by_themselves(line: str, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(GOOD + line + "\n", encoding="utf-8")
    log = data.read_clicks(path)
    assert log.n_rows == 3
    same(log, one_by_one(path))


def one_by_one(path: Path) -> ClickLog:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(click_pages, "_parsed", lambda *_: None)
        return data.read_clicks(path)


@pytest.mark.parametrize("kind", ["numbers", "text", "bad pages", "without queries", "numbers as text"])
def test_a_block_at_once_is_counted_as_line_by_line(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(6)
    path = tmp_path / "log.jsonl"
    with path.open("w") as file:
        for number in range(300):
            ids = rng.permutation(12)[: rng.integers(1, 6)].tolist()
            hits = [one for one in ids if rng.random() < 0.3]
            if kind == "bad pages" and number:
                ids = [[], ids + ids[:1], ids, ids][number % 4]
                hits = [*hits, 99] if number % 4 == 2 else hits
            if "text" in kind:
                letter = "i" if kind == "text" else ""
                ids, hits = [f"{letter}{one}" for one in ids], [f"{letter}{one}" for one in hits]
            page = {"q": int(rng.integers(3)), "docs": ids, "clicks": hits, "other": [None, {}][number % 2]}
            if kind == "without queries":
                del page["q"]
            file.write(json.dumps(page) + ("\n\n" if number == 7 else "\n"))
    slow = one_by_one(path)
    monkeypatch.setattr(text, "BLOCK", 3_000)
    blocks = list(text.line_blocks(path))
    assert len(blocks) > 4
    assert b"".join(block for _, block in blocks) == path.read_bytes()
    parsed = [click_pages._parsed(path, *block) is not None for block in blocks]
    assert any(parsed) == (kind != "numbers as text")  # which Polars would make of numbers, too
    fast = data.read_clicks(path)
    same(fast, slow)
    assert fast.bad_rows == slow.bad_rows
    assert fast.rows.tolist() == slow.rows.tolist()
    if kind == "bad pages":
        assert sorted(slow.bad_rows.values()) == [74, 75, 75]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b'{"query": "c", "shown": [1.0], "clicked": []}', "line 3: an id must be text or a whole number"),
        (b'{"query": "c", "shown": [true], "clicked": []}', "line 3: an id must be text or a whole number"),
        (b'{"query": "c", "shown": [null], "clicked": []}', "line 3: an id must be text or a whole number"),
        (b'{"query": null, "shown": [1], "clicked": []}', "line 3: an id must be text or a whole number"),
        (b'{"query": "c", "shown": [1]}', "line 3: no field clicked or clicks"),
        (b'{"query": "c", "shown": [1], "clicked": null}', "line 3: not a list of ids"),
        (b'{"query": "c", "shown": [1], "clicked": []} {"query": "d"}', "line 3, column 45: not JSON"),
        (b'{"query": "c", "shown": [01], "clicked": []}', "line 3, column 27: not JSON"),
        (b"[1]", "line 3: not a JSON object"),
        (b'{"query": "\xff", "shown": [1], "clicked": []}', "line 3, column 12: not UTF-8 text: byte 0xff"),
    ],
)
def test_a_line_that_python_refuses_is_refused(line: bytes, told: str, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(GOOD.encode() + line + b"\n" + GOOD.encode())
    with pytest.raises(ValueError, match=told) as caught:
        data.read_clicks(path)
    assert str(path) in str(caught.value)


def test_rows_as_json_lines_are_checked_like_those_of_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.jsonl"
    good = [{"sku": i % 3, "position": i % 2 + 1, "click": i % 5 == 0, "query": "a"} for i in range(60)]
    bad = [
        {"sku": 1, "position": "one", "click": 1, "query": "a"},
        {"sku": None, "position": 1, "click": 1, "query": "a"},
        {"sku": [7], "position": 1, "click": 1, "query": "a"},
        {"sku": 1, "position": 1, "click": 2, "query": "a"},
        {"sku": 1, "position": 1, "click": 1},
    ]
    told = [json.dumps(row) + "\n" for row in (*good, *bad)]
    path.write_text("".join(told[:30] + told[60:] + told[30:60]))
    found = data.read_clicks(path, columns={"item": "sku"})
    assert found.bad_rows == {
        "no query": 1,
        "no item": 2,
        "a position that is not a whole number from 1 on": 1,
        "a click that is not 0 or 1": 1,
    }
    path.write_text("".join(told[:60]))
    monkeypatch.setattr(text, "BLOCK", 500)
    same_good = data.read_clicks(path, columns={"item": "sku"})
    assert same_good.n_bad_rows == 0
    for name in ("queries", "items", "positions", "shown", "clicked"):
        np.testing.assert_array_equal(getattr(found, name), getattr(same_good, name))
    path.write_text(told[0] + "{\n")
    with pytest.raises(ValueError, match=r"rows.jsonl, line 2, column 3: not JSON"):
        data.read_clicks(path, columns={"item": "sku"})
    path.write_text('{"item": 1, "place": 2, "click": 0}\n')
    with pytest.raises(ValueError, match=r"rows.jsonl: no column for position .* among item, place, click"):
        data.read_clicks(path)


def test_cells_of_whole_numbers_are_counted_as_by_a_dictionary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(4)
    monkeypatch.setattr(click_counts, "PART", 250)
    columns = {
        "query": rng.integers(-3, 5, 1_000),
        "item": 10**12 + rng.integers(61, size=1_000),
        "position": rng.integers(1, 6, 1_000),
        "click": rng.integers(4, size=1_000),  # 2 and 3 are no clicks
    }
    pl.DataFrame(columns).cast({"position": pl.Int8}).write_parquet(
        tmp_path / "log.parquet", row_group_size=90
    )
    shown: Counter[tuple[str, str, int]] = Counter()
    clicked: Counter[tuple[str, str, int]] = Counter()
    for query, item, position, click in zip(*(column.tolist() for column in columns.values()), strict=True):
        if click < 2:
            shown[str(query), str(item), position - 1] += 1
            clicked[str(query), str(item), position - 1] += click
    log = data.read_clicks(tmp_path / "log.parquet")
    cells = [
        (log.query_ids[q], log.item_ids[i], int(j))
        for q, i, j in zip(log.queries, log.items, log.positions, strict=True)
    ]
    assert dict(zip(cells, log.shown.tolist(), strict=True)) == shown
    assert dict(zip(cells, log.clicked.tolist(), strict=True)) == {cell: clicked[cell] for cell in shown}
    assert log.bad_rows == {"a click that is not 0 or 1": int((columns["click"] > 1).sum())}


def test_what_is_no_file_is_refused_and_files_are_found_once(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(ROWS)
    files = clicks.find_files(str(tmp_path / "*.csv"))
    assert clicks.find_files(files) == files == clicks.find_files((tmp_path / "log.csv").as_uri())
    assert shown(files) == COUNTS  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"paths: s3://b/log.csv is an address: copy its files"):
        data.read_clicks("s3://b/log.csv")
    with pytest.raises(TypeError, match=r"got DataFrame: write a DuckDB relation or a data frame to Parquet"):
        data.read_clicks(pl.DataFrame())  # type: ignore[arg-type]
    with pytest.warns(DeprecationWarning, match="engine, memory_limit and spill_to are ignored"):
        assert shown(files, engine="duckdb") == COUNTS  # type: ignore[arg-type]


@pytest.mark.parametrize("ids", ["[1.0]", "[true]", '[{"a": 1}]', '["x", null]'])
def test_among_text_nothing_else_becomes_an_id(ids: str, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    bad = '{"query": "a", "shown": IDS, "clicked": []}\n'.replace("IDS", ids)
    path.write_text('{"query": "a", "shown": ["x"], "clicked": ["x"]}\n' + bad)
    with pytest.raises(ValueError, match="line 2: an id must be text or a whole number"):
        data.read_clicks(path)
