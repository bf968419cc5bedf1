"""A mistake of the whole file names the file, and the line and column or the rows and column."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from rankloop import data

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
    for text, line, column in ((CSV, 4_001, 2), (JSON, 4_001, 8)):
        lines = text.splitlines(keepends=True)
        lines[line - 1] = lines[line - 1][: column - 1] + b"\xe9" + lines[line - 1][column:]
        whole = b"".join(lines)
        (tmp_path / "log").write_bytes(gzip.compress(whole) if zipped else whole)
        with pytest.raises(
            ValueError, match=rf"log, line {line}, column {column}: not UTF-8 text: byte 0xe9"
        ):
            data.read_clicks(tmp_path / "log")


@pytest.mark.parametrize("ids", [pl.Int64, pl.String])
def test_broken_parquet_names_rows_and_column(ids: type[pl.DataType], tmp_path: Path) -> None:
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
    with pytest.raises(ValueError, match=r"log.parquet, rows 501 to 750, column 'item': broken Parquet file"):
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
