"""What real logs do wrong: told in words, counted, or asked about; never silently left out."""

from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from rankloop import data
from rankloop.data.clicks import cell_table, finished, tables
from rankloop.data.clicks.files import Progress

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
        (ROWS + "x,2", r"line 5: the file ends in the middle of a line, 2 of 3 cells: 'x,2'"),
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


def test_folders_patterns_and_progress(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    (logs / "day=1").mkdir(parents=True)
    (logs / "day=1" / "a.csv").write_text(ROWS)
    pl.read_csv(logs / "day=1" / "a.csv").write_parquet(logs / "b.parquet")
    (logs / "_SUCCESS").write_text("")
    heard: list[Progress] = []
    assert shown(logs, progress=heard.append) == [[2, 2], [0, 2]]  # type: ignore[arg-type]
    assert heard[-1].done == heard[-1].total == sum(f.stat().st_size for f in logs.rglob("*.*"))
    assert heard[-1].seconds_left == 0.0
    assert all(one.seconds_left >= 0 for one in heard)
    assert shown(str(logs / "*.parquet")) == COUNTS
    assert shown(str(logs / "**/*.csv")) == COUNTS
    with pytest.raises(ValueError, match="no file matches"):
        data.read_clicks(str(logs / "*.gz"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="has no file"):
        data.read_clicks(tmp_path / "empty")


def test_counting_goes_on_where_it_was_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [tmp_path / f"{name}.csv" for name in "abc"]
    for file in files:
        file.write_text(ROWS + "x,bad,1\n")
    counted: list[Path] = []
    count = tables.count_table

    def interrupted(path: Path, *given: object, **options: object) -> None:
        counted.append(path)
        if path == files[2] and len(counted) == 3:
            raise KeyboardInterrupt
        count(path, *given, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(tables, "count_table", interrupted)
    with pytest.raises(KeyboardInterrupt):
        data.read_clicks(files, resume=tmp_path / "kept")
    log = data.read_clicks(files, resume=tmp_path / "kept")
    assert counted == [*files, files[2]]
    assert log.matrices()[0].tolist() == [[3, 3], [0, 3]]
    assert log.bad_rows == {"a position that is not a whole number from 1 on": 3}
    assert log.bad_clicks == {"a position that is not a whole number from 1 on": 3}
    data.read_clicks(files, resume=tmp_path / "kept", first_position=1)  # other options: counted anew
    assert len(counted) == 7
    files[0].write_text(ROWS)
    data.read_clicks(files, resume=tmp_path / "kept")
    assert counted[7:] == [files[0]]
    assert finished.Finished(tmp_path / "kept", {}).find(files[0]) is None


@pytest.mark.parametrize("ids", [pl.Int32, pl.String])
def test_large_parquet_is_counted_in_parts(
    ids: type[pl.DataType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pl.DataFrame({"item": [1, 2, 1] * 50, "position": [1, 2, 2] * 50, "click": [1, 0, 1] * 50})
    frame.cast({"item": ids}).write_parquet(tmp_path / "log.parquet", row_group_size=20)
    monkeypatch.setattr(tables, "PART", 40)
    monkeypatch.setattr(cell_table, "_BATCH", 40)
    heard: list[Progress] = []
    assert shown(tmp_path / "log.parquet", progress=heard.append) == [[50, 50], [0, 50]]  # type: ignore[arg-type]
    assert len(heard) == 5
    assert [one.done for one in heard] == sorted(one.done for one in heard)


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


FORMATS = (
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


@pytest.mark.parametrize("ending", FORMATS)
def test_every_format_tells_its_progress_and_goes_on_where_it_stopped(ending: str, tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.{ending}" for name in "abc"]
    for file in files:
        write(file)

    class Stop(BaseException):
        pass

    def stop(progress: Progress) -> None:
        if progress.file == files[2]:
            raise Stop

    with pytest.raises(Stop):
        data.read_clicks(files, resume=tmp_path / "kept", progress=stop)
    assert len(list((tmp_path / "kept").glob("*.json"))) >= 2
    heard: list[Progress] = []
    log = data.read_clicks(files, resume=tmp_path / "kept", progress=heard.append)
    assert log.matrices()[0].tolist() == [[9, 0], [0, 9]]
    assert log.matrices()[1].tolist() == [[9, 0], [0, 0]]
    size = files[0].stat().st_size
    assert [one.file for one in heard][:2] == files[:2]
    assert [one.done for one in heard][:2] == [size, 2 * size]
    assert [one.done for one in heard] == sorted(one.done for one in heard)
    assert heard[-1].done == heard[-1].total == 3 * size
    assert heard[-1].seconds_left == 0.0
