"""Ratings of films: one line per rating, half a star to five stars, with titles in a separate file."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from rankloop.data.ratings.ratings import Ratings
from rankloop.data.text_files import malformed, read_rows

SCALE = (0.5, 5.0)
HEADER = ["userId", "movieId", "rating"]
MOVIES_HEADER = ["movieId", "title"]


def table(folder: Path, stem: str) -> Path | None:
    """The file ``stem.csv`` or ``stem.csv.gz`` of a folder, the plain one first."""
    for path in (folder / f"{stem}.csv", folder / f"{stem}.csv.gz"):
        if path.is_file():
            return path
    return None


def read_movielens(path: Path) -> Ratings:
    """Read ``ratings.csv``, or the one in the folder given; users and rated films come by increasing id.

    The matrix is dense, 8 bytes for each user and film: 49 MB for the small MovieLens, too much for the
    largest.
    """
    if path.is_dir():
        inside = table(path, "ratings")
        if inside is None:
            raise FileNotFoundError(f"{path}: no ratings.csv or ratings.csv.gz in the folder")
        path = inside
    ratings: dict[tuple[int, int], float] = {}
    for line, cells in _body(path, header=HEADER):
        user, item = _id(path, line, cells[0]), _id(path, line, cells[1])
        try:
            rating = float(cells[2])
        except ValueError:
            malformed(path, line, f"rating is not a number: {cells[2]!r}")
        if not SCALE[0] <= rating <= SCALE[1]:
            malformed(path, line, f"rating is not from 0.5 to 5: {cells[2]!r}")
        if (user, item) in ratings:
            malformed(path, line, f"user {user} rates film {item} a second time")
        ratings[user, item] = rating
    if not ratings:
        raise ValueError(f"{path}: no ratings in the file")
    pairs = np.array(list(ratings), dtype=np.int64)
    user_ids, users = np.unique(pairs[:, 0], return_inverse=True)
    item_ids, items = np.unique(pairs[:, 1], return_inverse=True)
    values = np.full((len(user_ids), len(item_ids)), np.nan)
    values[users, items] = list(ratings.values())
    movies = table(path.parent, "movies")
    return Ratings(
        values=values,
        user_ids=user_ids,
        item_ids=item_ids,
        scale=SCALE,
        name=path.resolve().parent.name,
        item_names=None if movies is None else _titles(movies, item_ids.tolist()),
    )


def _titles(path: Path, item_ids: list[int]) -> tuple[str, ...]:
    titles: dict[int, str] = {}
    for line, cells in _body(path, header=MOVIES_HEADER):
        item = _id(path, line, cells[0])
        if item in titles:
            malformed(path, line, f"film {item} is listed a second time")
        titles[item] = cells[1]
    untitled = [item for item in item_ids if item not in titles]
    if untitled:
        raise ValueError(f"{path}: no title for film {untitled[0]}, which was rated")
    return tuple(titles[item] for item in item_ids)


def _body(path: Path, *, header: list[str]) -> Iterator[tuple[int, list[str]]]:
    """The rows under a header line that begins with `header`, each as long as the header line."""
    rows = read_rows(path)
    line, first = next(rows, (1, []))
    if first[: len(header)] != header:
        malformed(path, line, f"expected a header line {','.join(header)},..., found {','.join(first)!r}")
    for line, cells in rows:
        if len(cells) != len(first):
            malformed(path, line, f"expected {len(first)} cells, found {len(cells)}")
        yield line, cells


def _id(path: Path, line: int, cell: str) -> int:
    # Digits only: int() would also take "1_0" and " 7"; 18 of them always fit 64 bits.
    if not (cell.isascii() and cell.isdigit() and len(cell) <= 18):
        malformed(path, line, f"id is not a whole number: {cell!r}")
    return int(cell)
