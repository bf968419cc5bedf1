"""Queries, their documents, and the relevance of each document; and where real data lies."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import number, whole
from rankloop.features import SparseRows, sparse_rows

# The folder of real data: beside the project, never inside it.
VARIABLE = "RANKLOOP_DATA"
DEFAULT = Path("..", "shared", "data")


class DataMissing(FileNotFoundError):
    """A real dataset is not on this machine; the message is one line, fit for a test's skip reason."""


def folder() -> Path:
    """The folder of the real data, whether or not it exists.

    The environment variable ``RANKLOOP_DATA`` names it. Unset or empty, it is ``../shared/data`` seen from
    the project's checkout when the package runs from one, else from the working directory.
    """
    named = os.environ.get(VARIABLE, "")
    if named:
        return Path(named).expanduser().absolute()
    # src/rankloop/data/ lies three levels below a checkout; installed, there is no pyproject.toml up there.
    checkout = Path(__file__).resolve().parents[3]
    start = checkout if (checkout / "pyproject.toml").is_file() else Path.cwd()
    return Path(os.path.normpath(start / DEFAULT))


def find(relative: str | Path) -> Path:
    """The path of `relative`, a file or folder below that of the real data, such as ``"ratings/ml-latest-small"``.

    Raises
    ------
    DataMissing
        When it is not there; the message says what is missing, where it was looked for, and what to set.
    """
    if Path(relative).is_absolute():
        raise ValueError(f"relative must be a path inside the data folder, got {str(relative)!r}")
    start = folder()
    path = start / relative
    if not path.exists():
        raise DataMissing(
            f"real data missing: no {Path(relative).as_posix()} in {start};"
            f" set {VARIABLE} to the folder that holds it"
        )
    return path


Features = NDArray[np.float32] | NDArray[np.float64]
DType = Literal["float32", "float64"]

