"""All click models on one log: which of them predicts later pages best."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankloop.arguments import one_of, share
from rankloop.feedback import Sessions
from rankloop.logs.models.fitted import FittedModel, Score, surprises
from rankloop.logs.models.fitting import FULL_NAMES, MODELS, fit_model
from rankloop.logs.pbm import ClickModelWarning

Numbers = NDArray[np.float64]

_NEAR = 2.0  # standard errors of a difference that count as none


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ModelComparison:
    """Click models fitted to the first pages of a log and tried on the later ones.

    Parameters
    ----------
    fits : tuple of FittedModel
        The models, fitted to the first pages.
    scores : tuple of Score
        How well each predicts the later pages.
    behind : ndarray of float
        By how much the log likelihood of a later page is below that of the best model, on average.
    behind_error : ndarray of float
        The standard error of that, page by page.
    first : float
        The share of the pages that the models were fitted to.
    """

    fits: tuple[FittedModel, ...]
    scores: tuple[Score, ...]
    behind: Numbers
    behind_error: Numbers
    first: float

    def __repr__(self) -> str:
        return f"ModelComparison({', '.join(found.name for found in self.fits)}; use {self.best!r})"

    @property
    def best(self) -> str:
        """The simplest model that predicts the later pages as well as any, up to two standard errors."""
        near = self.behind <= _NEAR * self.behind_error
        order = [MODELS.index(found.name) if near[k] else len(MODELS) for k, found in enumerate(self.fits)]
        return self.fits[int(np.argmin(order))].name

    def advice(self) -> str:
        """Which model to use, and why, in a sentence.

        Returns
        -------
        str
            The sentence.
        """
        top = self.fits[int(np.argmin(self.behind))].name
        if top == self.best:
            why = "it predicts the later pages best"
        else:
            why = f"it predicts the later pages as well as the {FULL_NAMES[top]} model does, and is simpler"
        return f"Use the {FULL_NAMES[self.best]} model ({self.best}): {why}."


def compare_models(
    sessions: Sessions, models: Sequence[str] = MODELS, *, first: float = 0.75, **options: Any
) -> ModelComparison:
    """Fit click models to the first pages of a log, and compare them on the later ones.

    Parameters
    ----------
    sessions : Sessions
        The pages, in the order of time.
    models : sequence of str, optional
        Which models, see `fit_model`.
    first : float, optional
        The share of the pages that the models are fitted to.
    **options : object
        Further arguments of `fit_model`, such as `smoothing`.

    Returns
    -------
    ModelComparison
        The fits, their scores, and which to use.

    Examples
    --------
    >>> import numpy as np
    >>> from rankloop import feedback, logs
    >>> users = feedback.CascadeModel(attraction=[0.6, 0.3, 0.4])
    >>> rng = np.random.default_rng(1)
    >>> items = rng.permuted(np.tile(np.arange(3), (4_000, 1)), axis=1)
    >>> pages = feedback.Sessions(items=items, clicks=users.click(items, rng=rng))
    >>> logs.compare_models(pages, ["rctr", "pbm", "cascade"]).advice()
    'Use the cascade model (cascade): it predicts the later pages best.'
    """
    names = list(dict.fromkeys(one_of("models", name, MODELS) for name in models))
    if not names:
        raise ValueError("models must name at least one model, got none")
    early, late = sessions.split(share("first", first))
    fits, scores, pages = [], [], []
    for name in names:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ClickModelWarning)
            found = fit_model(early, name, **options)
        fits.append(found)
        scores.append(found.score(late))
        pages.append(-np.log(2.0) * surprises(found.predict(late)[0], late).sum(axis=1))
    table = np.array(pages)
    best = table[int(np.argmax(table.mean(axis=1)))]
    gaps = best - table
    error = (
        gaps.std(axis=1, ddof=1) / np.sqrt(late.n_rows) if late.n_rows > 1 else np.full(len(names), np.inf)
    )
    return ModelComparison(tuple(fits), tuple(scores), gaps.mean(axis=1), error, float(first))
