"""How each click model is fitted to pages: chains of examination, browsing models, and the baselines."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri

from rankloop.feedback import Sessions
from rankloop.kernels import click_fits
from rankloop.kernels.click_fits import Chain, User, Work
from rankloop.logs import fitted_models, intervals
from rankloop.logs.fitted_models import Estimate, pair_numbers
from rankloop.logs.intervals import Cells, by_moments
from rankloop.logs.intervals import Prior as RarePrior

# Pages as the fits take them: items numbered query by query, and the counts that every fit begins with.


class Pages(NamedTuple):
    """Pages, with a number for each (query, item) that occurs, -1 where nothing was shown."""

    log: Sessions
    pairs: NDArray[np.int64]
    clicks: NDArray[np.int8]
    codes: NDArray[np.int64]
    query: NDArray[np.int64]  # of each pair

    @property
    def n_pairs(self) -> int:
        """How many (query, item) there are."""
        return len(self.codes)

    @property
    def items(self) -> tuple[tuple[str, str], ...]:
        """Query and item of each pair, by name."""
        of = zip(self.query.tolist(), (self.codes % self.log.n_items).tolist(), strict=True)
        return tuple((self.log.query_ids[q], self.log.item_ids[i]) for q, i in of)

    def by_pair(self, which: NDArray[np.bool_]) -> Floats:
        """For each pair, how many of its places are in `which`."""
        return np.bincount(self.pairs[which], minlength=self.n_pairs).astype(np.float64)


class Seen(NamedTuple):
    """Counts that take for granted that users leave with their last click, and read everything without one."""

    hits: Floats  # by pair: clicks
    tries: Floats  # by pair: places at or above the last click
    last: Floats  # by pair: last clicks
    last_at: Floats  # by position: last clicks, where something was shown further down
    clicks_at: Floats  # by position: clicks, where something was shown further down


def numbered(log: Sessions) -> Pages:
    """Number the items of the pages."""
    shown = log.items >= 0
    wide = log.queries[:, None].astype(np.int64) * log.n_items + log.items
    size = log.n_queries * log.n_items
    seen = wide[shown]
    codes = np.flatnonzero(np.bincount(seen, minlength=size)) if size <= 4 * seen.size else np.unique(seen)
    return Pages(log, pair_numbers(log, codes), log.clicks, codes, codes // log.n_items)


def last_click(clicks: NDArray[np.int8]) -> NDArray[np.int64]:
    """The position of the last click of each page, -1 without one."""
    m = clicks.shape[1]
    last: NDArray[np.int64] = m - 1 - np.argmax(clicks[:, ::-1], axis=1)
    return np.where(clicks.any(axis=1), last, -1)


def seen_until_last_click(pages: Pages) -> Seen:
    """Count."""
    clicked, shown = pages.clicks == 1, pages.pairs >= 0
    last = last_click(pages.clicks)[:, None]
    places = np.arange(pages.clicks.shape[1])
    looked = shown & ((places <= last) | (last < 0))
    inside = np.zeros_like(shown)
    inside[:, :-1] = shown[:, 1:]
    is_last = clicked & (places == last)
    return Seen(
        pages.by_pair(clicked),
        pages.by_pair(looked),
        pages.by_pair(is_last),
        (is_last & inside).sum(axis=0).astype(np.float64),
        (clicked & inside).sum(axis=0).astype(np.float64),
    )


# The likeliest chances behind what was hidden in part: expectation maximisation, then a quasi-Newton method.
#
# Given a point, a model says for each of its chances how often it came true and how often it was tried, on average
# over what is hidden. Their ratio is a step of expectation maximisation. Their difference, hits - tries x, is the
# slope of the log likelihood in the log-odds of x (Fisher's identity), which is all that L-BFGS needs. EM is sure and
# slow near the end; L-BFGS gets there in tens of steps where EM would take a hundred thousand.


Floats = NDArray[np.float64]
Expectation = Callable[[Floats], tuple[Floats, Floats, float]]

_EDGE = 1e-9  # no chance comes closer to 0 or 1
_WARM_UP = 12  # steps of EM
_ROUNDS = 6  # of both methods in turn
_MEMORY = 20  # steps that L-BFGS remembers
_HIGHEST = float(logit(1.0 - _EDGE))
_ROUNDING = 1e-14  # the share of a sum that its last digits are


class Prior(NamedTuple):
    """Trials that are added to each chance, and how many of them come true: (0, 0) for none."""

    hits: Floats
    tries: Floats


class Options(NamedTuple):
    """What `fit_model` is asked for, whatever the model."""

    smoothing: float
    confidence: float
    tolerance: float
    max_steps: int


class Maximum(NamedTuple):
    """Where the search ended."""

    x: Floats
    log_likelihood: float  # of the log alone, without the prior
    steps: int
    slope: float
    converged: bool


def maximise(expect: Expectation, x: Floats, prior: Prior, options: Options) -> Maximum:
    """Climb from `x` until no slope is larger than the tolerance, in units of the slope's own spread.

    That unit makes the tolerance a distance to the top in standard errors, where nothing is hidden. Where so much is
    hidden that standard errors are 100 times as large, a tenth of a thousandth is still only a hundredth of them.
    """
    taken, (*_, tolerance, max_steps) = 0, options

    def look(x: Floats) -> tuple[Floats, Floats, float, float]:
        nonlocal taken
        taken += 1
        hits, tries, value = expect(x)
        believed = _dot(prior.hits, np.log(x)) + _dot(prior.tries - prior.hits, np.log1p(-x))
        return hits + prior.hits, tries + prior.tries, value, float(value + believed)

    x = x.clip(_EDGE, 1.0 - _EDGE)
    for _ in range(_ROUNDS):
        for _ in range(_WARM_UP):
            hits, tries, value, _ = look(x)
            slope = _slope(x, hits, tries)
            if slope <= tolerance or taken >= max_steps:
                return Maximum(x, value, taken, slope, slope <= tolerance)
            x = np.divide(hits, tries, out=x.copy(), where=tries > 0).clip(_EDGE, 1.0 - _EDGE)
        x = _quasi_newton(look, x, tolerance=0.5 * tolerance, most=max_steps - taken)
    hits, tries, value, _ = look(x)
    slope = _slope(x, hits, tries)
    return Maximum(x, value, taken, slope, slope <= tolerance)


def _slope(x: Floats, hits: Floats, tries: Floats) -> float:
    up = hits - tries * x
    held = ((x <= _EDGE) & (up < 0.0)) | ((x >= 1.0 - _EDGE) & (up > 0.0))
    spread = np.sqrt(np.maximum(tries * x * (1.0 - x), 1.0))
    return float(np.where(held, 0.0, np.abs(up) / spread).max(initial=0.0))


def _quasi_newton(
    look: Callable[[Floats], tuple[Floats, Floats, float, float]],
    x: Floats,
    *,
    tolerance: float,
    most: int,
) -> Floats:
    # L-BFGS in log-odds, in units of each chance's own error, so that those of a rare item and of a position are alike.
    # (SciPy's wakes the threads of BLAS for vectors this short, which takes a hundred times as long.)
    hits, tries, _, value = look(x)
    unit = 1.0 / np.sqrt(np.maximum(tries * x * (1.0 - x), 1e-2))
    edge = _HIGHEST / unit
    z, slope = logit(x) / unit, (hits - tries * x) * unit
    moves: deque[tuple[Floats, Floats, float]] = deque(maxlen=_MEMORY)
    left = most
    while left > 0:
        held = ((z <= -edge) & (slope < 0.0)) | ((z >= edge) & (slope > 0.0))
        ahead = np.where(held, 0.0, _direction(slope, moves))
        rise = _dot(ahead, slope)
        if rise <= 0.0:
            moves.clear()
            ahead = np.where(held, 0.0, slope)
            rise = _dot(ahead, slope)
        length = 1.0 if moves else min(1.0, 1.0 / np.sqrt(max(rise, 1e-300)))
        while True:
            there = (z + length * ahead).clip(-edge, edge)
            x = _chances(there, unit)
            hits, tries, _, reached = look(x)
            left -= 1
            if reached >= value + 1e-4 * length * rise - _ROUNDING * abs(value):
                break
            length *= 0.3
            if left <= 0 or length < 1e-10:
                return _chances(z, unit)
        after = (hits - tries * x) * unit
        step, bend = there - z, slope - after
        curve = _dot(step, bend)
        if curve > 1e-12 * _dot(bend, bend):
            moves.append((step, bend, curve))
        z, slope, value = there, after, reached
        if _slope(x, hits, tries) <= tolerance:
            break
    return _chances(z, unit)


def _chances(z: Floats, unit: Floats) -> Floats:
    x: Floats = expit(z * unit)
    return x


def _direction(slope: Floats, moves: deque[tuple[Floats, Floats, float]]) -> Floats:
    # The two loops of Nocedal (1980).
    ahead, shares = slope.copy(), []
    for step, bend, curve in reversed(moves):
        share = _dot(step, ahead) / curve
        shares.append(share)
        ahead -= share * bend
    if moves:
        _, bend, curve = moves[-1]
        ahead *= curve / _dot(bend, bend)
    for (step, bend, curve), share in zip(moves, reversed(shares), strict=True):
        ahead += (share - _dot(bend, ahead) / curve) * step
    return ahead


def _dot(a: Floats, b: Floats) -> float:
    return float((a * b).sum())


# Standard errors out of an information matrix in blocks: items of one query each, bordered by what all share.


_LEAST = 1e-10  # information that is added to each chance, so that one without any has a huge error


class Layout(NamedTuple):
    """For each chance: its block (-1 where it is shared), its place there, the block's length, and its start."""

    block: NDArray[np.int64]
    place: NDArray[np.int64]
    size: NDArray[np.int64]
    start: NDArray[np.int64]