_DOC_ID = re.compile(r"\bdocid\s*=\s*(\S+)")
_ROWS = 1 << 14  # how many rows a temporary array may have


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Dataset:
    """A frozen learning-to-rank dataset: documents by query, in the order of the source within each.

    The features exist once: they are not copied here, `query` gives views, and only what changes or reorders them
    makes new ones. All arrays are read-only; an array that was passed in must not be changed afterwards.

    Parameters
    ----------
    features : Features
        One row per document, float32 or float64, all finite.
    relevance : ndarray of float
        One grade per document, from 0 to `max_grade`; fractions are allowed.
    offsets : ndarray of int
        Query i has the documents from ``offsets[i]`` up to, not including, ``offsets[i + 1]``; at least one.
    query_ids : tuple of str
        The names the source gives the queries, all different.
    name : str
        What to call the dataset in a figure.
    max_grade : int
        The highest grade a document could have, whether or not one does.
    comments : tuple of str, optional
        The source's comment on each document, if it has any.

    Examples
    --------
    >>> from rankloop import data
    >>> queries = data.Dataset(
    ...     features=[[3.0, 5.0], [1.0, 5.0], [0.5, 0.25]],
    ...     relevance=[2, 0, 1],
    ...     offsets=[0, 2, 3],
    ...     query_ids=("jaguar", "python"),
    ...     name="two queries",
    ...     max_grade=2,
    ... )
    >>> queries
    Dataset('two queries': 2 queries, 3 documents, 2 features, grades up to 2)
    >>> features, relevance = queries.query(0)
    >>> relevance
    array([2., 0.])
    >>> queries.normalised("query").features
    array([[1., 0.],
           [0., 0.],
           [0., 0.]])
    """

    features: Features
    relevance: NDArray[np.float64]
    offsets: NDArray[np.int64]
    query_ids: tuple[str, ...]
    name: str
    max_grade: int
    comments: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        values = np.asarray(self.features)
        features = _frozen(values, np.float32 if values.dtype == np.float32 else np.float64)
        relevance, offsets = _frozen(self.relevance, np.float64), _frozen(self.offsets, np.int64)
        for field, array in (("features", features), ("relevance", relevance), ("offsets", offsets)):
            object.__setattr__(self, field, array)
        if features.ndim != 2 or features.size == 0:
            raise ValueError(
                f"features must be a non-empty documents x features matrix, got shape {features.shape}"
            )
        # NaN comes through min and max, and neither makes an array as large as the features.
        if not (np.isfinite(features.min()) and np.isfinite(features.max())):
            raise ValueError("features must be finite, got NaN or infinity")
        if relevance.shape != (len(features),):
            raise ValueError(f"relevance must be {len(features)} grades, got shape {relevance.shape}")
        whole("max_grade", self.max_grade, at_least=1)
        outside = ~((relevance >= 0) & (relevance <= self.max_grade))
        if outside.any():
            raise ValueError(f"relevance must be from 0 to {self.max_grade}, got {relevance[outside][0]}")
        if offsets.ndim != 1 or len(offsets) < 2 or (offsets[0], offsets[-1]) != (0, len(features)):
            raise ValueError(f"offsets must go from 0 to {len(features)}, got {offsets}")
        if (np.diff(offsets) < 1).any():
            raise ValueError(f"offsets must rise, every query has a document, got {offsets}")
        if len(self.query_ids) != self.n_queries or len(set(self.query_ids)) != self.n_queries:
            raise ValueError(
                f"query_ids must be {self.n_queries} different names, got {len(set(self.query_ids))}"
            )
        if self.comments is not None and len(self.comments) != len(features):
            raise ValueError(f"comments must be {len(features)}, one a document, got {len(self.comments)}")

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.offsets) - 1

    @property
    def n_documents(self) -> int:
        """Number of rows, over all queries."""
        return int(self.features.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.features.shape[1])

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of documents of each query."""
        return np.diff(self.offsets)

    @property
    def doc_ids(self) -> tuple[str, ...] | None:
        """The names that LETOR gives the documents, in comments like ``docid = GX008-86``; None when no comment does.

        A document without one has the empty string.
        """
        matches = [_DOC_ID.search(comment) for comment in self.comments or ()]
        return tuple(match[1] if match else "" for match in matches) if any(matches) else None

    def __repr__(self) -> str:
        size = f"{self.n_queries:,} queries, {self.n_documents:,} documents, {self.n_features:,} features"
        return f"Dataset({self.name!r}: {size}, grades up to {self.max_grade})"

    def query(self, i: int) -> tuple[Features, NDArray[np.float64]]:
        """Features and relevance of query `i`, counting from 0: views, not copies."""
        if not 0 <= i < self.n_queries:
            raise ValueError(f"i must be from 0 to {self.n_queries - 1}, got {i}")
        documents = slice(self.offsets[i], self.offsets[i + 1])
        return self.features[documents], self.relevance[documents]

    def select(self, queries: Iterable[int] | NDArray[Any]) -> Dataset:
        """Only these `queries`, by number and in this order; neighbours share the features of this dataset."""
        chosen = np.asarray(list(queries))
        if chosen.ndim != 1 or len(chosen) == 0 or not np.issubdtype(chosen.dtype, np.integer):
            raise ValueError(f"queries must be a non-empty list of indices, got {queries!r}")
        outside = (chosen < 0) | (chosen >= self.n_queries)
        if outside.any():
            raise ValueError(f"queries must be from 0 to {self.n_queries - 1}, got {chosen[outside][0]}")
        if len(np.unique(chosen)) != len(chosen):
            raise ValueError("queries must be different, got one twice")
        begins, lengths = self.offsets[chosen], self.lengths[chosen]
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        documents = np.repeat(begins - offsets[:-1], lengths) + np.arange(offsets[-1])
        neighbours = bool((np.diff(chosen) == 1).all())
        rows = slice(int(documents[0]), int(documents[-1]) + 1) if neighbours else documents
        comments = self.comments
        return replace(
            self,
            features=self.features[rows],
            relevance=self.relevance[rows],
            offsets=offsets,
            query_ids=tuple(self.query_ids[query] for query in chosen.tolist()),
            comments=None if comments is None else tuple(comments[row] for row in documents.tolist()),
        )

    def split(self, *, train: float = 0.8, seed: int = 0) -> tuple[Dataset, Dataset]:
        """Two datasets that share no query and together have all: the share `train` of the queries, and the rest.

        Which query goes where is drawn by `seed`, the order of the queries stays. Both keep this dataset's `max_grade`.
        Scale with `bounded` before, not after: each part would be divided by a number of its own.
        """
        number("train", train, above=0, below=1)
        if self.n_queries < 2:
            raise ValueError(f"train needs two queries to split, {self.name!r} has {self.n_queries}")
        n_train = min(max(round(train * self.n_queries), 1), self.n_queries - 1)
        shuffled = np.random.default_rng(seed).permutation(self.n_queries)
        return self.select(np.sort(shuffled[:n_train])), self.select(np.sort(shuffled[n_train:]))

    def normalised(self, by: Literal["query"] = "query") -> Dataset:
        """Every feature moved and stretched so that within each query (`by`) it goes from 0 to 1.

        A ranking compares documents of one query only, so only the differences of a feature within a query matter;
        raw values of different features and queries differ by orders of magnitude, and one learning rate fits all
        only when they do not. A feature that is the same for all documents of a query carries no information on their
        order and becomes 0: it then moves neither scores nor weights.
        """
        if by != "query":
            raise ValueError(f"by must be 'query', got {by!r}")
        from rankloop.kernels import text

        queries = np.repeat(np.arange(self.n_queries), self.lengths)
        least = np.full((self.n_queries, self.n_features), np.inf)
        most, out = -least, np.empty_like(self.features)
        text.bounds(self.features, queries, np.inf, least, most)
        text.place(self.features, queries, np.arange(len(queries)), least, most, True, out)
        return replace(self, features=out)

    def bounded(self, *, norm: float = 1.0) -> Dataset:
        """All rows divided by one number, so that the longest has the Euclidean length `norm` and none is longer.

        Regret bounds and step sizes are stated for rows of length at most 1. One number for all keeps the order that
        any linear ranker gives.
        """
        number("norm", norm, above=0)
        largest = max(float(self.features.max()), -float(self.features.min()))
        if largest == 0.0:
            return self
        pieces = [slice(begin, begin + _ROWS) for begin in range(0, self.n_documents, _ROWS)]
        longest = 0.0
        for piece in pieces:
            # Divided by the largest entry first, because its square may be infinite.
            rows = self.features[piece].astype(np.float64) / largest
            longest = max(longest, float(np.einsum("ij,ij->i", rows, rows).max()))
        # Slightly shorter: rounding the entries must not make the longest row longer than `norm`.
        scale = norm * (1.0 - 2.0 * float(np.finfo(self.features.dtype).eps)) / np.sqrt(longest)
        out = np.empty_like(self.features)
        for piece in pieces:
            out[piece] = self.features[piece].astype(np.float64) / largest * scale
        return replace(self, features=out)

    def with_dtype(self, dtype: DType) -> Dataset:
        """The same with features of this `dtype`: float32 takes half the memory, and the kernels take either."""
        if dtype not in ("float32", "float64"):
            raise ValueError(f"dtype must be 'float32' or 'float64', got {dtype!r}")
        return self if self.features.dtype == dtype else replace(self, features=self.features.astype(dtype))

    def sparse(self) -> SparseDataset:
        """The same queries with the zeros left out of the features, for `environments.QueryStream`.

        Scale, select and split before: this is the last step.
        """
        return SparseDataset(
            features=sparse_rows(self.features),
            relevance=self.relevance,
            offsets=self.offsets,
            query_ids=self.query_ids,
            name=self.name,
            max_grade=self.max_grade,
        )


def _frozen(values: ArrayLike, dtype: type[np.generic]) -> NDArray[Any]:
    # A view, so that freezing it does not freeze what the caller still holds.
    array = np.ascontiguousarray(values, dtype=dtype).view()
    array.setflags(write=False)
    return array


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class SparseDataset:
    """A learning-to-rank dataset without the zeros of its features; `Dataset.sparse` makes it.

    Parameters
    ----------
    features : SparseRows
        One row per document.
    relevance, offsets, query_ids, name, max_grade : object
        As of a `Dataset`.

    Examples
    --------
    >>> from rankloop import data
    >>> cats = {"relevance": [2, 0], "offsets": [0, 2], "query_ids": ("jaguar",), "name": "cats", "max_grade": 2}
    >>> data.Dataset(features=[[3.0, 0.0], [0.0, 0.0]], **cats).sparse()
    SparseDataset('cats': 1 queries, 2 documents, 2 features, 25% of the entries)
    """

    features: SparseRows
    relevance: NDArray[np.float64]
    offsets: NDArray[np.int64]
    query_ids: tuple[str, ...]
    name: str
    max_grade: int

    def __repr__(self) -> str:
        n, d = self.features.shape
        share = len(self.features.data) / (n * d)
        size = (
            f"{len(self.offsets) - 1:,} queries, {n:,} documents, {d:,} features, {share:.0%} of the entries"
        )
        return f"SparseDataset({self.name!r}: {size})"
