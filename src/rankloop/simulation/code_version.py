"""A fingerprint of the code that computes, stored with every result that may be used again."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
# What cannot change a number. Experiments are among it because they carry a version of their own, but not the
# rankers that some of them bring along.
_SHOWING = {
    "__init__.py",
    "__main__.py",
    "advice",
    "checks",
    "claims",
    "cli",
    "experiments",
    "plotting",
    "serving",
}


@cache
def code_fingerprint() -> str:
    """A hash over the source of everything that computes.

    Stored with each job's rows: rows made by other code are made again instead of being resumed, so that a
    changed ranker is never evaluated on the results of the old one.
    """
    digest = hashlib.sha256()
    for source in sorted(_PACKAGE.rglob("*.py")):
        inside = source.relative_to(_PACKAGE)
        if "__pycache__" in inside.parts:  # compiled loops are written there as they are needed
            continue
        if inside.parts[0] not in _SHOWING or "rankers" in inside.parts:
            digest.update(inside.as_posix().encode())
            digest.update(source.read_bytes())
    return digest.hexdigest()[:16]