class Blocks(NamedTuple):
    """The matrix: all blocks one after the other, their rows of the border, and the shared corner."""

    inner: Floats
    border: Floats
    shared: Floats


def block_layout(block: NDArray[np.int64], n_shared: int) -> tuple[Layout, Blocks]:
    """An empty matrix for chances of items in these blocks, and `n_shared` more behind them."""
    n = len(block)
    order = np.argsort(block, kind="stable")
    sizes = np.bincount(block)
    first = np.cumsum(sizes) - sizes
    place = np.empty(n, np.int64)
    place[order] = np.arange(n) - first[block[order]]
    begins = np.cumsum(sizes**2) - sizes**2
    rest = np.full(n_shared, -1)
    where = Layout(
        np.concatenate((block, rest)),
        np.concatenate((place, np.arange(n_shared))),
        np.concatenate((sizes[block], rest)),
        np.concatenate((begins[block], rest)),
    )
    return where, Blocks(
        np.zeros(int((sizes**2).sum())), np.zeros((n, n_shared)), np.zeros((n_shared, n_shared))
    )


def variances(where: Layout, matrix: Blocks, *, extra: Floats) -> Floats:
    """The diagonal of the inverse, after `extra` was added to the diagonal."""
    n, n_shared = matrix.border.shape
    corner = matrix.shared + np.diag(extra[n:] + _LEAST)
    groups = []
    of_items = np.arange(n)
    for d in np.unique(where.size[:n]):
        members = of_items[where.size[:n] == d]
        members = members[np.lexsort((where.place[members], where.block[members]))].reshape(-1, d)
        begins = where.start[members[:, 0]]
        block = matrix.inner[begins[:, None] + np.arange(d * d)].reshape(-1, d, d).copy()
        block[:, np.arange(d), np.arange(d)] += extra[members] + _LEAST
        inverse = np.linalg.inv(block)
        pulled = inverse @ matrix.border[members]
        corner -= np.einsum("bij,bik->jk", matrix.border[members], pulled)
        groups.append((members, np.einsum("bii->bi", inverse), pulled))
    spread = _inverse(corner)
    spreads = np.empty(n + n_shared)
    spreads[n:] = np.diag(spread)
    for members, own, pulled in groups:
        spreads[members] = own + np.einsum("bij,jk,bik->bi", pulled, spread, pulled)
    return np.maximum(spreads, 0.0)


