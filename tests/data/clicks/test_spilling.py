"""DuckDB counts what Polars counts, also where it has to write to disk."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from rankloop import data
from rankloop.data.clicks.spilling import Spilling
from rankloop.extras import MissingExtra
from rankloop.feedback import ClickLog

pytest.importorskip("duckdb")


def same(one: ClickLog, other: ClickLog) -> None:
    for name in ("queries", "items", "positions", "shown", "clicked", "rows"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name
    for name in ("query_ids", "item_ids", "bad_rows", "bad_clicks", "n_positions"):
        assert getattr(one, name) == getattr(other, name), name


BAD = (
    "query,item,position,click\na,x,1,1\na,x,0,1\na,x,one,1\na,x,1.5,1\na,x,-1,2\na,,1,0\n,x,1,0\na,x,1,2\n"
    'a,x,1,\na,x,1\na,"x, ""y""",2,False\n\nü,\'x,3,1.0\n'
)


@pytest.mark.parametrize(
    "text",
    [
        BAD,
        BAD + "a,x,1,1,1\n",  # a cell too many: read again by the block
        BAD.replace("\n", "\r\n"),
        "\ufeff" + BAD,
        BAD.rstrip("\n"),
        "item\tposition\tshown\tclicks\nx\t1\t5\t2\nx\t2\t3\t4\ny\t1\t-1\t-2\ny\t2\t0\t0\ny\t1\tmany\t2\n",
        "item;position;click;query\nx;1;1;it's\n",
    ],
)
@pytest.mark.parametrize("packing", ["plain", "gzip", "zstd"])
def test_text_comes_out_the_same(text: str, packing: str, tmp_path: Path) -> None:
    path, packed = tmp_path / "log", text.encode()
    if packing == "gzip":
        packed = gzip.compress(packed)
    elif packing == "zstd":
        packed = pa.compress(packed, codec="zstd", asbytes=True)
    path.write_bytes(packed)
    options = {"first_position": 1}
    same(data.read_clicks(path, engine="duckdb", **options), data.read_clicks(path, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize("ids", [pl.Int64, pl.UInt16, pl.String, pl.Categorical])
@pytest.mark.parametrize("click", [pl.Int8, pl.Boolean, pl.Float64, pl.String])
def test_parquet_comes_out_the_same(ids: type[pl.DataType], click: type[pl.DataType], tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    frame = pl.DataFrame(
        {
            "an item's id": rng.integers(9, size=500),
            "position": rng.integers(1, 5, size=500),
            "click": rng.integers(2, size=500),
            "query": rng.integers(3, size=500),
        }
    )
    frame = frame.with_columns(pl.when(pl.col("position") < 4).then("click").alias("click"))
    text = pl.col("an item's id", "query").cast(pl.String)
    frame = frame.with_columns(text.cast(ids), pl.col("click").cast(click))
    frame.write_parquet(tmp_path / "log.parquet")
    columns = {"item": "an item's id"}
    by_polars = data.read_clicks(tmp_path / "log.parquet", columns=columns)
    assert by_polars.n_bad_rows > 100
    same(data.read_clicks(tmp_path / "log.parquet", columns=columns, engine="duckdb"), by_polars)


def test_what_does_not_fit_into_memory_is_written_to_the_folder(tmp_path: Path) -> None:
    items = np.random.default_rng(7).integers(300_000, size=600_000)
    frame = pl.DataFrame({"item": items, "position": items % 5 + 1, "click": items % 2})
    names = pl.format("an id that takes some room: {}", "item").alias("item")
    frame.with_columns(names).write_parquet(tmp_path / "log.parquet")
    whole = Spilling("60MB", tmp_path / "spilled")
    wanted = {"item": "item", "position": "position", "click": "click"}
    found = whole.group(tmp_path / "log.parquet", "parquet", wanted, list(wanted), names=False)
    assert (tmp_path / "spilled").is_dir()
    assert found.height == len(np.unique(items))
    assert found["rows"].sum() == 600_000
    with pytest.raises(ValueError, match=r"memory_limit is too small for .*log.parquet"):
        data.read_clicks(tmp_path / "log.parquet", engine="duckdb", memory_limit="2MB")


def test_pages_and_mistakes_are_as_without(tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text(json.dumps({"q": 1, "docs": [1, 2], "clicks": [2]}) + "\n")
    same(data.read_clicks(tmp_path / "p.jsonl", engine="duckdb"), data.read_clicks(tmp_path / "p.jsonl"))
    (tmp_path / "bad.csv").write_bytes(b"item,position,click\nx,1,1\n\xe9,1,1\n")
    with pytest.raises(ValueError, match=r"bad.csv, line 3, column 1: not UTF-8 text"):
        data.read_clicks(tmp_path / "bad.csv", engine="duckdb")
    (tmp_path / "cut.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(ValueError, match=r"cut.parquet: broken Parquet file"):
        data.read_clicks(tmp_path / "cut.parquet", engine="duckdb")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"engine": "sqlite"}, "engine must be one of"),
        ({"engine": "duckdb", "memory_limit": "much"}, "memory_limit must be a size such as '2GB'"),
        ({"memory_limit": "2GB"}, 'memory_limit is for engine="duckdb"'),
        ({"spill_to": "here"}, 'spill_to is for engine="duckdb"'),
    ],
)
def test_wrong_arguments_are_named(options: dict[str, str], told: str, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("item,position,click\nx,1,0\n")
    with pytest.raises(ValueError, match=told):
        data.read_clicks(tmp_path / "log.csv", **options)  # type: ignore[arg-type]


def test_without_duckdb_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "log.csv").write_text("item,position,click\nx,1,0\n")
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    with pytest.raises(MissingExtra, match=r'engine="duckdb" needs duckdb: pip install "rankloop\[duckdb\]"'):
        data.read_clicks(tmp_path / "log.csv", engine="duckdb")
