"""Users who read down the page: dependent click, simplified and full dynamic Bayesian, and click chain models.

A click shows that the user was reading until then. Behind the last click they may have stopped anywhere, which is
summed over exactly.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels import click_fits
from rankloop.kernels.click_fits import Chain, User, Work
from rankloop.logs.models import blocks, fitted
from rankloop.logs.models.chances import Maximum, Prior, maximise
from rankloop.logs.models.fitted import Estimate
from rankloop.logs.models.pages import Pages, Seen, seen_until_last_click

Numbers = NDArray[np.float64]

Room = tuple[Work, tuple[Any, Any, Any]]

CHAINS = ("dcm", "sdbn", "dbn", "ccm")
_LARGEST = 20_000_000  # numbers in the blocks of an information matrix


class Fit(NamedTuple):
    """What a family of models hands back."""

    attraction: Estimate
    satisfaction: Estimate | None
    shared: dict[str, Estimate]
    user: User
    steps: int
    converged: bool
    log_likelihood: float
    warnings: tuple[str, ...]


class Start(NamedTuple):
    """A model as numbers: who is who, where to begin, and the prior."""

    chain: Chain
    x: Numbers
    prior: Prior


def fit(
    name: str,
    pages: Pages,
    *,
    smoothing: float,
    confidence: float,
    tolerance: float,
    max_steps: int,
    counts: bool,
) -> Fit:
    """One of `CHAINS`; with `counts`, only the closed form that takes the last click for the end."""
    seen = seen_until_last_click(pages)
    start = _start(name, pages, seen, smoothing)
    if counts:
        return _by_counts(name, pages, seen, start, confidence=confidence)
    room = _room(pages.pairs.shape[1])

    def expect(x: Numbers) -> tuple[Numbers, Numbers, float]:
        hits, tries = np.zeros(len(x)), np.zeros(len(x))
        value = click_fits.expect_chains(pages.pairs, pages.clicks, x, start.chain, *room, hits, tries)
        return hits, tries, value

    end = maximise(expect, start.x, prior=start.prior, tolerance=tolerance, max_steps=max_steps)
    tries = expect(end.x)[1] + start.prior.tries
    # At 0 or 1 log-odds say nothing: the error is that of half a trial that came out the other way.
    inside = end.x.clip(0.5 / (tries + 1.0), 1.0 - 0.5 / (tries + 1.0))
    error = np.where(tries > 0, np.sqrt(_variances(pages, start, inside, room)), np.inf)
    found = fitted.from_log_odds(inside, error, confidence)
    low, high = np.minimum(found.low, end.x), np.maximum(found.high, end.x)
    told = _told(name, pages, seen, end, Estimate(end.x, found.standard_error, low, high))
    if not _too_large(pages, start):
        return told
    most = int(np.unique(pages.query, return_counts=True)[1].max())
    sentence = (
        f"intervals are those of each item by itself and may be too narrow: a query has {most:,} items, too many to"
        " allow for how their estimates depend on each other"
    )
    return told._replace(warnings=(*told.warnings, sentence))


def _start(name: str, pages: Pages, seen: Seen, smoothing: float) -> Start:
    p, m = pages.n_pairs, pages.pairs.shape[1]
    fixed, mean = np.full(m, -1), seen.hits.sum() / seen.tries.sum()
    likes = (seen.hits + mean) / (seen.tries + 1.0)
    ends = seen.last.sum() / max(seen.hits.sum(), 1.0)
    sated = (seen.last + ends) / (seen.hits + 1.0)
    added = (np.full(p, smoothing * mean), np.full(p, smoothing))
    if name == "dcm":
        index = np.append(p + np.arange(m - 1), -1)
        chain = Chain(-1, fixed, index, fixed, 1.0, 1.0, 0.0)
        own, shared = likes, 1.0 - (seen.last_at[:-1] + 0.5) / (seen.clicks_at[:-1] + 1.0)
    elif name == "ccm":
        none, g0, g1 = (np.full(m, p + k) for k in range(3))
        chain = Chain(0, none, g0, g1, 1.0, 1.0, 0.0)
        own, shared = likes, np.array([0.9, 0.8, 0.5])
    else:
        gamma = np.full(m, 2 * p) if name == "dbn" else fixed
        chain = Chain(p, gamma, gamma, fixed, 1.0, 1.0, 0.0)
        own, shared = np.concatenate((likes, sated)), np.full(int(name == "dbn"), 0.9)
        added = (np.append(added[0], np.full(p, smoothing * ends)), np.append(added[1], added[1]))
    nothing = np.zeros(len(shared))
    prior = Prior(np.append(added[0], nothing), np.append(added[1], nothing))
    return Start(chain, np.append(own, shared), prior)


def _room(m: int) -> Room:
    work = Work(np.empty(m), np.empty(m), np.empty((m, 4)), np.empty(m))
    return work, (np.empty(4 * m, np.int64), np.empty(4 * m), np.empty(4 * m))


def _variances(pages: Pages, start: Start, x: Numbers, room: Room) -> Numbers:
    p, per_item = pages.n_pairs, 2 if start.chain.sat > 0 else 1
    block = np.arange(p) if _too_large(pages, start) else np.unique(pages.query, return_inverse=True)[1]
    where, matrix = blocks.layout(np.tile(block, per_item), len(x) - per_item * p)
    work, entries = room
    click_fits.information(pages.pairs, pages.clicks, x, start.chain, work, entries, where, matrix)
    return blocks.variances(where, matrix, extra=start.prior.tries * x * (1.0 - x))


def _too_large(pages: Pages, start: Start) -> bool:
    """Whether the covariances of all items of each query are more numbers than `_LARGEST`."""
    per_item = 2 if start.chain.sat > 0 else 1
    sizes = np.unique(pages.query, return_counts=True)[1]
    return bool(((per_item * sizes).astype(float) ** 2).sum() > _LARGEST)


def _part(whole: Estimate, which: slice) -> Estimate:
    return Estimate(*(column[which] for column in whole))


def _told(name: str, pages: Pages, seen: Seen, end: Maximum, found: Estimate) -> Fit:
    p, m = pages.n_pairs, pages.pairs.shape[1]
    attraction, rest = _part(found, slice(0, p)), slice(p, None)
    satisfaction, shared, sentences = None, {}, list[str]()
    # The unknown item, which the last place stands for, has the mean of the others.
    alpha = np.append(end.x[:p], seen.hits.sum() / seen.tries.sum())
    if name == "dcm":
        shared["continuation"] = _part(found, rest)
        user = fitted.user(alpha=alpha, m=m, g0=np.append(end.x[p:], end.x[-1] if m > 1 else 1.0))
        unknown = np.flatnonzero(seen.clicks_at[:-1] == 0) + 1
        if unknown.size:
            sentences.append(
                f"continuation after position {', '.join(map(str, unknown))} is not identified: nothing was clicked"
                " there"
            )
    elif name == "ccm":
        shared["continuation"] = _part(found, rest)
        none, g0, g1 = (np.full(m, value) for value in end.x[p:])
        user = fitted.user(alpha=alpha, m=m, sat=alpha, none=none, g0=g0, g1=g1)
        if (shared["continuation"].high - shared["continuation"].low)[1:].max() > 0.5:
            sentences.append(
                "the two continuations after a click are hardly told apart: clicked items are too much alike, or few"
            )
    else:
        satisfaction = _part(found, slice(p, 2 * p))
        gamma = float(end.x[2 * p]) if name == "dbn" else 1.0
        sat = np.append(end.x[p : 2 * p], seen.last.sum() / max(seen.hits.sum(), 1.0))
        user = fitted.user(alpha=alpha, m=m, sat=sat, none=np.full(m, gamma), g0=np.full(m, gamma))
        if name == "dbn":
            shared["continuation"] = _part(found, slice(2 * p, None))
        never = int((seen.hits == 0).sum())
        if never:
            sentences.append(
                f"satisfaction of {never:,} of {p:,} items is not identified: they were never clicked"
            )
    return Fit(
        attraction, satisfaction, shared, user, end.steps, end.converged, end.log_likelihood, tuple(sentences)
    )


def _by_counts(name: str, pages: Pages, seen: Seen, start: Start, *, confidence: float) -> Fit:
    if name == "dcm":
        hits, tries = (seen.clicks_at - seen.last_at)[:-1], seen.clicks_at[:-1]
    elif name == "sdbn":
        hits, tries = seen.last, seen.hits
    else:
        raise ValueError(f"method must be 'likelihood' for model {name!r}: it has no closed form by counts")
    hits, tries = np.append(seen.hits, hits), np.append(seen.tries, tries)
    hits, tries = hits + start.prior.hits, tries + start.prior.tries
    x = np.divide(hits, tries, out=np.full(len(hits), 0.5), where=tries > 0)
    found = fitted.from_trials(hits, tries, confidence)
    end = Maximum(x, np.nan, 1, 0.0, True)
    counted = _told(name, pages, seen, end, Estimate(x, *found[1:]))
    return counted._replace(log_likelihood=fitted.log_likelihood(counted.user, pages.pairs, pages.clicks))