def _inverse(matrix: Floats) -> Floats:
    # A direction that nothing is known of has an eigenvalue near 0, of either sign: its variance is huge, not small.
    values, vectors = np.linalg.eigh(matrix)
    least = max(float(values.max(initial=0.0)) * 1e-13, _LEAST)
    inverse: Floats = (vectors / np.maximum(values, least)) @ vectors.T
    return inverse


# Users who read down the page: dependent click, simplified and full dynamic Bayesian, and click chain models.
#
# A click shows that the user was reading until then. Behind the last click they may have stopped anywhere, which is
# summed over exactly.


Scratch = tuple[Work, tuple[Any, Any, Any]]

CHAINS = ("dcm", "sdbn", "dbn", "ccm")
_LARGEST = 20_000_000  # numbers in the blocks of an information matrix


class Fit(NamedTuple):
    """What a family of models hands back."""

    attraction: Estimate
    shared: dict[str, Estimate]
    user: User
    end: Maximum
    warnings: tuple[str, ...]
    satisfaction: Estimate | None = None


class Start(NamedTuple):
    """A model as numbers: who is who, where to begin, and the prior."""

    chain: Chain
    x: Floats
    prior: Prior


def fit_chain(name: str, pages: Pages, options: Options, *, counts: bool) -> Fit:
    """One of `CHAINS`; with `counts`, only the closed form that takes the last click for the end."""
    seen = seen_until_last_click(pages)
    start = _start(name, pages, seen, options.smoothing)
    if counts:
        return _by_counts(name, pages, seen, start, confidence=options.confidence)
    scratch = _scratch(pages.pairs.shape[1])

    def expect(x: Floats) -> tuple[Floats, Floats, float]:
        hits, tries = np.zeros(len(x)), np.zeros(len(x))
        value = click_fits.expect_chains(pages.pairs, pages.clicks, x, start.chain, *scratch, hits, tries)
        return hits, tries, value

    end = maximise(expect, start.x, start.prior, options)
    tries = expect(end.x)[1] + start.prior.tries
    # At 0 or 1 log-odds say nothing: the error is that of half a trial that came out the other way.
    inside = end.x.clip(0.5 / (tries + 1.0), 1.0 - 0.5 / (tries + 1.0))
    error = np.where(tries > 0, np.sqrt(_variances(pages, start, inside, scratch)), np.inf)
    estimate = fitted_models.from_log_odds(inside, error, options.confidence)
    low, high = np.minimum(estimate.low, end.x), np.maximum(estimate.high, end.x)
    fit = _chain_fit(name, pages, seen, end, Estimate(end.x, estimate.standard_error, low, high))
    if not _too_large(pages, start):
        return fit
    most = int(np.unique(pages.query, return_counts=True)[1].max())
    sentence = (
        f"intervals are those of each item by itself and may be too narrow: a query has {most:,} items, too many to"
        " allow for how their estimates depend on each other"
    )
    return fit._replace(warnings=(*fit.warnings, sentence))


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


