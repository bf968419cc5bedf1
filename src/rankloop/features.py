"""Reading rows of features, dense or sparse: what the kernels take, or a ValueError that says what is wrong."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import whole
from rankloop.kernels.sparse_rows import QueryRows, SparseRows

__all__ = [
    "LARGEST_FEATURE",
    "QueryRows",
    "SparseRows",
    "dense_rows",
    "is_sparse",
    "key_of",
    "query_rows",
    "read_features",
    "read_sparse",
    "sparse_rows",
]

LARGEST_FEATURE = np.float64(1e60)  # of more, a gradient's square may be infinite, and a score inf - inf


def read_features(context: Any, n_features: int | None = None, *, name: str = "context") -> NDArray[Any]:
    """The request `context` as rows of `n_features` features, one an item, of float32 or float64.

    ValueError, which calls it `name`, if it is anything else. None takes any number of features.
    """
    try:
        features = np.asarray(context)
    except ValueError:  # rows of different lengths
        features = np.asarray(None)
    if features.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be numbers, items x features, got {context!r}")
    if features.ndim != 2 or 0 in features.shape or n_features not in (features.shape[1], None):
        wanted = "any" if n_features is None else str(n_features)
        raise ValueError(
            f"{name} must be items x features ({wanted} of them), at least one of each, got shape {features.shape}"
        )
    if features.dtype not in (np.float32, np.float64):
        features = features.astype(np.float64)
    features = np.ascontiguousarray(features)
    if not (np.abs(features) <= LARGEST_FEATURE).all():
        row, column = np.argwhere(~(np.abs(features) <= LARGEST_FEATURE))[0]
        raise ValueError(
            f"{name} must be finite and at most {LARGEST_FEATURE:g}, "
            f"got {features[row, column]} at item {row}, feature {column}"
        )
    return features


def is_sparse(rows: Any) -> bool:
    """Whether `rows` of features are CSR: `SparseRows`, or a `scipy.sparse` array or matrix."""
    return isinstance(rows, SparseRows) or all(hasattr(rows, name) for name in ("tocsr", "format", "shape"))


def read_sparse(name: str, rows: Any, n_features: int | None = None) -> SparseRows:
    """Rows of features as CSR, checked: entries of float32 or float64, indices of int32 and `indptr`, from 0, of int64.

    All arrays are read-only, views or copies.

    Parameters
    ----------
    name : str
        The argument's name, for the error.
    rows : SparseRows or scipy.sparse.csr_array or scipy.sparse.csr_matrix
        The rows. A row without entries is a row of zeros, and zeros may be among the entries.
    n_features : int, optional
        How many features each row must have; by default any number.

    Raises
    ------
    ValueError
        Where lengths do not fit, indices are not rising within a row or beyond the features, or an entry is not finite.

    Examples
    --------
    >>> rows = read_sparse("context", SparseRows([3, 1, 2], [0, 1, 3], [0, 1, 3], (2, 4)))
    >>> rows.data, rows.indices
    (array([3., 1., 2.]), array([0, 1, 3], dtype=int32))
    """
    if getattr(rows, "format", "csr") != "csr":
        raise ValueError(f"{name} must be in CSR format, got {rows.format!r}: call its method tocsr")
    n, d = _shape(name, rows.shape, n_features)
    data = _one_axis(name, "data", rows.data, "biuf")
    indices, indptr = (_one_axis(name, part, getattr(rows, part), "iu") for part in ("indices", "indptr"))
    if len(indptr) != n + 1:
        raise ValueError(f"{name}.indptr must be {n + 1} numbers for {n} rows, got {len(indptr)}")
    if len(indices) != len(data):
        raise ValueError(
            f"{name}.indices must be {len(data)} numbers, one for each of data, got {len(indices)}"
        )
    if indptr[0] < 0 or indptr[-1] > len(data) or (np.diff(indptr) < 0).any():
        raise ValueError(f"{name}.indptr must rise, from 0 to at most the {len(data)} entries, got {indptr}")
    first, last = int(indptr[0]), int(indptr[-1])  # of a part of many rows, only its own entries
    data, indices, indptr = data[first:last], indices[first:last], indptr.astype(np.int64) - first
    if data.dtype not in (np.float32, np.float64):
        data = data.astype(np.float64)
    _check_entries(name, data, indices, indptr, d)
    return SparseRows(
        _frozen(data, data.dtype), _frozen(indices, np.int32), _frozen(indptr, np.int64), (n, d)
    )


def key_of(name: str | int, *, argument: str = "name") -> int:
    """The key that a query or document is remembered by: a whole number `name` is its own, a text is hashed.

    A hash has 63 bits. Two texts with the same one would be taken for the same, which among a million texts happens
    with a chance of 1 in 18 million. The number 7 and the text "7" are two different names. An error
    calls it `argument`.

    Examples
    --------
    >>> key_of(7), key_of("red shoes")
    (7, 6208880861533621621)
    """
    if isinstance(name, str):
        return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little") >> 1
    return whole(argument, name, at_least=0, at_most=2**63 - 1)


def query_rows(query: str | int, items: Sequence[str | int], features: ArrayLike | None = None) -> QueryRows:
    """A request for documents of a query, for a ranker that remembers both, such as `QueryMemory`.

    Parameters
    ----------
    query : str or int
        What was searched for. Spaces and capitals count: make equal what is to be the same query.
    items : sequence of str or int
        The name of each document.
    features : array_like, optional
        A row for each document; none for a ranker without features.

    Examples
    --------
    >>> request = query_rows("red shoes", ["sku-1", "sku-2"], [[0.3, 1.0], [0.8, 0.0]])
    >>> request.features.shape
    (2, 2)
    """
    keys = np.array([key_of(item, argument="items") for item in items], np.int64)
    rows = np.empty((len(keys), 0)) if features is None else np.asarray(features)
    if rows.shape[:1] != keys.shape:
        raise ValueError(f"features must have a row for each of {len(keys)} items, got shape {rows.shape}")
    return QueryRows(rows, keys, key_of(query, argument="query"))


def sparse_rows(features: NDArray[Any]) -> SparseRows:
    """Dense rows of `features` as CSR, without their zeros.

    Examples
    --------
    >>> sparse_rows(np.array([[0.0, 2.0], [0.0, 0.0]])).indptr
    array([0, 1, 1])
    """
    filled = features != 0
    indptr = np.concatenate([[0], np.cumsum(filled.sum(axis=1, dtype=np.int64))])
    indices = np.broadcast_to(np.arange(features.shape[1], dtype=np.int32), features.shape)[filled]
    return read_sparse("features", SparseRows(features[filled], indices, indptr, features.shape))


def dense_rows(rows: SparseRows) -> NDArray[Any]:
    """CSR with its zeros: `rows` as `read_sparse` returns them."""
    dense = np.zeros(rows.shape, rows.data.dtype)
    dense[np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr)), rows.indices] = rows.data
    return dense


def _shape(name: str, shape: Any, n_features: int | None) -> tuple[int, int]:
    if not isinstance(shape, tuple) or len(shape) != 2:
        raise ValueError(f"{name}.shape must be rows x features, got {shape!r}")
    n = whole(f"{name}.shape[0]", shape[0], at_least=1)
    d = whole(f"{name}.shape[1]", shape[1], at_least=1, at_most=2**31 - 1)
    if n_features not in (d, None):
        raise ValueError(f"{name} must have {n_features} features, got shape {shape}")
    return n, d


def _one_axis(name: str, part: str, values: Any, kinds: str) -> NDArray[Any]:
    array = np.asarray(values)
    if array.size == 0 and array.ndim == 1:
        return array.astype(np.float64 if "f" in kinds else np.int64)
    if array.ndim != 1 or array.dtype.kind not in kinds:
        wanted = "numbers" if "f" in kinds else "whole numbers"
        raise ValueError(f"{name}.{part} must be a list of {wanted}, got {array.dtype}{array.shape}")
    return array


def _check_entries(
    name: str, data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[np.int64], d: int
) -> None:
    good = np.abs(data) <= LARGEST_FEATURE  # false for NaN, too
    if not good.all():
        entry = int(np.argmin(good))
        raise ValueError(
            f"{name}.data must be finite and at most {LARGEST_FEATURE:g}, got {data[entry]} as entry {entry}"
        )
    inside = (indices >= 0) & (indices < d)
    if not inside.all():
        entry = int(np.argmin(inside))
        raise ValueError(f"{name}.indices must be from 0 to {d - 1}, got {indices[entry]} as entry {entry}")
    rising = np.diff(indices.astype(np.int64)) > 0
    starts = indptr[1:-1]
    rising[starts[(starts > 0) & (starts < len(indices))] - 1] = True  # where the next row begins
    if not rising.all():
        entry = int(np.argmin(rising)) + 1
        row = int(np.searchsorted(indptr, entry, "right")) - 1
        what = "twice" if indices[entry] == indices[entry - 1] else f"after {indices[entry - 1]}"
        raise ValueError(f"{name}.indices must rise within a row, got {indices[entry]} {what} in row {row}")


def _frozen(values: NDArray[Any], dtype: Any) -> NDArray[Any]:
    # A view, so that freezing it does not freeze what the caller still holds.
    array = np.ascontiguousarray(values, dtype=dtype).view()
    array.setflags(write=False)
    return array
