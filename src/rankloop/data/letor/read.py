"""The reader of learning-to-rank text."""

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from rankloop.data.dataset import Dataset, DType
from rankloop.data.letor import cache as letor_cache
from rankloop.data.letor import options as letor_options
from rankloop.data.letor import presets

_ENDINGS = (".txt", ".txt.gz")


def read_letor(
    paths: str | Path | Iterable[str | Path],
    *,
    normalize: Literal["query"] | None = "query",
    dtype: DType = "float32",
    cache: bool = True,
    preset: str | presets.Preset | None = None,
    n_features: int | None = None,
    first_feature: int = 1,
    name: str | None = None,
) -> Dataset:
    r"""Read queries and documents from SVMlight or LETOR text, plain or gzip.

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
        Keep the result in binary, in the folder that the environment variable ``RANKLOOP_CACHE`` names or else
        the user's cache folder, and take it from there when the files have not changed.
    preset : str or presets.Preset, optional
        A published dataset, which fixes the number of features, the scale of the grades and where the query
        stands: yahoo, yandex, mslr, mq2007, mq2008, istella, or a `Preset` of your own.
    n_features : int, optional
        Number of columns, when files may lack the last ones; goes before that of the preset. By default the
        largest id that appears.
    first_feature : int, optional
        The id of the first feature: 1, or 0 for files that count from 0.
    name : str, optional
        What to call the dataset; by default after the preset, the file, or the folder of the files.

    Returns
    -------
    Dataset
        The queries, with features and relevance.

    Raises
    ------
    ValueError
        For files without a document, and for a malformed line: no query, not a number, NaN, infinity, a negative
        grade or one outside the scale, a feature twice or outside the columns. It names the file and the line.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankloop import data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "pets.txt"
    ...     _ = path.write_text("1 qid:cat 1:4 # docid = A\n0 qid:cat 1:2 2:1e3 # docid = B\n0 qid:dog 2:7\n")
    ...     pets = data.read_letor(path, normalize=None, cache=False)
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
    known = None if preset is None else presets.get(preset)
    options = letor_options.checked(
        normalize=normalize, dtype=dtype, preset=known, n_features=n_features, first_feature=first_feature
    )
    if name is None:
        name = known.name if known else _name(paths, files)
    if not cache:
        return _read(files, options, name)
    place, sources = letor_cache.place(files, options), letor_cache.state(files)
    dataset = letor_cache.load(place, sources)
    if dataset is not None:
        return dataclasses.replace(dataset, name=name)
    dataset = _read(files, options, name)
    if (
        letor_cache.state(files) == sources
    ):  # else what was read may be half of the old file and half of the new
        letor_cache.save(place, dataset, sources)
    return dataset


def _read(files: Sequence[Path], options: letor_options.Options, name: str) -> Dataset:
    # Imported only now: a cached dataset needs no compiler.
    from rankloop.data.letor import assemble

    return assemble.read(files, options, name=name)


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