def _scratch(m: int) -> Scratch:
    work = Work(np.empty(m), np.empty(m), np.empty((m, 4)), np.empty(m))
    return work, (np.empty(4 * m, np.int64), np.empty(4 * m), np.empty(4 * m))


def _variances(pages: Pages, start: Start, x: Floats, scratch: Scratch) -> Floats:
    p, per_item = pages.n_pairs, 2 if start.chain.sat > 0 else 1
    block = np.arange(p) if _too_large(pages, start) else np.unique(pages.query, return_inverse=True)[1]
    where, matrix = block_layout(np.tile(block, per_item), len(x) - per_item * p)
    work, entries = scratch
    click_fits.information(pages.pairs, pages.clicks, x, start.chain, work, entries, where, matrix)
    return variances(where, matrix, extra=start.prior.tries * x * (1.0 - x))


def _too_large(pages: Pages, start: Start) -> bool:
    """Whether the covariances of all items of each query are more numbers than `_LARGEST`."""
    per_item = 2 if start.chain.sat > 0 else 1
    sizes = np.unique(pages.query, return_counts=True)[1]
    return bool(((per_item * sizes).astype(float) ** 2).sum() > _LARGEST)


def _part(whole: Estimate, which: slice) -> Estimate:
    return Estimate(*(column[which] for column in whole))


