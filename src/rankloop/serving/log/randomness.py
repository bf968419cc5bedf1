"""Randomness of the service: counter-based, and keyed by the ranker's seed and the decision's id.

The same decision from the same state gives the same list, on any replica and in any order.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Any

import numpy as np


def key_of(seed: int, decision_id: str) -> bytes:
    """128 bits for one decision.

    >>> key_of(1, "a") == key_of(1, "a"), key_of(1, "a") == key_of(2, "a")
    (True, False)
    """
    salt = (seed & (1 << 64) - 1).to_bytes(8, "little")
    return hashlib.blake2b(decision_id.encode(), digest_size=16, key=salt).digest()


def coin(key: bytes, purpose: bytes) -> float:
    """A number in [0, 1) that follows from a decision's key: one for each purpose, apart from what draws its list.

    >>> 0.0 <= coin(b"0123456789abcdef", b"baseline") < 1.0
    True
    """
    digest = hashlib.blake2b(key, digest_size=8, person=purpose).digest()
    return int.from_bytes(digest, "little") / (1 << 64)


_WORDS = struct.Struct("<QQ")


class Draws:
    """Makes generators from keys. The last one is overwritten by the next: to draw, not to keep."""

    def __init__(self) -> None:
        # Setting the key of one Philox takes a tenth of the time of making one, as long as numbers come in tuples:
        # NumPy reads them one by one.
        self._philox = np.random.Philox(key=0)
        self._generator = np.random.Generator(self._philox)
        self._key: dict[str, Any] = {"counter": (0,) * 4}
        self._state: Any = {**self._philox.state, "state": self._key, "buffer": (0,) * 4}

    def generator(self, key: bytes) -> np.random.Generator:
        """The generator of `key`: the same numbers as `np.random.Philox(key=...)` at counter 0.

        >>> draws = Draws()
        >>> first = draws.generator(b"0123456789abcdef").random()
        >>> draws.generator(b"fedcba9876543210").random() != first
        True
        >>> draws.generator(b"0123456789abcdef").random() == first
        True
        """
        self._key["key"] = _WORDS.unpack(key)
        self._philox.state = self._state
        return self._generator
