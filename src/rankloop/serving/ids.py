"""Identifiers of decisions and events."""

from __future__ import annotations

import itertools
import secrets
import time

_PROCESS = secrets.token_hex(6)
_count = itertools.count()


def new_id() -> str:
    """Return an identifier that no other process makes and that sorts by time, so that an index grows at its end.

    >>> new_id() < new_id()
    True
    """
    return f"{time.time_ns() // 1_000_000:012x}-{_PROCESS}-{next(_count):08x}"
