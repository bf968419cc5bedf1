"""What errors of PostgreSQL mean to a store, and how its address may be shown."""

from __future__ import annotations

import re
from typing import Any

import asyncpg

from rankloop.serving.stores.errors import Diverged, Fenced, Missing, Stale, StoreError


class NewSegment(StoreError):
    """Rows were moved to a segment that this process does not know of yet; nothing was written."""


LOST = (
    OSError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # a connection that was cut in the middle of an answer
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.ObjectNotInPrerequisiteStateError,  # closed for maintenance
    asyncpg.InvalidCatalogNameError,  # renamed or dropped
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
    for start, kind in (
        ("epoch", Fenced),
        ("history", Diverged),
        ("moved", Missing),
        ("segments", NewSegment),
        ("stale", Stale),
    ):
        if text.startswith(start):
            return kind(text)
    return StoreError(text)
