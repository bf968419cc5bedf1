"""Click logs of one's own, whose users are played in the place of the Yandex log's."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankloop import data, logs
from rankloop.experiments.pbm_2022.setting import N_ITEMS, N_POSITIONS
from rankloop.feedback import ClickLog

MOST_QUERIES = 2


@dataclass(frozen=True, slots=True)
class Users:
    """The users of one query, as estimated from the log."""

    source: str
    attraction: NDArray[np.float64]
    examination: NDArray[np.float64]
    told: str

    def __reduce__(self) -> Any:
        # Jobs find them by their source, in the process of a worker, too.
        return _remember, (self.source, self.attraction, self.examination, self.told)


@dataclass(frozen=True, slots=True)
class OwnLog:
    """A log, the users of its queries that are played, and why other queries were left out."""

    name: str
    path: str
    users: tuple[Users, ...]
    left_out: tuple[str, ...]

    def __str__(self) -> str:
        told = "; ".join(one.told for one in self.users)
        out = f"; left out: {', '.join(self.left_out)}" if self.left_out else ""
        return f"{self.name} ({self.path}), {told}{out}"


KNOWN: dict[str, Users] = {}
"""Everything read by this process, by source; contents never change under one."""


def read(name: str, path: str | Path) -> OwnLog:
    """Count a log, and estimate the users of the queries that have enough items, those with most impressions first."""
    try:
        log = data.read_clicks(path, name=name)
    except (OSError, ValueError) as error:
        raise ValueError(f"data set {name!r}: {error}") from error
    keep = log.positions < N_POSITIONS
    pairs = np.unique(np.stack((log.queries[keep], log.items[keep])), axis=1)
    n_items = np.bincount(pairs[0], minlength=len(log.query_ids))
    impressions = np.bincount(log.queries[keep], log.shown[keep], minlength=len(log.query_ids))
    enough = [int(q) for q in np.argsort(-impressions, kind="stable") if n_items[q] >= N_ITEMS]
    users: list[Users] = []
    left_out: list[str] = []
    for q in enough:
        query = log.query_ids[q]
        try:
            users.append(_estimate(name, log.select(query=query, top=N_ITEMS, positions=N_POSITIONS), query))
        except ValueError as error:
            left_out.append(f"query {query!r}, {error}")
        if len(users) == MOST_QUERIES:
            break
    if not users:
        why = left_out[0] if left_out else f"the most items of a query are {n_items.max(initial=0)}"
        raise ValueError(
            f"data set {name!r}: no query of {path} has {N_ITEMS} items with known clicks on {N_POSITIONS} positions;"
            f" {why}"
        )
    return OwnLog(name, str(path), tuple(users), tuple(left_out))


def _remember(
    source: str, attraction: NDArray[np.float64], examination: NDArray[np.float64], told: str
) -> Users:
    return KNOWN.setdefault(source, Users(source, attraction, examination, told))


def _estimate(name: str, log: ClickLog, query: str) -> Users:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", logs.ClickModelWarning)
        found = logs.fit_pbm(log)
    if log.n_positions < N_POSITIONS or not np.isfinite(found.examination).all():
        raise ValueError(f"nothing was shown at some of {N_POSITIONS} positions")
    apart = [sentence for sentence in found.warnings if "cannot be compared" in sentence]
    if apart or not found.converged:
        raise ValueError(apart[0] if apart else "the fit did not converge")
    called = f"{name}, {query}" if query else name
    attraction, examination = (
        ", ".join(f"{value:.3f}" for value in values) for values in (found.attraction, found.examination)
    )
    told = (
        f"{f'query {query!r}' if query else 'the whole log'}: {log.shown.sum():,} impressions and"
        f" {log.clicked.sum():,} clicks of {N_ITEMS} items, attraction {attraction}; examination {examination}"
    )
    return _remember(f"{called}@{_digest(log)}", found.attraction, found.examination, told)


def _digest(log: ClickLog) -> str:
    """The first digits of the SHA-256 of the counts, however the log was written."""
    told = hashlib.sha256(repr((log.query_ids, log.item_ids)).encode())
    for numbers in (log.items, log.positions, log.shown, log.clicked):
        told.update(np.ascontiguousarray(numbers, dtype="<i8").tobytes())
    return told.hexdigest()[:12]
