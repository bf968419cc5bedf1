"""Ratings of jokes: one line per user, one column per joke, from -10 to 10."""

import math
from pathlib import Path

import numpy as np

from rankloop.data.ratings.ratings import Ratings
from rankloop.data.text_files import malformed, read_rows

SCALE = (-10.0, 10.0)
# The dataset's own mark for "not rated", beside a blank.
NOT_RATED = 99.0


def read_jester(path: Path) -> Ratings:
    """Read a Jester matrix; users and jokes are numbered from 1 in the order of the file.

    The published spreadsheets begin each line with the number of jokes rated; remove that column first.
    """
    values: list[list[float]] = []
    for line, cells in read_rows(path):
        expected = len(values[0]) if values else max(1, len(cells))
        if len(cells) != expected:
            malformed(path, line, f"expected {expected} ratings, found {len(cells)}")
        row = []
        for column, cell in enumerate(cells, start=1):
            rating = math.nan
            if cell and not cell.isspace():
                try:
                    rating = float(cell)
                except ValueError:
                    malformed(path, line, f"column {column} is not a number: {cell!r}")
                if rating == NOT_RATED:
                    rating = math.nan
                elif not SCALE[0] <= rating <= SCALE[1]:
                    malformed(path, line, f"column {column} is not a rating from -10 to 10: {cell!r}")
            row.append(rating)
        values.append(row)
    if not values:
        raise ValueError(f"{path}: no ratings in the file")
    matrix = np.array(values)
    return Ratings(
        values=matrix,
        user_ids=np.arange(1, matrix.shape[0] + 1),
        item_ids=np.arange(1, matrix.shape[1] + 1),
        scale=SCALE,
        name=path.name.removesuffix(".gz").removesuffix(".csv"),
    )
