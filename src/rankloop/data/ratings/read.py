"""Reads rating files of any known format."""

from collections.abc import Callable
from pathlib import Path

from rankloop.arguments import one_of
from rankloop.data.ratings.jester import read_jester
from rankloop.data.ratings.movielens import HEADER, read_movielens
from rankloop.data.ratings.ratings import Ratings
from rankloop.data.text_files import read_rows

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

    Returns
    -------
    Ratings
        The ratings, a row for each user.

    Raises
    ------
    ValueError
        For an empty file, and for a line that is malformed, outside the scale or given twice; it names the file
        and the line.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
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