def _chain_fit(name: str, pages: Pages, seen: Seen, end: Maximum, estimate: Estimate) -> Fit:
    p, m = pages.n_pairs, pages.pairs.shape[1]
    attraction, rest = _part(estimate, slice(0, p)), slice(p, None)
    satisfaction, shared, sentences = None, {}, list[str]()
    # The unknown item, which the last place stands for, has the mean of the others.
    alpha = np.append(end.x[:p], seen.hits.sum() / seen.tries.sum())
    if name == "dcm":
        shared["continuation"] = _part(estimate, rest)
        user = fitted_models.user(alpha=alpha, m=m, g0=np.append(end.x[p:], end.x[-1] if m > 1 else 1.0))
        unknown = np.flatnonzero(seen.clicks_at[:-1] == 0) + 1
        if unknown.size:
            sentences.append(
                f"continuation after position {', '.join(map(str, unknown))} is not identified: nothing was clicked"
                " there"
            )
    elif name == "ccm":
        shared["continuation"] = _part(estimate, rest)
        none, g0, g1 = (np.full(m, value) for value in end.x[p:])
        user = fitted_models.user(alpha=alpha, m=m, sat=alpha, none=none, g0=g0, g1=g1)
        if (shared["continuation"].high - shared["continuation"].low)[1:].max() > 0.5:
            sentences.append(
                "the two continuations after a click are hardly told apart: clicked items are too much alike, or few"
            )
    else:
        satisfaction = _part(estimate, slice(p, 2 * p))
        gamma = float(end.x[2 * p]) if name == "dbn" else 1.0
        sat = np.append(end.x[p : 2 * p], seen.last.sum() / max(seen.hits.sum(), 1.0))
        user = fitted_models.user(alpha=alpha, m=m, sat=sat, none=np.full(m, gamma), g0=np.full(m, gamma))
        if name == "dbn":
            shared["continuation"] = _part(estimate, slice(2 * p, None))
        never = int((seen.hits == 0).sum())
        if never:
            sentences.append(
                f"satisfaction of {never:,} of {p:,} items is not identified: they were never clicked"
            )
    return Fit(attraction, shared, user, end, tuple(sentences), satisfaction)


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
    shares = fitted_models.from_trials(hits, tries, confidence)
    return _counted(pages, _chain_fit(name, pages, seen, _by_counting(x), Estimate(x, *shares[1:])))


def _by_counting(x: Floats) -> Maximum:
    """The end of a fit that takes one pass; `_counted` fills in its likelihood."""
    return Maximum(x, np.nan, 1, 0.0, True)


def _counted(pages: Pages, fit: Fit) -> Fit:
    likelihood = fitted_models.log_likelihood(fit.user, pages.pairs, pages.clicks)
    return fit._replace(end=fit.end._replace(log_likelihood=likelihood))


