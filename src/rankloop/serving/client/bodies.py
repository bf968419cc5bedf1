"""The bodies of requests: JSON, with features as packed float32."""

from __future__ import annotations

import array
import base64
import json
import math
import sys
from collections.abc import Sequence
from typing import Any, Protocol


class SupportsArray(Protocol):
    """An array of NumPy, or anything that NumPy can read: tensors, data frames."""

    def __array__(self) -> Any: ...


def saved_array(value: SupportsArray) -> dict[str, Any]:
    """An array of a ranker's state as little-endian bytes."""
    given = value.__array__()
    plain = given.astype(given.dtype.newbyteorder("<"))
    data = base64.b64encode(plain.tobytes()).decode()
    return {"dtype": plain.dtype.str, "shape": list(plain.shape), "data": data}


def json_bytes(body: object) -> bytes:
    """The body of a request; ValueError with the field where a number in it is not finite."""
    try:
        return _written(body)
    except ValueError:
        for part in body if isinstance(body, list) else [body]:
            _check_finite(part)
        raise


def _written(body: object) -> bytes:
    return json.dumps(body, allow_nan=False, separators=(",", ":"), default=_plain).encode()


def _check_finite(part: object) -> None:
    for name, value in part.items() if isinstance(part, dict) else ():
        try:
            _written(value)
        except ValueError:
            raise ValueError(f"{name} must be finite, got {value!r:.60}") from None


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):  # arrays and numbers of NumPy
        return value.tolist()
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"JSON cannot hold {value!r:.60}, a {type(value).__name__}")


def packed(features: Sequence[Sequence[float]] | SupportsArray | None) -> dict[str, Any] | None:
    """Features as packed float32; ValueError where they are no matrix of finite numbers."""
    if features is None:
        return None
    values = array.array("f")
    if hasattr(features, "__array__"):
        matrix = features.__array__().astype("f4")  # NumPy's own, which need not be imported for it
        shape = tuple(matrix.shape)
        values.frombytes(matrix.tobytes())
    else:
        rows = [list(row) for row in features]
        shape = (len(rows), *{len(row) for row in rows})
        for row in rows:
            values.extend(row)
    if len(shape) != 2:
        raise ValueError(f"features must be items x features, with rows of one length; got {shape}")
    if not all(map(math.isfinite, values)):
        raise ValueError("features must be finite numbers of float32")
    if sys.byteorder == "big":
        values.byteswap()
    return {"shape": shape, "data": base64.b64encode(values.tobytes()).decode()}
