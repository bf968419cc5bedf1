"""The reader of learning-to-rank text: what it may be told, and datasets that were read before."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import mmap
import os
import struct
import sys
import tempfile
import time
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
    cache: bool = True,
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
        Keep the result in binary, in the folder that the environment variable ``RANKLOOP_CACHE`` names or else
        the user's cache folder, and take it from there when the files have not changed.
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
    known = None if preset is None else known_preset(preset)
    options = checked_options(
        normalize=normalize, dtype=dtype, preset=known, n_features=n_features, first_feature=first_feature
    )
    if name is None:
        name = known.name if known else _name(paths, files)
    if not cache:
        return _read(files, options, name)
    place, sources = cache_place(files, options), source_state(files)
    dataset = load_cached(place, sources)
    if dataset is not None:
        return dataclasses.replace(dataset, name=name)
    dataset = _read(files, options, name)
    if source_state(files) == sources:  # else what was read may be half of the old file and half of the new
        save_cached(place, dataset, sources)
    return dataset


def _read(files: Sequence[Path], options: Options, name: str) -> Dataset:
    # Imported only now: a cached dataset needs no compiler.
    from rankloop.data import letor_documents

    return letor_documents.read_documents(files, options, name=name)


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


# Datasets that were read before, in binary, in a folder of the user's, because reading text is much slower.
#
# One file per dataset: a header that says what lies where and from which sources it came, then the arrays, which are
# mapped into memory rather than read. A file that fails its check is ignored.
CACHE_VARIABLE = "RANKLOOP_CACHE"
VERSION = 1  # to be raised whenever the layout, or what the reader makes of a text, changes
_MAGIC = b"rankloop letor\n\0"
_PREFIX = struct.Struct("<16sQQ")  # magic, length and checksum of the header
_ALIGNMENT = 64
# A file changed this shortly ago may change again and keep both its size and its time, which some systems count in
# steps of two seconds.
_SETTLED = 2.0


def cache_folder() -> Path:
    """Where the cache lies: ``RANKLOOP_CACHE``, or the folder that the system has for such things."""
    named = os.environ.get(CACHE_VARIABLE, "")
    if named:
        return Path(named).expanduser().absolute()
    if sys.platform == "win32":
        start = os.environ.get("LOCALAPPDATA", "") or "~/AppData/Local"
    elif sys.platform == "darwin":
        start = "~/Library/Caches"
    else:
        start = os.environ.get("XDG_CACHE_HOME", "") or "~/.cache"
    return Path(start).expanduser().absolute() / "rankloop"


def source_state(paths: Sequence[Path]) -> list[list[int]]:
    """Size and time of each file: while these stay, so does what was read from them."""
    return [[status.st_size, status.st_mtime_ns] for status in map(os.stat, paths)]


def cache_place(paths: Sequence[Path], options: object) -> Path:
    """The file for what `options` make of `paths`; changed sources overwrite it, so that none pile up."""
    said = json.dumps([VERSION, sys.byteorder, [str(path.resolve()) for path in paths], options])
    return cache_folder() / f"letor-{hashlib.sha256(said.encode()).hexdigest()[:32]}.bin"


def load_cached(path: Path, sources: list[list[int]]) -> Dataset | None:
    """The dataset kept at `path`, or None when there is none, it is damaged, or the sources have changed since."""
    try:
        with path.open("rb") as file:
            kept = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        magic, length, checksum = _PREFIX.unpack(kept[: _PREFIX.size])
        said, body = kept[_PREFIX.size :][:length], kept[_PREFIX.size + length :]
        if magic != _MAGIC or zlib.crc32(said) != checksum:
            return None
        header = json.loads(bytes(said))
        if (
            header["sources"] != sources
            or len(body) != header["size"]
            or zlib.crc32(body) != header["checksum"]
        ):
            return None
        parts = {
            name: np.frombuffer(body[begin : begin + n_bytes], dtype).reshape(shape)
            for name, (dtype, shape, begin, n_bytes) in header["parts"].items()
        }
        return Dataset(
            features=parts["features"],
            relevance=parts["relevance"],
            offsets=parts["offsets"],
            query_ids=_split(parts["query_ids"]),
            name=header["name"],
            max_grade=header["max_grade"],
            comments=_split(parts["comments"]) if "comments" in parts else None,
        )
    except (OSError, ValueError, KeyError, TypeError, struct.error):
        return None


def save_cached(path: Path, dataset: Dataset, sources: list[list[int]]) -> bool:
    """Store a dataset, entirely or not at all, and return whether it was; a full or read-only disk does not raise."""
    if time.time() - max(changed for _, changed in sources) / 1e9 < _SETTLED:
        return False
    parts: dict[str, NDArray[Any]] = {
        "features": dataset.features,
        "relevance": dataset.relevance,
        "offsets": dataset.offsets,
        "query_ids": _joined(dataset.query_ids),
    }
    if dataset.comments is not None:
        parts["comments"] = _joined(dataset.comments)
    where: dict[str, list[object]] = {}
    pieces: list[memoryview] = []
    size = checksum = 0
    for name, part in parts.items():
        where[name] = [part.dtype.str, part.shape, size, part.nbytes]
        for piece in (part.data.cast("B"), memoryview(bytes(-part.nbytes % _ALIGNMENT))):
            pieces.append(piece)
            size += len(piece)
            checksum = zlib.crc32(piece, checksum)
    said = json.dumps(
        {
            "sources": sources,
            "name": dataset.name,
            "max_grade": dataset.max_grade,
            "parts": where,
            "size": size,
            "checksum": checksum,
        }
    ).encode()
    said += b" " * (-(_PREFIX.size + len(said)) % _ALIGNMENT)
    return _written(path, [_PREFIX.pack(_MAGIC, len(said), zlib.crc32(said)), said, *pieces])


def _written(path: Path, pieces: Sequence[bytes | memoryview]) -> bool:
    # Written beside and moved there in one step: a reader sees the old file or the new one, never half of one.
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix="new-", delete=False) as file:
            try:
                file.writelines(pieces)
                file.close()
                Path(file.name).replace(path)
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise
    except OSError:
        return False
    return True


def _joined(texts: Sequence[str]) -> NDArray[np.uint8]:
    # None of them has a newline: they came from lines.
    return np.frombuffer("\n".join(texts).encode(), np.uint8)


def _split(joined: NDArray[np.uint8]) -> tuple[str, ...]:
    return tuple(joined.tobytes().decode().split("\n"))
