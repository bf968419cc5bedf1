"""The features that a request for a list is answered with: its own, or stored ones that it may add to."""

from __future__ import annotations

import re
import struct
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.call_checks import within
from rankloop.serving.admission import Limits
from rankloop.serving.api import Matrix, RankRequest
from rankloop.serving.errors import RequestError, TooLarge
from rankloop.serving.log.fold import Fold
from rankloop.serving.log.records import ByReference, Packed, pack
from rankloop.serving.log.stored_features import StoredFeatures, by_reference, merged

Floats = NDArray[np.float32]
Whole = NDArray[np.int64]
_NAME_LENGTH = 256
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_LARGEST = np.float64(1e30)


class Rows(NamedTuple):
    """The candidates of a request.

    names: of the items. given: the features that the request brought, a row for each item. numbers: of the items in
    the catalogue, None where everything is in the request. shared: numbers of the request as a whole.
    """

    names: list[str]
    given: Floats | None
    numbers: Whole | None = None
    shared: Floats | None = None


def read_matrix(given: list[list[float]] | Matrix, limits: Limits, *, field: str = "features") -> Floats:
    """Rows of features, checked."""
    if isinstance(given, Matrix):
        n, d = given.shape
        if n < 1 or d < 1 or len(given.data) != 4 * n * d:
            raise RequestError(
                f"{field}.data must be {n} x {d} float32, got {len(given.data)} bytes", field=field
            )
        features = np.frombuffer(given.data, "<f4").reshape(n, d).astype(np.float32)
    else:
        features = _from_lists(given, field)
    if features.shape[0] > limits.items or features.shape[1] > limits.features:
        raise TooLarge(
            f"{field} must be at most {limits.items} x {limits.features}, got {features.shape}", field=field
        )
    _check_finite(features, field)
    return features


def _from_lists(given: list[list[float]], field: str) -> Floats:
    if not given or not given[0]:
        raise RequestError(f"{field} must be rows of one length, at least one of each", field=field)
    pack_row = struct.Struct(f"={len(given[0])}f").pack  # less than half the time of an array of lists
    try:
        packed = b"".join([pack_row(*row) for row in given])
    except struct.error:
        raise RequestError(f"{field} must be rows of one length, at least one of each", field=field) from None
    except OverflowError:
        raise RequestError(f"{field} must be finite, and at most 1e30", field=field) from None
    return np.frombuffer(packed, np.float32).reshape(len(given), -1)


def packed_matrix(given: list[list[float]] | Matrix | None, limits: Limits) -> Packed | None:
    """Features to store, checked, as the log has them; None where there are none."""
    return None if given is None else pack(read_matrix(given, limits))


def _check_finite(features: Floats, field: str) -> None:
    if not within(features.ravel(), -_LARGEST, _LARGEST):
        row, column = np.argwhere(~(np.abs(features) <= _LARGEST))[0].tolist()
        raise RequestError(
            f"{field} must be finite, and at most 1e30, got {features[row, column]} in row {row}, column {column}",
            field=field,
        )


def request_rows(fold: Fold, request: RankRequest, limits: Limits) -> Rows:
    """The candidates of a request to a ranker with features."""
    n_features = fold.ranker.n_features
    given = None if request.features is None else read_matrix(request.features, limits)
    if given is not None and given.shape[1] == n_features and request.shared is None:
        names = [str(i) for i in range(len(given))] if request.items is None else request.items
        _check_length(given, names)
        _check_names(names)
        return Rows(names, given)
    if not fold.stored.n_columns:
        if given is not None:
            raise RequestError(
                f"features must have {n_features} columns, got {given.shape[1]}", field="features"
            )
        field = "features" if request.shared is None else "shared"
        raise RequestError(
            f"{fold.config.algorithm} needs features, of each item with the request or stored beforehand",
            field=field,
        )
    return _stored_rows(fold, request, given)


def _check_names(names: list[str]) -> None:
    """Names that are written into the log as they are; others must be known, and were checked when they came."""
    lengths = list(map(len, names))
    if lengths and min(lengths) >= 1 and max(lengths) <= _NAME_LENGTH and not _CONTROL.search("".join(names)):
        return
    for i, name in enumerate(names):
        if not 1 <= len(name) <= _NAME_LENGTH or _CONTROL.search(name):
            raise RequestError(
                f"items must be names of 1 to {_NAME_LENGTH} characters, none of them a control character, "
                f"got {name!r:.300}",
                field=f"items[{i}]",
            )


def _check_length(given: Floats, names: list[str]) -> None:
    if len(names) != len(given):
        raise RequestError(
            f"there are {len(given)} rows of features for {len(names)} items", field="features"
        )


def _stored_rows(fold: Fold, request: RankRequest, given: Floats | None) -> Rows:
    catalogue, n_features = fold.stored, fold.ranker.n_features
    if request.items is None:
        names, numbers = list(catalogue.present), list(catalogue.present.values())
        if not names:
            raise RequestError("no item is left to show: all are retired", field="items")
    else:
        names = request.items
        numbers = known_numbers(catalogue, names, field="items")
    if given is not None:
        _check_length(given, names)
    shared = None if request.shared is None else np.array(request.shared, np.float32)
    n_added, n_shared = 0 if given is None else given.shape[1], 0 if shared is None else len(shared)
    if shared is not None:
        _check_finite(shared.reshape(1, -1), "shared")
    total = catalogue.n_columns * (1 + n_shared) + n_added
    if total != n_features:
        field = "features" if n_added else "shared" if n_shared else "items"
        raise RequestError(
            f"stored features ({catalogue.n_columns}), features of the request ({n_added}) and products with shared "
            f"({n_shared} x {catalogue.n_columns}) must be {n_features} columns together, got {total}",
            field=field,
        )
    return Rows(names, given, np.array(numbers, np.int64), shared)


def known_numbers(catalogue: StoredFeatures, names: list[str], *, field: str) -> list[int]:
    """The numbers of items with stored features; RequestError where one has none."""
    numbers = catalogue.numbers(names)
    if None in numbers:
        raise RequestError(f"{names[numbers.index(None)]!r} has no stored features", field=field)
    return cast("list[int]", numbers)


def chosen_rows(
    fold: Fold, rows: Rows, kept: list[int] | None, pinned: list[str]
) -> tuple[Floats, ByReference | None]:
    """The features of the candidates at the places `kept`, and how the log refers to them."""
    given = rows.given if kept is None or rows.given is None else rows.given[kept]
    if rows.numbers is None:
        return given if given is not None else np.empty((0, 0), np.float32), None
    numbers = rows.numbers if kept is None else rows.numbers[kept]
    features = merged(fold.stored.vectors(numbers), given, rows.shared)
    if rows.shared is not None:
        _check_finite(features, "shared")
    if pinned:
        numbers = np.concatenate([numbers, known_numbers(fold.stored, pinned, field="pinned")])
    return features, by_reference(numbers, given, rows.shared)
