"""Rating matrices: Jester, MovieLens, and the relevance grades derived from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rankloop.arguments import one_of, whole
from rankloop.data.text import malformed, read_rows

Missing = Literal["drop", "zero", "item-mean"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Ratings:
    """A frozen matrix of ratings, users by items.

    Parameters
    ----------
    values : ndarray of float
        Ratings, one row per user and one column per item; NaN where the user did not rate the item.
    user_ids, item_ids : ndarray of int
        The names the source gives them, as integers, all different.
    scale : tuple of float
        The lowest and the highest rating a user could give, whether or not anyone did.
    name : str
        What to call the dataset in a figure.
    item_names : tuple of str, optional
        Titles, where the source has them.

    Examples
    --------
    >>> import numpy as np
    >>> from rankloop.data import Ratings
    >>> ratings = Ratings(
    ...     values=np.array([[4.0, -2.0, np.nan], [1.0, 3.0, -7.0]]),
    ...     user_ids=np.array([1, 2]),
    ...     item_ids=np.array([10, 11, 12]),
    ...     scale=(-10.0, 10.0),
    ...     name="two friends",
    ... )
    >>> ratings
    Ratings('two friends': 2 users x 3 items, 5 ratings, scale -10 to 10)
    >>> ratings.relevance(missing="zero")
    array([[1, 0, 0],
           [1, 1, 0]])
    >>> ratings.most_rated(2).item_ids
    array([10, 11])
    """

    values: NDArray[np.float64]
    user_ids: NDArray[np.int64]
    item_ids: NDArray[np.int64]
    scale: tuple[float, float]
    name: str
    item_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        # Copies, so that freezing them does not freeze what the caller still works on.
        for field, dtype in (("values", np.float64), ("user_ids", np.int64), ("item_ids", np.int64)):
            array = np.array(getattr(self, field), dtype=dtype)
            array.setflags(write=False)
            object.__setattr__(self, field, array)
        if self.values.ndim != 2 or self.values.size == 0:
            raise ValueError(
                f"values must be a non-empty users x items matrix, got shape {self.values.shape}"
            )
        for field, ids, count in (
            ("user_ids", self.user_ids, self.n_users),
            ("item_ids", self.item_ids, self.n_items),
        ):
            if ids.shape != (count,) or len(np.unique(ids)) != count:
                raise ValueError(f"{field} must be {count} different integers, got {ids}")
        if self.item_names is not None and len(self.item_names) != self.n_items:
            raise ValueError(f"item_names must be {self.n_items} names, got {len(self.item_names)}")
        low, high = self.scale
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise ValueError(f"scale must be two finite numbers in increasing order, got {self.scale}")
        outside = (self.values < low) | (self.values > high)
        if outside.any():
            raise ValueError(
                f"values must lie on the scale {low:g} to {high:g}, got {self.values[outside][0]}"
            )

    @property
    def n_users(self) -> int:
        """Number of rows."""
        return int(self.values.shape[0])

    @property
    def n_items(self) -> int:
        """Number of columns."""
        return int(self.values.shape[1])

    def __repr__(self) -> str:
        low, high = self.scale
        n_ratings = np.count_nonzero(~np.isnan(self.values))
        size = f"{self.n_users:,} users x {self.n_items:,} items, {n_ratings:,} ratings"
        return f"Ratings({self.name!r}: {size}, scale {low:g} to {high:g})"

    def most_rated(self, n_items: int, *, complete: bool = True) -> Ratings:
        """Only the `n_items` items that most users rated, and only the users who rated all of those (`complete`).

        Items keep the order they have here, so that an item's index says nothing about how popular it is. Of
        items rated equally often, the one with the smaller id goes in first. `complete=False` keeps every
        user.
        """
        n_items = whole("n_items", n_items, at_least=1, at_most=self.n_items)
        n_ratings = np.count_nonzero(~np.isnan(self.values), axis=0)
        items = np.sort(np.lexsort((self.item_ids, -n_ratings))[:n_items])
        users = np.arange(self.n_users)
        if complete:
            users = users[~np.isnan(self.values[:, items]).any(axis=1)]
            if len(users) == 0:
                raise ValueError(f"n_items is too many: no user rated all of the {n_items} most-rated items")
        return Ratings(
            values=self.values[np.ix_(users, items)],
            user_ids=self.user_ids[users],
            item_ids=self.item_ids[items],
            scale=self.scale,
            name=self.name,
            item_names=None if self.item_names is None else tuple(self.item_names[item] for item in items),
        )

    def relevance(
        self,
        *,
        grades: int = 1,
        threshold: float | None = None,
        missing: Missing = "drop",
        shuffle_seed: int | None = None,
    ) -> NDArray[np.int64]:
        """Relevance grades 0 to `grades`, one row per user: a matrix that can be played, each user one round.

        A rating's grade is the number of cuts it lies strictly above. The cuts divide the scale into
        `grades` + 1 equal parts, so that binary relevance (`grades=1`) means "above the middle of the scale",
        which for Jester is "found it funny". The middle belongs to the scale, not to the user: cutting at a
        user's own mean would remove the difference between generous and harsh users, but a grade would then depend on
        which other items happened to be rated.

        Parameters
        ----------
        grades : int, optional
            The highest grade; 1 is binary.
        threshold : float, optional
            Where to cut the scale instead of in the middle; only for binary relevance.
        missing : Missing, optional
            ``"drop"`` leaves out users who did not rate everything: every grade is one that a user gave, but the
            remaining users are the most active ones. ``"zero"`` takes what was not rated as irrelevant: every user
            stays, but the grades are biased, the more so the more rarely an item was rated. ``"item-mean"``
            fills in the item's mean rating before grading: every user stays, but users look more alike than
            they are.
        shuffle_seed : int, optional
            Shuffles the order of the users; None keeps it.
        """
        grades = whole("grades", grades, at_least=1)
        low, high = self.scale
        cuts = low + (high - low) * np.arange(1, grades + 1) / (grades + 1)
        if threshold is not None:
            if grades != 1:
                raise ValueError(
                    f"threshold cuts into two grades, got threshold={threshold} with grades={grades}"
                )
            if not low <= threshold < high:
                raise ValueError(
                    f"threshold must lie on the scale, {low:g} <= threshold < {high:g}, got {threshold}"
                )
            cuts = np.array([threshold])
        values = self._filled(missing)
        # "left" counts the cuts strictly below a rating; what is still missing was asked to be zero.
        relevance = np.where(np.isnan(values), 0, np.searchsorted(cuts, values, side="left")).astype(np.int64)
        if shuffle_seed is not None:
            np.random.default_rng(shuffle_seed).shuffle(relevance, axis=0)
        return relevance

    def _filled(self, missing: Missing) -> NDArray[np.float64]:
        blank = np.isnan(self.values)
        if missing == "zero":
            return self.values
        if missing == "drop":
            complete = ~blank.any(axis=1)
            if not complete.any():
                raise ValueError("missing='drop' leaves no user: none rated every item; see most_rated")
            return self.values[complete]
        if missing == "item-mean":
            n_ratings = np.count_nonzero(~blank, axis=0)
            if not n_ratings.all():
                unrated = self.item_ids[np.argmin(n_ratings)]
                raise ValueError(f"missing='item-mean' has no mean for item {unrated}: no user rated it")
            means = np.where(blank, 0.0, self.values).sum(axis=0) / n_ratings
            return np.where(blank, means, self.values)
        raise ValueError(f"missing must be one of {', '.join(get_args(Missing))}, got {missing!r}")


# Ratings of jokes: one line per user, one column per joke, from -10 to 10.
JESTER_SCALE = (-10.0, 10.0)
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
                elif not JESTER_SCALE[0] <= rating <= JESTER_SCALE[1]:
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
        scale=JESTER_SCALE,
        name=path.name.removesuffix(".gz").removesuffix(".csv"),
    )


# Ratings of films: one line per rating, half a star to five stars, with titles in a separate file.
MOVIELENS_SCALE = (0.5, 5.0)
HEADER = ["userId", "movieId", "rating"]
MOVIES_HEADER = ["movieId", "title"]


def table(folder: Path, stem: str) -> Path | None:
    """The file ``stem.csv`` or ``stem.csv.gz`` of a folder, the plain one first."""
    both = (folder / f"{stem}.csv", folder / f"{stem}.csv.gz")
    return next((path for path in both if path.is_file()), None)


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
        if not MOVIELENS_SCALE[0] <= rating <= MOVIELENS_SCALE[1]:
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
        scale=MOVIELENS_SCALE,
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


FORMATS: dict[str, Callable[[Path], Ratings]] = {"jester": read_jester, "movielens": read_movielens}


def read_ratings(path: str | Path, *, format: str | None = None) -> Ratings:  # noqa: A002
    r"""Read a rating matrix from a file, plain or gzip.

    Parameters
    ----------
    path : str or Path
        A Jester CSV file, or MovieLens' ``ratings.csv`` or the folder that holds it, with titles from a
        ``movies.csv`` beside it, if there is one. Each of them may also be gzip, ``.csv.gz``.
    format : str, optional
        ``"jester"`` or ``"movielens"``; by default recognised by the first line: MovieLens has a header, Jester none.

    Raises
    ------
    ValueError
        For an empty file, and for a line that is malformed, outside the scale or given twice; it names the file
        and the line.

    Examples
    --------
    >>> import tempfile
    >>> from rankloop import data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "jokes.csv"
    ...     _ = path.write_text("4.5,-2,99\n1,,-7.25\n")
    ...     data.read_ratings(path).values
    array([[ 4.5 , -2.  ,   nan],
           [ 1.  ,   nan, -7.25]])
    """
    path = Path(path)
    known = _detected(path) if format is None else format
    return FORMATS[one_of("format", known, FORMATS)](path)


def _detected(path: Path) -> str:
    if path.is_dir():
        return "movielens"
    _, first = next(read_rows(path), (1, []))
    return "movielens" if first[: len(HEADER)] == HEADER else "jester"
