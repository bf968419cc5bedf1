"""What errors of PostgreSQL mean to a store, and how its address may be shown."""

from __future__ import annotations

import re
from typing import Any

import asyncpg

from rankloop.serving.stores.contract import Diverged, Fenced, StoreError

LOST = (
    OSError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # a connection that was cut in the middle of an answer
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
)


def without_password(url: str) -> str:
    """The URL as it may be shown.

    >>> without_password("postgresql://me:secret@host/name")
    'postgresql://me@host/name'
    """
    return re.sub(r"://([^:/@]*):.*@", r"://\1@", url)


def meaning(error: Any) -> StoreError:
    """The error that a function of the database raised in words."""
    text = str(error)
    for start, kind in (("epoch", Fenced), ("history", Diverged)):
        if text.startswith(start):
            return kind(text)
    return StoreError(text)
