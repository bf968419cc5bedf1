"""What a request for a list asks: which items the ranker may choose from, for which positions, with which features."""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Container
from typing import Any, NamedTuple, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from rankloop.features import key_of
from rankloop.kernels.call_checks import within
from rankloop.serving.admission import Limits, RequestError, TooLarge, check_value
from rankloop.serving.api import Matrix, RankRequest
from rankloop.serving.log import records
from rankloop.serving.log.candidate_lists import Free, revealed
from rankloop.serving.log.fold import Fold
from rankloop.serving.log.guard_rails import bound_of, way_of
from rankloop.serving.log.records import ByReference, Packed, pack
from rankloop.serving.log.stored_features import StoredFeatures, by_reference, merged

Floats = NDArray[np.float32]
Whole = NDArray[np.int64]
_NAME_LENGTH = 256
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_LARGEST = np.float64(1e30)


class ReadRequest(NamedTuple):
    """A request for a list that was checked against its ranker.

    names: of the request's own list, pinned items at its end; None where the ranker has items of its own.
    features: a row for each of them that the ranker may choose. free: None where it may choose everything.
    digest: equal for requests that ask the same. baseline: the application's own items for the free positions.
    stored: how the log refers to features that are stored; it then has the names as well.
    reach: the next ones of its list, as many as may come up where displacements are bounded.
    query: the key of what was searched for.
    """

    names: list[str] | None
    features: NDArray[np.float32] | None
    free: Free | None
    digest: bytes
    baseline: NDArray[np.int64] | None = None
    stored: records.ByReference | None = None
    reach: NDArray[np.int64] | None = None
    query: int | None = None


_EVERYTHING = ReadRequest(None, None, None, b"\0")  # of a plain request; the digest as `_digest` has it


def read_request(fold: Fold, request: RankRequest, limits: Limits) -> ReadRequest:
    """Check a request for a list against the ranker that is to answer it."""
    if request.context is not None and request.subject is None:  # otherwise it was checked, and encrypted
        check_context(request.context, limits)
    bound = bound_of(fold.config.policy)
    if bound and request.baseline is None:
        raise RequestError(
            f"policy.displacement is {bound}: every request needs a baseline", field="baseline"
        )
    if fold.has_items and _is_plain(request):
        return _EVERYTHING
    if request.query is None and fold.ranker.takes_queries:
        raise RequestError(f"{fold.config.algorithm} needs the query, or what stands for it", field="query")
    query = None if request.query is None else key_of(request.query)
    asked = _read(fold, request, limits)._replace(query=query)
    way = way_of(fold.ranker, has_items=fold.has_items, whole=asked.free is None)
    if bound and way == "top" and asked.baseline is not None and len(asked.baseline) > bound + 1:
        top = _read(fold, _top_only(fold, request, asked, bound), limits)
        return top._replace(digest=asked.digest, query=query)
    return asked


def for_ranker(fold: Fold, asked: ReadRequest) -> Any:
    """What the ranker's `rank` takes: rows of features, with the names of query and items where it remembers them."""
    if not fold.ranker.takes_queries or asked.features is None:
        return asked.features
    return fold.ranker.as_request(asked.features, asked.query, _names(fold, asked)[: len(asked.features)])


def check_context(context: Any, limits: Limits) -> None:
    """Refuse a context that cannot be written, or is too large."""
    check_value(context, field="context")
    size = len(msgspec.json.encode(context))
    if size > limits.context_bytes:
        raise TooLarge(f"context must be at most {limits.context_bytes} bytes, got {size}", field="context")


def _read(fold: Fold, request: RankRequest, limits: Limits) -> ReadRequest:
    _check_pinned(request)
    if fold.has_items:
        for field in ("features", "shared"):
            if getattr(request, field) is not None:
                raise RequestError(f"{fold.config.algorithm} takes no features", field=field)
        free = _free_items(fold, request)
        baseline, reach = _baseline_items(fold, request, free)
        return ReadRequest(None, None, free, _digest(request, None), baseline, reach=reach)
    return _own_list(fold, request, limits)


def _top_only(fold: Fold, request: RankRequest, asked: ReadRequest, bound: int) -> RankRequest:
    """The same request, where all items of the baseline are pinned but the first `bound` + 1."""
    rows = _names(fold, asked)
    known = fold.catalogue if fold.has_items else rows
    names = [known[i] for i in ([] if asked.baseline is None else asked.baseline.tolist())]
    positions = range(len(names)) if asked.free is None else asked.free.positions.tolist()
    first = names[: bound + 1]
    pinned = request.pinned | dict(zip(positions[bound + 1 :], names[bound + 1 :], strict=True))
    there = {*first, *pinned.values()}
    return msgspec.structs.replace(
        request,
        items=first if fold.has_items else request.items,
        exclude=[*request.exclude, *(name for name in rows if name not in there)],
        n_positions=len(first) + len(pinned),
        pinned=pinned,
        baseline=first,
    )


