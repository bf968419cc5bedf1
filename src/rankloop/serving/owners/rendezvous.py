"""Rendezvous hashing: every replica computes the same order for a ranker, and only what a lost one had moves."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def by_preference(ranker: str, replicas: Iterable[str]) -> list[str]:
    """The replicas in the order in which they are to serve a ranker: the owner, the standby, and so on.

    Examples
    --------
    >>> by_preference("unwind", ["a", "b", "c"])
    ['c', 'b', 'a']
    >>> by_preference("unwind", ["c", "a"])
    ['c', 'a']
    """
    return sorted(replicas, key=lambda replica: _weight(replica, ranker), reverse=True)


def _weight(replica: str, ranker: str) -> bytes:
    return hashlib.blake2b(f"{replica}\0{ranker}".encode(), digest_size=8).digest()
