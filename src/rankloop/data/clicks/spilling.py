"""Rows of a table grouped by DuckDB, which writes to disk what does not fit into memory."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from rankloop.data.clicks.columns import find_separator
from rankloop.data.text_files import packing

_SIZE = re.compile(r"^\d+(\.\d+)?\s?(KB|MB|GB|TB|KiB|MiB|GiB|TiB)$")


class Refused(ValueError):
    """DuckDB could not read a table."""


@dataclass(frozen=True, slots=True)
class Spilling:
    """How DuckDB is to work: at most so much memory, and the folder for the rest."""

    memory_limit: str | None = None
    folder: Path | None = None

    def __post_init__(self) -> None:
        if self.memory_limit is not None and not _SIZE.match(self.memory_limit):
            raise ValueError(
                f"memory_limit must be a size such as '2GB' or '500MB', got {self.memory_limit!r}"
            )

    def group(
        self, path: Path, kind: str, wanted: Mapping[str, str], header: Sequence[str], *, names: bool
    ) -> pl.DataFrame:
        """Different rows of the wanted columns, under our names, and how often each occurs; `names`: no header line."""
        import duckdb

        columns = ", ".join(f"{_quoted(theirs)} AS {_quoted(ours)}" for ours, theirs in wanted.items())
        source = "read_parquet($path)" if kind == "parquet" else _csv_source(path, header, names=names)
        settings: dict[str, Any] = {
            "autoinstall_known_extensions": False,
            "preserve_insertion_order": False,
            "threads": min(4, os.cpu_count() or 1),  # each needs memory of its own
        }
        if self.memory_limit is not None:
            settings["memory_limit"] = self.memory_limit
        with ExitStack() as stack:
            folder = self.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rankloop-")))
            folder.mkdir(parents=True, exist_ok=True)
            settings["temp_directory"] = str(folder)
            connection = stack.enter_context(duckdb.connect(":memory:", config=settings))
            try:
                query = f"SELECT {columns}, count(*) AS rows FROM {source} GROUP BY ALL"
                table = connection.sql(query, params={"path": str(path)}).to_arrow_table()
            except duckdb.OutOfMemoryException as error:
                raise ValueError(f"memory_limit is too small for {path}: {error}") from error
            except (duckdb.Error, UnicodeDecodeError) as error:  # a message may quote what is no text
                raise Refused(f"{path}: {error}") from error
        frame = pl.from_arrow(table)
        assert isinstance(frame, pl.DataFrame)
        return frame.with_columns(pl.col("rows").cast(pl.Int64))


def _csv_source(path: Path, header: Sequence[str], *, names: bool) -> str:
    # Text: a value that is not a number is then one bad row. A line too short has nothing in its last cells.
    columns = ", ".join(f"{_text(name)}: 'VARCHAR'" for name in header)
    options = {
        "columns": f"{{{columns}}}",
        "auto_detect": "false",
        "header": "false" if names else "true",
        "delim": _text(find_separator(path)),
        "quote": "'\"'",
        "escape": "'\"'",
        "null_padding": "true",
        "compression": _text(packing(path) or "none"),
    }
    return f"read_csv($path, {', '.join(f'{name} = {value}' for name, value in options.items())})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