def _names(fold: Fold, asked: ReadRequest) -> list[str]:
    """The names of the rows of features; none where the ranker takes none."""
    if asked.stored is None:
        return asked.names or []
    return [fold.stored.names[i] for i in np.frombuffer(asked.stored.items, "<i4")]


def _is_plain(request: RankRequest) -> bool:
    """Whether it asks for a list, and for nothing else."""
    return (
        request.items is None
        and request.features is None
        and request.context is None
        and request.n_positions is None
        and request.baseline is None
        and request.shared is None
        and request.query is None
        and not request.exclude
        and not request.pinned
    )


def _is_partial(request: RankRequest) -> bool:
    return bool(request.exclude or request.pinned) or request.n_positions is not None


def _check_pinned(request: RankRequest) -> None:
    _check_once(request.items or [], field="items")
    _check_once([*request.pinned.values()], field="pinned")
    for position, name in request.pinned.items():
        if position < 0:
            raise RequestError(f"pinned must have positions from 0 on, got {position}", field="pinned")
        if name in request.exclude:
            raise RequestError(f"pinned and exclude both name {name!r}", field="pinned")


def _check_once(names: list[str], *, field: str) -> None:
    if len(set(names)) != len(names):
        raise RequestError(f"{field} must not repeat an item", field=field)


def _free_items(fold: Fold, request: RankRequest) -> Free | None:
    if request.items is None and not _is_partial(request):
        return None
    own = fold.items
    names = own if request.items is None else request.items
    if not _is_partial(request) and sorted(names) == sorted(own):
        return None
    if fold.ranker.no_candidates:
        field = next(name for name in ("items", "exclude", "pinned", "n_positions") if getattr(request, name))
        raise RequestError(
            f"{fold.config.algorithm} ranks all its items, always: {fold.ranker.no_candidates}", field=field
        )
    known = set(own)
    for field, named in (("items", names), ("pinned", request.pinned.values())):
        for name in named:
            if name not in known:
                raise RequestError(f"{name!r:.300} is not an item of this ranker", field=field)
    gone = {*request.exclude, *request.pinned.values()}
    among = np.array([fold.number[name] for name in names if name not in gone], np.int64)
    most = fold.ranker.n_positions or len(own)
    if request.n_positions is not None and request.n_positions > most:
        raise RequestError(
            f"n_positions must be at most {most}, for which this ranker was created, got {request.n_positions}",
            field="n_positions",
        )
    pinned = {position: fold.number[name] for position, name in request.pinned.items()}
    return _checked(fold, request, Free(among, _positions(request, len(among), most), pinned), len(among))


def _positions(request: RankRequest, n_free: int, most: int) -> NDArray[np.int64]:
    """The positions that are not pinned, of a list as long as asked for, or as there are items."""
    length = min(request.n_positions or most, n_free + len(request.pinned))
    if not length:
        raise RequestError("no item is left to show", field="exclude" if request.exclude else "items")
    beyond = [position for position in request.pinned if position >= length]
    if beyond:
        raise RequestError(
            f"pinned must have positions below {length}, the length of this list, got {beyond[0]}",
            field="pinned",
        )
    return np.array([j for j in range(length) if j not in request.pinned], np.int64)


def _checked(fold: Fold, request: RankRequest, free: Free, n_rows: int) -> Free:
    n_free, ranker = len(free.positions), fold.ranker
    if not n_free:
        return free
    # A ranker whose requests bring a list, or that learns from relevance, orders all candidates, whatever is shown.
    n_ordered = n_free if free.among is not None and ranker.feedback.kind == "clicks" else n_rows
    needed = revealed(ranker, 0 if free.among is None else len(free.among), n_ordered)
    if needed > n_free:
        raise RequestError(
            f"{fold.config.algorithm} learns from the first {needed} of these items: n_positions and pinned leave "
            f"{n_free}",
            field="n_positions" if request.n_positions is not None else "pinned",
        )
    if ranker.stops_at_click and free.pinned and min(free.pinned) < int(free.positions[-1]):
        raise RequestError(
            f"{fold.config.algorithm} is for users who stop at the first click: pinned items must stand below the "
            "others",
            field="pinned",
        )
    return free


def _baseline_items(
    fold: Fold, request: RankRequest, free: Free | None
) -> tuple[NDArray[np.int64] | None, NDArray[np.int64] | None]:
    """Numbers of the baseline's items for the free positions, and of those that may come up from below them."""
    if request.baseline is None:
        return None, None
    names = fold.items if free is None or free.among is None else [fold.catalogue[i] for i in free.among]
    n_free = (fold.ranker.n_positions or len(names)) if free is None else len(free.positions)
    kept = [fold.number[name] for name in _baseline(request, names, n_free, fold.number)]
    reach = kept[n_free : n_free + bound_of(fold.config.policy)]
    return np.array(kept[:n_free], np.int64), np.array(reach, np.int64)


