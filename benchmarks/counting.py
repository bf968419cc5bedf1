"""Counting of long logs: `python -m benchmarks.counting 20000000` writes one of so many rows, and counts it."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from benchmarks.clicks import _streamed

QUERIES, ITEMS, POSITIONS = 10_500, 20, 10  # 2.1 million cells
_PART = 1_000_000


def write_even_log(path: Path, n_rows: int) -> None:
    """Impressions of every query, item and position alike, so that every cell occurs."""
    rng = np.random.default_rng(1)
    schema = pa.schema(
        [("query", pa.int32()), ("item", pa.int32()), ("position", pa.int8()), ("click", pa.int8())]
    )
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for start in range(0, n_rows, _PART):
            size = min(_PART, n_rows - start)
            query, place = rng.integers(QUERIES, size=size), rng.integers(POSITIONS, size=size)
            columns = {
                "query": query,
                "item": query * 100 + rng.integers(ITEMS, size=size),
                "position": place + 1,
                "click": rng.random(size) < 0.3 / (place + 1),
            }
            arrays = [pa.array(columns[field.name]).cast(field.type) for field in schema]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def main(n_rows: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log.parquet")
        write_even_log(path, n_rows)
        told = _streamed(path, n_rows)
    print(
        f"{n_rows:,} rows, {told.n_cells:,} cells, {told.file_megabytes:.0f} MB of Parquet: counted in"
        f" {told.read_cpu:.1f} CPU-seconds ({told.read_seconds:.1f} by the clock), {told.peak_megabytes:.0f} MB"
        f" at most; fitted in {told.fit_cpu:.1f} CPU-seconds"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000_000)
