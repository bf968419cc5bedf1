"""A trace in a Parquet file: its columns, and beside them as JSON everything else that it holds."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankloop.extras import require
from rankloop.simulation.code_version import code_fingerprint
from rankloop.simulation.provenance import machine, versions
from rankloop.whole_file import write_whole

if TYPE_CHECKING:
    import polars as pl

KEY = "rankloop"  # of the JSON among the metadata of the file


def provenance(of_runs: dict[str, Any]) -> dict[str, Any]:
    """What a file says about its making: what the runs know already, and the rest as it is here and now."""
    here = {
        "versions": versions(),
        "machine": machine(),
        "code": code_fingerprint(),
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return here | of_runs


def write(path: str | os.PathLike[str], frame: pl.DataFrame, told: dict[str, Any]) -> None:
    """Write a frame with what is told about it, entirely or not at all."""
    metadata = {KEY: json.dumps(told)}
    write_whole(Path(path), lambda part: frame.write_parquet(part, metadata=metadata))


def read(path: str | os.PathLike[str], *, kind: str) -> tuple[pl.DataFrame, dict[str, Any]]:
    """The frame, and what is told about it; ValueError where `kind` has not been saved there."""
    require("polars", extra="data", for_=f"reading a {kind}")
    import polars

    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(2, f"there is no saved {kind}", str(path))
    try:
        told = json.loads(polars.read_parquet_metadata(file)[KEY])
        if told["kind"] != kind:
            raise ValueError
        return polars.read_parquet(file), told
    except (KeyError, TypeError, ValueError, polars.exceptions.PolarsError):
        raise ValueError(f"path must be of a {kind} that rankloop saved, got {path}") from None