def _baseline(
    request: RankRequest, names: list[str], n_free: int, heard_of: Container[str] = ()
) -> list[str]:
    """The items of the application's own list that may be shown, at least one for each free position.

    Items that were heard of and may not be shown, such as retired ones, are passed over; other names are errors.
    """
    given = request.baseline or []
    _check_once(given, field="baseline")
    known = set(names)
    for name in given:
        left_out = name in request.exclude or name in request.pinned.values()
        if name not in known and not left_out and name not in heard_of:
            raise RequestError(f"{name!r} is not a candidate", field="baseline")
    kept = [name for name in given if name in known]
    if len(kept) < n_free:
        raise RequestError(
            f"baseline must have {n_free} items that may be shown, one for each free position, got {len(kept)}",
            field="baseline",
        )
    return kept


def _own_list(fold: Fold, request: RankRequest, limits: Limits) -> ReadRequest:
    rows = request_rows(fold, request, limits)
    names = rows.names
    digest = _digest(request, None if rows.given is None else records.pack(rows.given))
    if not _is_partial(request):
        features, stored = chosen_rows(fold, rows, None, [])
        baseline = _rows(fold, request, names, len(names))
        return ReadRequest(names if stored is None else None, features, None, digest, baseline, stored)
    gone = {*request.exclude, *request.pinned.values()}
    kept = [i for i, name in enumerate(names) if name not in gone]
    positions = _positions(request, len(kept), len(kept) + len(request.pinned))
    pinned = {position: len(kept) + i for i, position in enumerate(request.pinned)}
    free = _checked(fold, request, Free(None, positions, pinned), len(kept))
    own = [names[i] for i in kept] + list(request.pinned.values())
    baseline = _rows(fold, request, own[: len(kept)], len(positions))
    features, stored = chosen_rows(fold, rows, kept, list(request.pinned.values()))
    chosen = features if len(positions) else None
    return ReadRequest(own if stored is None else None, chosen, free, digest, baseline, stored)


def _rows(fold: Fold, request: RankRequest, names: list[str], n_free: int) -> NDArray[np.int64] | None:
    if request.baseline is None:
        return None
    row = {name: i for i, name in enumerate(names)}
    found = _baseline(request, names, n_free, fold.stored.known)
    return np.array([row[name] for name in found[:n_free]], np.int64)


def _digest(request: RankRequest, features: records.Packed | None) -> bytes:
    parts: list[Any] = [request.items, features, request.context]
    if _is_partial(request):
        parts += [request.exclude, request.n_positions, sorted(request.pinned.items())]
    if request.baseline is not None:
        parts += ["baseline", request.baseline]
    if request.shared is not None:
        parts += ["shared", request.shared]
    if request.query is not None:
        parts += ["query", request.query]
    if parts == [None, None, None]:
        return b"\0"
    return hashlib.blake2b(msgspec.msgpack.encode(parts, order="deterministic"), digest_size=16).digest()


# The features of the candidates: brought by the request, stored beforehand, or both.


class CandidateRows(NamedTuple):
    """The candidates of a request.

    names: of the items. given: the features that the request brought, a row for each item. numbers: of the items in
    the catalogue, None where everything is in the request. shared: numbers of the request as a whole.
    """

    names: list[str]
    given: Floats | None
    numbers: Whole | None = None
    shared: Floats | None = None


def read_matrix(given: list[list[float]] | Matrix, limits: Limits, *, field: str = "features") -> Floats:
    """CandidateRows of features, checked."""
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


def request_rows(fold: Fold, request: RankRequest, limits: Limits) -> CandidateRows:
    """The candidates of a request to a ranker with features."""
    n_features = fold.ranker.n_features
    given = None if request.features is None else read_matrix(request.features, limits)
    if n_features == 0 and given is None:
        if request.items is None:
            raise RequestError(f"{fold.config.algorithm} needs the names of the documents", field="items")
        given = np.empty((len(request.items), 0), np.float32)
    if given is not None and given.shape[1] == n_features and request.shared is None:
        names = [str(i) for i in range(len(given))] if request.items is None else request.items
        _check_length(given, names)
        _check_names(names)
        return CandidateRows(names, given)
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
        if not is_name(name):
            raise RequestError(
                f"items must be names of 1 to {_NAME_LENGTH} characters, none of them a control character, "
                f"got {name!r:.300}",
                field=f"items[{i}]",
            )


def is_name(text: str) -> bool:
    """Whether an item may be called so."""
    return 1 <= len(text) <= _NAME_LENGTH and not _CONTROL.search(text)


def _check_length(given: Floats, names: list[str]) -> None:
    if len(names) != len(given):
        raise RequestError(
            f"there are {len(given)} rows of features for {len(names)} items", field="features"
        )


def _stored_rows(fold: Fold, request: RankRequest, given: Floats | None) -> CandidateRows:
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
    return CandidateRows(names, given, np.array(numbers, np.int64), shared)


def known_numbers(catalogue: StoredFeatures, names: list[str], *, field: str) -> list[int]:
    """The numbers of items with stored features; RequestError where one has none."""
    numbers = catalogue.numbers(names)
    if None in numbers:
        raise RequestError(f"{names[numbers.index(None)]!r:.300} has no stored features", field=field)
    return cast("list[int]", numbers)


def chosen_rows(
    fold: Fold, rows: CandidateRows, kept: list[int] | None, pinned: list[str]
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
