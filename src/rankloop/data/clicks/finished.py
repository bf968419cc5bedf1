"""Counts of finished files, kept in a folder, so that counting that was interrupted goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl

from rankloop.data.clicks.remote import RemoteFile
from rankloop.data.clicks.tally import Tally


class Finished:
    """One folder for one way of reading: other options or a changed file are counted anew."""

    def __init__(self, folder: Path, options: dict[str, Any]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.options = folder, options

    def _stem(self, file: Path | RemoteFile) -> Path:
        what: list[Any]
        if isinstance(file, Path):
            told = file.stat()
            what = [str(file.resolve()), told.st_size, told.st_mtime_ns, self.options]
        else:
            what = [file.address, file.size, file.stamp, self.options]
        return self.folder / hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:32]

    def find(self, path: Path | RemoteFile) -> Tally | None:
        """The counts of a file that was finished before, else None."""
        stem = self._stem(path)
        if not stem.with_suffix(".json").exists():
            return None
        told = json.loads(stem.with_suffix(".json").read_text("utf-8"))
        tally = Tally(Counter(told["bad_rows"]), Counter(told["bad_clicks"]))
        if told["rows"]:
            tally.add(
                pl.read_parquet(stem.with_suffix(".cells.parquet")),
                pl.read_parquet(stem.with_suffix(".rows.parquet")),
            )
        return tally

    def keep(self, path: Path | RemoteFile, tally: Tally) -> None:
        """Keep the counts of a finished file; the last of its files says that the others are whole."""
        stem, parts = self._stem(path), tally.parts()
        if parts is not None:
            parts[0].write_parquet(stem.with_suffix(".cells.parquet"))
            parts[1].write_parquet(stem.with_suffix(".rows.parquet"))
        told = {"bad_rows": tally.bad_rows, "bad_clicks": tally.bad_clicks, "rows": parts is not None}
        written = stem.with_suffix(".part")
        written.write_text(json.dumps(told), "utf-8")
        written.replace(stem.with_suffix(".json"))
