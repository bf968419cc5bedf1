"""Clicks that depend on the item and its context alone: position-based, user browsing and trust bias models.

The context is the position; for user browsing, the position and that of the last click above. All that a log says of
them are counts by item and context, so that a fit goes through those and not through the pages.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from rankloop.kernels import click_fits
from rankloop.logs import identifiability, intervals
from rankloop.logs.em import Cells, by_moments
from rankloop.logs.em import Prior as RarePrior
from rankloop.logs.models import blocks, fitted
from rankloop.logs.models.chains import Fit
from rankloop.logs.models.chances import Maximum, Prior, maximise
from rankloop.logs.models.fitted import Estimate
from rankloop.logs.models.pages import Pages

Numbers = NDArray[np.float64]

CONTEXTS = ("pbm", "ubm", "trust")


def fit(
    name: str, pages: Pages, *, smoothing: float, confidence: float, tolerance: float, max_steps: int
) -> Fit:
    """One of `CONTEXTS`."""
    cells, used = _count(pages, browsing=name == "ubm")
    if cells.clicked.sum() == 0:
        raise ValueError(
            f"sessions must have a click, got none in {pages.log.n_rows:,} of {pages.log.name!r}"
        )
    alpha, beta, rare = by_moments(cells, impressions=smoothing)
    prior = Prior(np.full(cells.n_items, smoothing * rare.mean), np.full(cells.n_items, smoothing))
    if name == "trust":
        return _trust(pages, cells, alpha, beta, prior, confidence, tolerance, max_steps)
    group = identifiability.groups(cells)
    reference = 0 if name == "ubm" else int(np.argmax(beta))
    weight = beta if name == "pbm" else cells.by_position(cells.clicked)
    pinned = np.array(
        [
            reference if g == group[reference] else max(np.flatnonzero(group == g), key=weight.__getitem__)
            for g in np.unique(group)
        ]
    )
    free = np.setdiff1d(np.arange(cells.n_positions), pinned)
    u = np.full(cells.n_positions, -1)
    u[free] = cells.n_items + np.arange(len(free))
    v = np.full(cells.n_positions, -2)
    start = np.concatenate((alpha, beta[free])).clip(1e-6, 0.999)
    end = _climb(cells, start, u, v, prior, tolerance, max_steps)
    alpha = end.x[: cells.n_items]
    beta = np.ones(cells.n_positions)
    beta[free] = end.x[cells.n_items :]
    known = group == group[reference]
    off = intervals.errors(
        cells, alpha=alpha, beta=beta, prior=RarePrior(*rare), reference=reference, known=known
    )
    most = np.zeros(cells.n_items)
    np.maximum.at(most, cells.items, cells.shown)
    ends = intervals.attraction_interval(alpha, off.alpha, most, confidence=confidence)
    attraction = Estimate(alpha, off.alpha * alpha, ends[:, 0], ends[:, 1])
    ends = intervals.examination_interval(beta, off.beta, confidence=confidence)
    m = pages.pairs.shape[1]
    looks = Estimate(
        *(_spread(column, used, m) for column in (beta, off.beta * beta, ends[:, 0], ends[:, 1]))
    )
    mean = np.append(alpha, rare.mean)
    table = np.nan_to_num(looks.value, nan=0.0)
    if name == "pbm":
        looks = Estimate(*(column[:, 0] for column in looks))
        sentences = identifiability.told(cells, group, reference, off.beta)
        user = fitted.user(alpha=mean, m=m, looks=np.repeat(table[:, :1], m, axis=1))
    else:
        sentences = _browsing_told(used, known, off.beta, m)
        user = fitted.user(alpha=mean, m=m, looks=table)
    return Fit(
        attraction,
        None,
        {"examination": looks},
        user,
        end.steps,
        end.converged,
        end.log_likelihood,
        sentences,
    )


def _count(pages: Pages, *, browsing: bool) -> tuple[Cells, NDArray[np.int64]]:
    """Counts by item and context, and the contexts that occur: m j + r, with r that of the last click above, from 1."""
    m = pages.pairs.shape[1]
    shown = pages.pairs >= 0
    context = np.broadcast_to(m * np.arange(m), shown.shape)
    if browsing:
        last = np.zeros(shown.shape, np.int64)
        marks = np.where(pages.clicks == 1, np.arange(1, m + 1), 0)
        last[:, 1:] = np.maximum.accumulate(marks, axis=1)[:, :-1]
        context = context + last
    used, which = np.unique(context[shown], return_inverse=True)
    codes, cell = np.unique(pages.pairs[shown] * len(used) + which, return_inverse=True)
    clicked = np.bincount(cell, pages.clicks[shown], len(codes)).astype(np.float64)
    counts = np.bincount(cell, minlength=len(codes)).astype(np.float64)
    items, places = np.divmod(codes, len(used))
    return Cells(items, places, counts, clicked, pages.n_pairs, len(used)), used


def _spread(values: Numbers, used: NDArray[np.int64], m: int) -> Numbers:
    table = np.full(m * m, np.nan)
    table[used] = values
    return table.reshape(m, m)


def _climb(
    cells: Cells,
    start: Numbers,
    u: NDArray[np.int64],
    v: NDArray[np.int64],
    of_items: Prior,
    tolerance: float,
    max_steps: int,
) -> Maximum:
    none = np.zeros(len(start) - cells.n_items)
    prior = Prior(np.append(of_items.hits, none), np.append(of_items.tries, none))

    def expect(x: Numbers) -> tuple[Numbers, Numbers, float]:
        hits, tries = np.zeros(len(x)), np.zeros(len(x))
        counts = (cells.items, cells.positions, cells.shown, cells.clicked)
        return hits, tries, click_fits.expect_cells(*counts, x, u, v, hits, tries)

    return maximise(expect, start, prior=prior, tolerance=tolerance, max_steps=max_steps)


def _browsing_told(
    used: NDArray[np.int64], known: NDArray[np.bool_], error: Numbers, m: int
) -> tuple[str, ...]:
    sentences = []
    missing = m * (m + 1) // 2 - len(used)
    if missing:
        sentences.append(
            f"{missing} of {m * (m + 1) // 2} pairs of a position and a last click never occur: how often users look"
            " there is unknown"
        )
    if not known.all():
        sentences.append(
            f"{int((~known).sum())} such pairs cannot be compared with the top position: no item that was clicked links"
            " them"
        )
    vague = int((known & (error > 0.5) & np.isfinite(error)).sum())
    if vague:
        sentences.append(f"examination of {vague} such pairs is hardly known: few pages have them")
    return tuple(sentences)


def _trust(
    pages: Pages,
    cells: Cells,
    alpha: Numbers,
    beta: Numbers,
    prior: Prior,
    confidence: float,
    tolerance: float,
    max_steps: int,
) -> Fit:
    n, m = cells.n_items, cells.n_positions
    u, v = n + np.arange(m), n + m + np.arange(m)
    start = np.concatenate((alpha, beta, 0.1 * beta)).clip(1e-3, 0.99)
    end = _climb(cells, start, u, v, prior, tolerance, max_steps)
    alpha, true, false = end.x[:n], end.x[n : n + m], end.x[n + m :]
    # What the log identifies: the click rate of each item at the top, and the line that leads from it to the rate at
    # each other position. Its slope is the examination, what is left at rate 0 the false clicks.
    scale = true[0] - false[0]
    scale = np.copysign(max(abs(scale), 1e-9), scale)
    rate = false[0] + scale * alpha
    slope = (true - false) / scale
    rest = false - slope * false[0]
    where, matrix = blocks.layout(np.arange(n), 2 * (m - 1))
    column = np.arange(m) - 1
    p = (slope[cells.positions] * rate[cells.items] + rest[cells.positions]).clip(1e-12, 1.0 - 1e-12)
    w = cells.shown / (p * (1.0 - p))
    matrix.inner[:] = np.bincount(cells.items, w * slope[cells.positions] ** 2, n)
    moved = column[cells.positions] >= 0
    i, k, w = cells.items[moved], column[cells.positions[moved]], w[moved]
    b = slope[cells.positions[moved]]
    np.add.at(matrix.border, (i, k), w * b * rate[i])
    np.add.at(matrix.border, (i, k + m - 1), w * b)
    for row, left in ((k, rate[i]), (k + m - 1, np.ones(len(i)))):
        np.add.at(matrix.shared, (row, k), w * left * rate[i])
        np.add.at(matrix.shared, (row, k + m - 1), w * left)
    inside = rate.clip(1e-9, 1.0 - 1e-9)
    error = np.sqrt(blocks.variances(where, matrix, extra=np.zeros(n + 2 * (m - 1))))
    z = float(ndtri(0.5 + confidence / 2))
    off = np.zeros((2, m))
    off[:, 1:] = error[n:].reshape(2, m - 1)
    factor = np.exp(np.minimum(z * off[0] / np.maximum(slope, 1e-12), 50.0))
    sentences = [
        "only differences are identified: attraction is the click rate at the top, and false clicks are those beyond it"
    ]
    vague = np.flatnonzero(off[0] > 0.5 * np.maximum(slope, 1e-12)) + 1
    if vague.size:
        sentences.append(
            f"examination of position {', '.join(map(str, vague))} is hardly known: too few items of different"
            " attraction were shown there and elsewhere"
        )
    user = fitted.user(alpha=np.append(alpha, alpha @ _weights(cells)), m=m, true=true, false=false)
    return Fit(
        fitted.from_log_odds(rate, error[:n] / (inside * (1.0 - inside)), confidence),
        None,
        {
            "examination": Estimate(slope, off[0], slope / factor, slope * factor),
            "false_clicks": Estimate(rest, off[1], rest - z * off[1], rest + z * off[1]),
        },
        user,
        end.steps,
        end.converged,
        end.log_likelihood,
        tuple(sentences),
    )


def _weights(cells: Cells) -> Numbers:
    """The share of each item in all impressions."""
    shown = cells.by_item(cells.shown)
    weights: Numbers = shown / shown.sum()
    return weights
