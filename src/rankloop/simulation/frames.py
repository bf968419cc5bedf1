"""Columns of arrays as a frame of polars or pandas."""

from __future__ import annotations

import abc
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


class Framed(abc.ABC):
    """What has columns of recorded rounds, and gives them as a frame."""

    @abc.abstractmethod
    def columns(self) -> dict[str, Any]:
        """The columns, by name."""

    def to_polars(self) -> pl.DataFrame:
        """Every recorded round as a frame of polars, a row for each.

        Returns
        -------
        polars.DataFrame
            The columns that `columns` gives.

        Raises
        ------
        MissingExtra
            Where polars is not installed.
        """
        return polars_frame(self.columns())

    def to_pandas(self) -> Any:
        """Every recorded round as a frame of pandas, a row for each.

        Returns
        -------
        pandas.DataFrame
            The columns that `columns` gives.

        Raises
        ------
        MissingExtra
            Where pandas is not installed.
        """
        return pandas_frame(self.columns())