# Clicks that depend on the item and its context alone: position-based, user browsing and trust bias models.
#
# The context is the position; for user browsing, the position and that of the last click above. All that a log says
# of them are counts by item and context, so that a fit goes through those and not through the pages.


CONTEXTS = ("pbm", "ubm", "trust")


def fit_context(name: str, pages: Pages, options: Options) -> Fit:
    """One of `CONTEXTS`."""
    cells, used = _count(pages, browsing=name == "ubm")
    if cells.clicked.sum() == 0:
        raise ValueError(
            f"sessions must have a click, got none in {pages.log.n_rows:,} of {pages.log.name!r}"
        )
    alpha, beta, rare = by_moments(cells, impressions=options.smoothing)
    each = np.full(cells.n_items, options.smoothing)
    climb = partial(_climb, cells, Prior(each * rare.mean, each), options)
    if name == "trust":
        return _trust(cells, alpha, beta, climb, options.confidence)
    group = intervals.comparable_groups(cells)
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
    end = climb(start, u, v)
    alpha = end.x[: cells.n_items]
    beta = np.ones(cells.n_positions)
    beta[free] = end.x[cells.n_items :]
    known = group == group[reference]
    off = intervals.errors(
        cells, alpha=alpha, beta=beta, prior=RarePrior(*rare), reference=reference, known=known
    )
    most = np.zeros(cells.n_items)
    np.maximum.at(most, cells.items, cells.shown)
    ends = intervals.attraction_interval(alpha, off.alpha, most, confidence=options.confidence)
    attraction = Estimate(alpha, off.alpha * alpha, ends[:, 0], ends[:, 1])
    ends = intervals.examination_interval(beta, off.beta, confidence=options.confidence)
    m = pages.pairs.shape[1]
    looks = Estimate(
        *(_spread(column, used, m) for column in (beta, off.beta * beta, ends[:, 0], ends[:, 1]))
    )
    mean = np.append(alpha, rare.mean)
    table = np.nan_to_num(looks.value, nan=0.0)
    if name == "pbm":
        looks = Estimate(*(column[:, 0] for column in looks))
        sentences = intervals.identification_warnings(cells, group, reference, off.beta)
        user = fitted_models.user(alpha=mean, m=m, looks=np.repeat(table[:, :1], m, axis=1))
    else:
        sentences = _browsing_warnings(used, known, off.beta, m)
        user = fitted_models.user(alpha=mean, m=m, looks=table)
    return Fit(attraction, {"examination": looks}, user, end, sentences)


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


def _spread(values: Floats, used: NDArray[np.int64], m: int) -> Floats:
    table = np.full(m * m, np.nan)
    table[used] = values
    return table.reshape(m, m)


def _climb(
    cells: Cells, of_items: Prior, options: Options, start: Floats, u: NDArray[np.int64], v: NDArray[np.int64]
) -> Maximum:
    none = np.zeros(len(start) - cells.n_items)
    prior = Prior(np.append(of_items.hits, none), np.append(of_items.tries, none))

    def expect(x: Floats) -> tuple[Floats, Floats, float]:
        hits, tries = np.zeros(len(x)), np.zeros(len(x))
        counts = (cells.items, cells.positions, cells.shown, cells.clicked)
        return hits, tries, click_fits.expect_cells(*counts, x, u, v, hits, tries)

    return maximise(expect, start, prior, options)


