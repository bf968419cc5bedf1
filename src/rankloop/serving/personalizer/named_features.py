"""Features that are given as JSON, by name, turned into rows of numbers of one length.

A linear ranker compares the actions of one request, so what is the same for all of them tells nothing. Every feature of
an action therefore counts alone, and together with each feature of the context. Names are hashed into columns.
"""

from __future__ import annotations

import functools
import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankloop.serving.errors import RequestError, TooLarge

Named = list[tuple[str, float]]

_LARGEST = 1e30
_MOST_PRODUCTS = 1_000_000  # of one request
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def read_features(given: Any, *, field: str) -> Named:
    """Names and values of all features in a JSON value, in its order.

    A number is the value of its name. A text or a truth value is a name of its own, with the value 1. Lists and objects
    are walked through; names that begin with an underscore, and null, are left out.

    Examples
    --------
    >>> read_features([{"taste": "salty", "price": 3.5}, {"tags": ["new", "hot"], "_note": "x"}], field="features")
    [('taste=salty', 1.0), ('price', 3.5), ('tags=new', 1.0), ('tags=hot', 1.0)]
    """
    found: Named = []
    _walk(given, "", found, field)
    return found


def _walk(given: Any, name: str, found: Named, field: str) -> None:
    if isinstance(given, dict):
        for key, value in given.items():
            if not key.startswith("_"):
                _walk(value, f"{name}.{key}" if name else key, found, field)
    elif isinstance(given, list):
        for i, value in enumerate(given):
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            _walk(value, f"{name}[{i}]" if is_number else name, found, field)
    elif isinstance(given, bool | str):
        found.append((f"{name}={str(given).lower() if isinstance(given, bool) else given}", 1.0))
    elif given is not None:
        if not -_LARGEST <= given <= _LARGEST:
            raise RequestError(f"{name} must be at most {_LARGEST:g}, got {given}", field=field)
        found.append((name, float(given)))


def to_rows(actions: list[Named], context: Named, *, n_features: int) -> NDArray[np.float32]:
    """A row for each action: the sum of its features, alone and together with those of the context, of length 1.

    Examples
    --------
    >>> rows = to_rows([[("taste=salty", 1.0)], [("taste=sweet", 1.0)]], [("hour=8", 1.0)], n_features=64)
    >>> rows.shape, (rows != 0).sum(axis=1).tolist()
    ((2, 64), [2, 2])
    """
    products = sum(len(action) for action in actions) * (1 + len(context))
    if products > _MOST_PRODUCTS:
        raise TooLarge(
            f"features of actions times features of the context must be at most {_MOST_PRODUCTS:,}, got {products:,}",
            field="contextFeatures",
        )
    given = np.array([0, *(_hash(name) for name, _ in context)], np.uint64)
    values = np.array([1.0, *(value for _, value in context)])
    rows = np.zeros((len(actions), n_features))
    for row, action in zip(rows, actions, strict=True):
        own = np.array([_hash(name) for name, _ in action], np.uint64)
        together = _mixed(own[:, None] + given[None, :] * _STEP)
        worth = np.multiply.outer(np.array([value for _, value in action]), values)
        sign = 1.0 - 2.0 * (together & np.uint64(1)).astype(np.float64)
        column = (together >> np.uint64(32)) % np.uint64(n_features)
        np.add.at(row, column.astype(np.int64).ravel(), (worth * sign).ravel())
    size = np.abs(rows).max(axis=1, initial=0.0, keepdims=True)
    np.divide(rows, size, out=rows, where=size > 0)  # first, so that no square overflows
    length = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
    np.divide(rows, length, out=rows, where=length > 0)
    return rows.astype(np.float32)


@functools.lru_cache(maxsize=65_536)
def _hash(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def _mixed(number: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Every bit of the answer depends on every bit of the number: the last step of SplitMix64."""
    number = (number ^ (number >> np.uint64(30))) * _FIRST
    number = (number ^ (number >> np.uint64(27))) * _SECOND
    return number ^ (number >> np.uint64(31))
