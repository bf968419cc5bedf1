"""LETOR data sets of one's own, which an experiment plays in the place of the known ones."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankloop import data
from rankloop.data import Dataset


@dataclass(frozen=True, slots=True)
class OwnData:
    """A data set as it is played, and where it came from."""

    name: str
    path: str
    digest: str
    queries: Dataset

    @property
    def key(self) -> str:
        """What jobs call it: with the digest, so that rows of other contents are never taken for its rows."""
        return f"{self.name}@{self.digest}"

    def __reduce__(self) -> Any:
        # Jobs find it by its key, in the process of a worker, too.
        return _remember, (self.name, self.path, self.digest, self.queries)

    def __str__(self) -> str:
        return f"{self.name} ({self.path}, {self.queries.n_queries:,} queries, SHA-256 {self.digest}...)"


KNOWN: dict[str, OwnData] = {}
"""Everything read by this process, by key; contents never change under a key."""


def read(name: str, path: str | Path) -> OwnData:
    """Read a file or a folder, remember it under its key, and refuse what no experiment can be played on."""
    if not Path(path).exists():
        raise ValueError(f"data set {name!r}: there is no file or folder {str(path)!r}")
    try:
        queries = data.read_letor(path, name=name).bounded()
    except (OSError, ValueError) as error:
        raise ValueError(f"data set {name!r}: {error}") from error
    return _remember(name, str(path), _digest(queries), queries)


def _remember(name: str, path: str, digest: str, queries: Dataset) -> OwnData:
    own = OwnData(name, path, digest, queries)
    return KNOWN.setdefault(own.key, own)


def _digest(queries: Dataset) -> str:
    """The first digits of the SHA-256 of grades and features, however the files were cut or compressed."""
    told = hashlib.sha256(repr((queries.features.shape, queries.max_grade)).encode())
    for numbers, kind in ((queries.offsets, "<i8"), (queries.relevance, "<f8"), (queries.features, "<f4")):
        told.update(np.ascontiguousarray(numbers, dtype=kind).tobytes())
    return told.hexdigest()[:12]
