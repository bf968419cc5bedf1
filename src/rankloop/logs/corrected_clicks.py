"""Clicks corrected for the positions that they were made at, so that they average to attractions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankloop.arguments import number, numbers, one_of, shares
from rankloop.feedback import LoggedLists, Sessions

Numbers = NDArray[np.float64]

METHODS = ("ips", "doubly-robust")


@dataclass(frozen=True, slots=True)
class CorrectedClicks:
    """For each item (or, in lists with features, each shown candidate) its features and its corrected clicks.

    `total / times` estimates the attraction. `bias` is the most by which clipping may have moved it, on average over
    impressions.
    """

    x: Numbers
    times: Numbers
    total: Numbers
    bias: float

    @property
    def rates(self) -> Numbers:
        """Corrected click rates; not a number for an item never shown."""
        unknown = np.full(len(self.x), np.nan)
        rates: Numbers = np.divide(self.total, self.times, out=unknown, where=self.times > 0)
        return rates


def corrected_clicks(
    log: Sessions | LoggedLists, *, examination: Any, features: Any, method: str, clip: float
) -> CorrectedClicks:
    """Read the arguments, and divide clicks by the chance of a look, at most by as much as `clip` says.

    With ``"doubly-robust"`` a guess at the attraction, from the other half of the rows, stands in for what is cut off.
    """
    one_of("method", method, METHODS)
    number("clip", clip, at_least=1)
    beta = shares("examination", examination, length=log.n_positions, positive=True)
    w = np.minimum(1.0 / beta, clip)
    guessing = method == "doubly-robust"
    if isinstance(log, LoggedLists) and log.features is not None:
        if features is not None:
            raise ValueError("features must be left out, because the log has its own")
        return _of_candidates(log, beta, w, guessing)
    if features is None:
        raise ValueError("features must be given, items by features: the log has none of its own")
    x = numbers("features", features)
    if x.ndim != 2 or len(x) != log.n_items or not np.isfinite(x).all():
        raise ValueError(f"features must be {log.n_items} items by features, finite, got shape {x.shape}")
    halves = [_counts(log, half) for half in (0, 1)]
    total = np.zeros(len(x))
    for half, (shown, clicked) in enumerate(halves):
        guess = _guess(*halves[1 - half], beta) if guessing else np.zeros(len(x))
        total += ((clicked - shown * beta * guess[:, None]) * w).sum(axis=1) + shown.sum(axis=1) * guess
    times = halves[0][0] + halves[1][0]
    at = times.sum(axis=0)
    bias = float((at * (1.0 - beta * w)).sum() / at.sum())
    return CorrectedClicks(x, times.sum(axis=1), total, bias)


def _of_candidates(log: LoggedLists, beta: Numbers, w: Numbers, guessing: bool) -> CorrectedClicks:
    assert log.features is not None
    shown = log.items >= 0
    rows = np.broadcast_to(np.arange(log.n_rows)[:, None], log.items.shape)[shown]
    x = log.features.rows[(log.features.starts[:-1, None] + log.items)[shown]]
    place, clicks = log.positions[shown], log.clicks[shown].astype(np.float64)
    guess = np.zeros(len(x))
    if guessing:
        for half in (0, 1):
            here = rows % 2 == half
            guess[here] = _guess_by_features(x[~here], place[~here], clicks[~here], beta, x[here])
    total = (clicks - beta[place] * guess) * w[place] + guess
    return CorrectedClicks(x, np.ones(len(x)), total, float((1.0 - beta * w)[place].mean()))


def _counts(log: Sessions | LoggedLists, half: int) -> tuple[Numbers, Numbers]:
    """Impressions and clicks of every other page, items by positions."""
    items, clicks = log.items[half::2], log.clicks[half::2]
    rows, columns = np.nonzero(items >= 0)
    places = log.positions[half::2][rows, columns] if isinstance(log, LoggedLists) else columns
    cells = items[rows, columns].astype(np.int64) * log.n_positions + places
    shape = (log.n_items, log.n_positions)
    shown = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
    clicked = np.bincount(cells, clicks[rows, columns], shape[0] * shape[1]).reshape(shape)
    return shown.astype(np.float64), clicked.astype(np.float64)


def _guess(shown: Numbers, clicked: Numbers, beta: Numbers) -> Numbers:
    """The click rate of each item among those who looked, with one more of them that clicks as often as all do."""
    looks = (shown * beta).sum(axis=1)
    mean = clicked.sum() / max(float(looks.sum()), 1e-12)
    rate: Numbers = (clicked.sum(axis=1) + mean) / (looks + 1.0)
    return rate.clip(0.0, 1.0)


def _guess_by_features(
    x: Numbers, place: NDArray[np.int64], clicks: Numbers, beta: Numbers, wanted: Numbers
) -> Numbers:
    """Attractions linear in the features, by least squares of clicks to examination times attraction."""
    seen = np.column_stack([np.ones(len(x)), x]) * beta[place][:, None]
    fitted = np.linalg.solve(seen.T @ seen + np.eye(seen.shape[1]), seen.T @ clicks)
    guess: Numbers = fitted[0] + wanted @ fitted[1:]
    return guess.clip(0.0, 1.0)
