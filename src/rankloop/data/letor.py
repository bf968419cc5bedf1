"""The reader of learning-to-rank text: what it may be told, and published sets."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from rankloop.arguments import one_of, whole
from rankloop.data.dataset import Dataset, DType

# A float64 can hold more, but nothing that was measured is this large.
MARKER = 1e300


@dataclass(frozen=True, slots=True)
class Preset:
    """What all files of a published dataset have in common.

    Parameters
    ----------
    name : str
        What `read_letor(preset=...)` calls it.
    n_features : int
        Columns; ids go from 1 to this.
    max_grade : int
        The highest grade of the scale, whether or not a file has a document that good.
    in_comment : bool, optional
        The query id is the first word of the comment at the end of the line; there is no ``qid:``.
    marks : bool, optional
        The files write the largest float64 for "infinite". Such a value becomes the largest ordinary value, or
        negative the least, that its feature has in its query (0 where there is no ordinary one).
    """

    name: str
    n_features: int
    max_grade: int
    in_comment: bool = False
    marks: bool = False


PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset("yahoo", n_features=700, max_grade=4),
        Preset("yandex", n_features=245, max_grade=4, in_comment=True),
        Preset("mslr", n_features=136, max_grade=4),
        Preset("mq2007", n_features=46, max_grade=2),
        Preset("mq2008", n_features=46, max_grade=2),
        Preset("istella", n_features=220, max_grade=4, marks=True),
    )
}


def known_preset(preset: str | Preset) -> Preset:
    """The preset of that name; a preset of your own is returned as it is."""
    if isinstance(preset, Preset):
        return preset
    return PRESETS[one_of("preset", preset, PRESETS)]


class Options(NamedTuple):
    """Together with the text they determine a dataset, but for its name."""

    rescale: bool  # every feature from 0 to 1 within each query
    dtype: DType
    n_features: int | None  # None: as many as appear
    first_feature: int
    max_grade: int | None  # None: the highest that appears
    in_comment: bool  # the query is named in the comment
    marks: bool  # the largest magnitudes stand for infinity

    @property
    def highest_grade(self) -> float:
        """The largest number that a grade may be."""
        return sys.float_info.max if self.max_grade is None else self.max_grade

    @property
    def largest(self) -> float:
        """The largest magnitude that a feature may have: where it is not scaled, that of its type."""
        as_written = not self.rescale and not self.marks
        return float(np.finfo(self.dtype if as_written else np.float64).max)


def checked_options(
    *, normalize: str | None, dtype: DType, preset: Preset | None, n_features: int | None, first_feature: int
) -> Options:
    """Options from the arguments of `read_letor`."""
    if normalize not in ("query", None):
        raise ValueError(f"normalize must be 'query' or None, got {normalize!r}")
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype must be 'float32' or 'float64', got {dtype!r}")
    if first_feature not in (0, 1):
        raise ValueError(f"first_feature must be 0 or 1, got {first_feature!r}")
    if n_features is not None:
        whole("n_features", n_features, at_least=1)
    if n_features is None and preset is not None:
        n_features = preset.n_features
    return Options(
        rescale=normalize == "query",
        dtype=dtype,
        n_features=n_features,
        first_feature=first_feature,
        max_grade=None if preset is None else preset.max_grade,
        in_comment=preset is not None and preset.in_comment,
        marks=preset is not None and preset.marks,
    )


_ENDINGS = (".txt", ".txt.gz")


def read_letor(
    paths: str | Path | Iterable[str | Path],
    *,
    normalize: Literal["query"] | None = "query",
    dtype: DType = "float32",
    cache: bool | None = None,
    preset: str | Preset | None = None,
    n_features: int | None = None,
    first_feature: int = 1,
    name: str | None = None,
) -> Dataset:
    r"""Read queries and documents from SVMlight or LETOR text, plain, gzip or zstd.

    A line is a document: a grade, the query, features, and perhaps a comment, as in
    ``2 qid:10 1:0.5 7:3.25 # docid = GX-00``. Documents of a query need not be next to each other: they are gathered
    where the query first appears. Features may come in any order, and those that do not come are 0. Blank lines and
    lines with nothing but a comment are passed over. A query is any word, and the same word in two files is the same
    query.

    Parameters
    ----------
    paths : str, Path or iterable of str or Path
        A file, several, which are read as if they were one, or a folder, whose ``.txt`` and ``.txt.gz`` files
        are read in the order of their names.
    normalize : {"query"}, optional
        ``"query"``: every feature goes from 0 to 1 within each query, see `Dataset.normalised`, computed before
        anything is rounded to `dtype`. None leaves the values as they are.
    dtype : DType, optional
        Of the features.
    cache : bool, optional
        Ignored: text is read again each time.
    preset : str or Preset, optional
        A published dataset, which fixes the number of features, the scale of the grades and where the query
        stands: yahoo, yandex, mslr, mq2007, mq2008, istella, or a `Preset` of your own.
    n_features : int, optional
        Number of columns, when files may lack the last ones; goes before that of the preset. By default the
        largest id that appears.
    first_feature : int, optional
        The id of the first feature: 1, or 0 for files that count from 0.
    name : str, optional
        What to call the dataset; by default after the preset, the file, or the folder of the files.

    Raises
    ------
    ValueError
        For files without a document, and for a malformed line: no query, not a number, NaN, infinity, a negative
        grade or one outside the scale, a feature twice or outside the columns. It names the file and the line.

    Examples
    --------
    >>> import tempfile
    >>> from rankloop import data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "pets.txt"
    ...     _ = path.write_text("1 qid:cat 1:4 # docid = A\n0 qid:cat 1:2 2:1e3 # docid = B\n0 qid:dog 2:7\n")
    ...     pets = data.read_letor(path, normalize=None)
    >>> pets
    Dataset('pets': 2 queries, 3 documents, 2 features, grades up to 1)
    >>> pets.features
    array([[   4.,    0.],
           [   2., 1000.],
           [   0.,    7.]], dtype=float32)
    >>> pets.query_ids, pets.doc_ids
    (('cat', 'dog'), ('A', 'B', ''))
    """
    files = _files(paths)
    known = None if preset is None else known_preset(preset)
    options = checked_options(
        normalize=normalize, dtype=dtype, preset=known, n_features=n_features, first_feature=first_feature
    )
    if name is None:
        name = known.name if known else _name(paths, files)
    if cache is not None:
        said = "cache is ignored and will go: text is read again each time"
        warnings.warn(said, DeprecationWarning, stacklevel=2)
    # Imported only now: looking at presets needs no compiler.
    from rankloop.data.letor_documents import read_documents

    return read_documents(files, options, name=name)


def _files(paths: str | Path | Iterable[str | Path]) -> list[Path]:
    if isinstance(paths, str | Path):
        folder = Path(paths)
        if not folder.is_dir():
            return [folder]
        files = sorted(path for path in folder.iterdir() if path.name.endswith(_ENDINGS))
        if not files:
            raise FileNotFoundError(f"{folder}: no {' or '.join(_ENDINGS)} file in the folder")
        return files
    files = [Path(path) for path in paths]
    if not files:
        raise ValueError("paths must name at least one file, got none")
    return files


def _name(paths: str | Path | Iterable[str | Path], files: Sequence[Path]) -> str:
    path = files[0]
    if len(files) > 1 or (isinstance(paths, str | Path) and Path(paths) != path):
        path = path.resolve().parent
    return path.name.removesuffix(".gz").removesuffix(".txt")