def _browsing_warnings(
    used: NDArray[np.int64], known: NDArray[np.bool_], error: Floats, m: int
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
    cells: Cells, alpha: Floats, beta: Floats, climb: Callable[..., Maximum], confidence: float
) -> Fit:
    n, m = cells.n_items, cells.n_positions
    u, v = n + np.arange(m), n + m + np.arange(m)
    start = np.concatenate((alpha, beta, 0.1 * beta)).clip(1e-3, 0.99)
    end = climb(start, u, v)
    alpha, true, false = end.x[:n], end.x[n : n + m], end.x[n + m :]
    # What the log identifies: the click rate of each item at the top, and the line that leads from it to the rate at
    # each other position. Its slope is the examination, what is left at rate 0 the false clicks.
    scale = true[0] - false[0]
    scale = np.copysign(max(abs(scale), 1e-9), scale)
    rate = false[0] + scale * alpha
    slope = (true - false) / scale
    rest = false - slope * false[0]
    where, matrix = block_layout(np.arange(n), 2 * (m - 1))
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
    error = np.sqrt(variances(where, matrix, extra=np.zeros(n + 2 * (m - 1))))
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
    shown = cells.by_item(cells.shown)
    usual = alpha @ (shown / shown.sum())  # the mean over all impressions
    user = fitted_models.user(alpha=np.append(alpha, usual), m=m, true=true, false=false)
    return Fit(
        fitted_models.from_log_odds(rate, error[:n] / (inside * (1.0 - inside)), confidence),
        {
            "examination": Estimate(slope, off[0], slope / factor, slope * factor),
            "false_clicks": Estimate(rest, off[1], rest - z * off[1], rest + z * off[1]),
        },
        user,
        end,
        tuple(sentences),
    )


# Models whose parameters are shares of counts: cascade, and the two that know no items.


BASELINES = ("cascade", "rcm", "rctr")


def fit_baseline(name: str, pages: Pages, options: Options) -> Fit:
    """One of `BASELINES`."""
    if name == "cascade":
        return _cascade(pages, options)
    m = pages.pairs.shape[1]
    shown = (pages.pairs >= 0).sum(axis=0).astype(np.float64)
    clicked = pages.clicks.sum(axis=0).astype(np.float64)
    if name == "rcm":
        shown, clicked = np.array([shown.sum()]), np.array([clicked.sum()])
    rates = fitted_models.from_trials(clicked, shown, options.confidence)
    rate = np.broadcast_to(np.nan_to_num(rates.value, nan=0.0), m)
    alpha = np.ones(pages.n_pairs + 1)
    unknown = np.full(pages.n_pairs, np.nan)
    nothing = Estimate(unknown, unknown, np.zeros(pages.n_pairs), np.ones(pages.n_pairs))
    user = fitted_models.user(alpha=alpha, m=m, looks=np.repeat(rate[:, None], m, axis=1))
    sentences = ("it does not tell items apart",)
    return _counted(pages, Fit(nothing, {"click_rate": rates}, user, _by_counting(rate), sentences))


def _cascade(pages: Pages, options: Options) -> Fit:
    m = pages.pairs.shape[1]
    clicked = pages.clicks == 1
    first = np.where(clicked.any(axis=1), np.argmax(clicked, axis=1), m)[:, None]
    places = np.arange(m)
    looked = (pages.pairs >= 0) & (places <= first)
    hits, tries = pages.by_pair(looked & clicked), pages.by_pair(looked)
    mean = hits.sum() / tries.sum()
    never = int((tries == 0).sum())
    hits, tries = hits + options.smoothing * mean, tries + options.smoothing
    shares = fitted_models.from_trials(hits, tries, options.confidence)
    alpha = np.where(tries > 0, shares.value, mean)
    user = fitted_models.user(alpha=np.append(alpha, mean), m=m, g0=np.zeros(m))
    several = float((pages.clicks.sum(axis=1) > 1).mean())
    sentences = []
    if several:
        sentences.append(
            f"{several:.1%} of the pages have more than one click, which this model calls impossible: only the first"
            " counts"
        )
    if never:
        sentences.append(
            f"{never:,} items were never shown at or above a first click: nothing is known of them"
        )
    return _counted(pages, Fit(shares._replace(value=alpha), {}, user, _by_counting(alpha), tuple(sentences)))
