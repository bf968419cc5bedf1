"""Columns of arrays as a frame of polars or pandas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rankloop.extras import MissingExtra, installed, require

if TYPE_CHECKING:
    import polars as pl


def polars_frame(columns: Mapping[str, Any]) -> pl.DataFrame:
    """The columns as a frame of polars; MissingExtra where that is not installed."""
    require("polars", extra="data", for_="a frame")
    import polars

    return polars.DataFrame(dict(columns))


def pandas_frame(columns: Mapping[str, Any]) -> Any:
    """The columns as a frame of pandas, which no extra brings; MissingExtra where it is not installed."""
    if not installed("pandas"):
        raise MissingExtra("to_pandas needs pandas: pip install pandas", name="pandas")
    import pandas

    return pandas.DataFrame(dict(columns))
