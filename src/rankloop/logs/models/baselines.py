"""Models whose parameters are shares of counts: cascade, and the two that know no items."""

from __future__ import annotations

import numpy as np

from rankloop.logs.models import fitted
from rankloop.logs.models.chains import Fit
from rankloop.logs.models.fitted import Estimate
from rankloop.logs.models.pages import Pages

BASELINES = ("cascade", "rcm", "rctr")


def fit(name: str, pages: Pages, *, smoothing: float, confidence: float) -> Fit:
    """One of `BASELINES`."""
    if name == "cascade":
        return _cascade(pages, smoothing=smoothing, confidence=confidence)
    m = pages.pairs.shape[1]
    shown = (pages.pairs >= 0).sum(axis=0).astype(np.float64)
    clicked = pages.clicks.sum(axis=0).astype(np.float64)
    if name == "rcm":
        shown, clicked = np.array([shown.sum()]), np.array([clicked.sum()])
    found = fitted.from_trials(clicked, shown, confidence)
    rate = np.broadcast_to(np.nan_to_num(found.value, nan=0.0), m)
    alpha = np.ones(pages.n_pairs + 1)
    unknown = np.full(pages.n_pairs, np.nan)
    nothing = Estimate(unknown, unknown, np.zeros(pages.n_pairs), np.ones(pages.n_pairs))
    return _counted(
        pages,
        Fit(
            nothing,
            None,
            {"click_rate": found},
            fitted.user(alpha=alpha, m=m, looks=np.repeat(rate[:, None], m, axis=1)),
            1,
            True,
            0.0,
            ("it does not tell items apart",),
        ),
    )


def _cascade(pages: Pages, *, smoothing: float, confidence: float) -> Fit:
    m = pages.pairs.shape[1]
    clicked = pages.clicks == 1
    first = np.where(clicked.any(axis=1), np.argmax(clicked, axis=1), m)[:, None]
    places = np.arange(m)
    looked = (pages.pairs >= 0) & (places <= first)
    hits, tries = pages.by_pair(looked & clicked), pages.by_pair(looked)
    mean = hits.sum() / tries.sum()
    never = int((tries == 0).sum())
    hits, tries = hits + smoothing * mean, tries + smoothing
    found = fitted.from_trials(hits, tries, confidence)
    alpha = np.where(tries > 0, found.value, mean)
    user = fitted.user(alpha=np.append(alpha, mean), m=m, g0=np.zeros(m))
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
    return _counted(pages, Fit(found._replace(value=alpha), None, {}, user, 1, True, 0.0, tuple(sentences)))


def _counted(pages: Pages, fit: Fit) -> Fit:
    return fit._replace(log_likelihood=fitted.log_likelihood(fit.user, pages.pairs, pages.clicks))
