"""Click models fitted to pages, and compared on later ones."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankloop.arguments import number, one_of, share, whole
from rankloop.feedback import Sessions
from rankloop.logs import click_model_fits, fitted_models
from rankloop.logs.click_model_fits import numbered
from rankloop.logs.fitted_models import FittedModel, Score, surprises
from rankloop.logs.pbm import ClickModelWarning

# From the simplest to the richest.
MODELS = ("rcm", "rctr", "cascade", "pbm", "dcm", "sdbn", "ccm", "dbn", "trust", "ubm")
FULL_NAMES = {
    "rcm": "random click",
    "rctr": "click rate by rank",
    "cascade": "cascade",
    "pbm": "position-based",
    "dcm": "dependent click",
    "sdbn": "simplified dynamic Bayesian",
    "ccm": "click chain",
    "dbn": "dynamic Bayesian",
    "trust": "trust bias",
    "ubm": "user browsing",
}
METHODS = ("likelihood", "counts")


def fit_model(
    sessions: Sessions,
    model: str = "pbm",
    *,
    smoothing: float = 1.0,
    confidence: float = 0.9,
    method: str = "likelihood",
    tolerance: float = 1e-4,
    max_steps: int = 5_000,
) -> FittedModel:
    r"""Fit a click model to pages by maximum likelihood.

    Every (query, item) has an attraction of its own, and a satisfaction where the model has one; all share the rest.

    Parameters
    ----------
    sessions : Sessions
        The pages.
    model : str, optional
        ``"pbm"`` (position-based), ``"cascade"``, ``"dcm"`` (dependent click), ``"ubm"`` (user browsing), ``"sdbn"``
        and ``"dbn"`` (simplified and full dynamic Bayesian), ``"ccm"`` (click chain), ``"trust"`` (trust bias), and
        two baselines without items: ``"rcm"`` (one click rate) and ``"rctr"`` (a click rate for each position).
    smoothing : float, optional
        Keeps estimates of rare items away from 0 and 1: each gets so many more looks, clicked as often as those of all
        items together. 0 for none, which is maximum likelihood.
    confidence : float, optional
        Of the intervals.
    method : str, optional
        ``"counts"`` for the closed form of ``"dcm"`` and ``"sdbn"``, which takes the last click of a page for the end
        of reading. It needs one pass, but underestimates continuation and overestimates satisfaction.
    tolerance : float, optional
        When to stop: no slope of the log likelihood is larger than this, in units of its own spread.
    max_steps : int, optional
        When to stop at the latest; the result then says that it did not converge.

    Departures
    ----------
    The simplified dynamic Bayesian and the dependent click model have closed forms by counts in their papers, which are
    not at the top of the models' own likelihood; here they are, unless `method` is ``"counts"``. The click chain model
    has a Bayesian fit in its paper; here it is maximum likelihood, too. A cascade has one click: of a page with more,
    only the first counts. In the user browsing model users look at the top position for certain.

    References
    ----------
    A. Chuklin, I. Markov, M. de Rijke (2015). *Click models for web search*. Morgan & Claypool.

    Examples
    --------
    >>> import numpy as np
    >>> from rankloop import feedback, logs
    >>> attraction, satisfaction = [0.6, 0.3, 0.4], [0.8, 0.2, 0.5]
    >>> users = feedback.DynamicBayesianModel(attraction=attraction, satisfaction=satisfaction, continuation=0.9)
    >>> rng = np.random.default_rng(1)
    >>> items = rng.permuted(np.tile(np.arange(3), (20_000, 1)), axis=1)
    >>> found = logs.fit_model(feedback.Sessions(items=items, clicks=users.click(items, rng=rng)), "dbn")
    >>> found.attraction.value.round(1), found.satisfaction.value.round(1), found.shared["continuation"].value.round(1)
    (array([0.6, 0.3, 0.4]), array([0.8, 0.2, 0.5]), array([0.9]))
    """
    one_of("model", model, MODELS)
    one_of("method", method, METHODS)
    number("smoothing", smoothing, at_least=0)
    number("confidence", confidence, above=0, below=1)
    number("tolerance", tolerance, above=0, below=1)
    steps = whole("max_steps", max_steps, at_least=1)
    if not sessions.clicks.any():
        raise ValueError(f"sessions must have a click, got none in {sessions.n_rows:,} of {sessions.name!r}")
    pages = numbered(sessions)
    counts = method == "counts"
    options = click_model_fits.Options(float(smoothing), confidence, float(tolerance), steps)
    if model in click_model_fits.BASELINES:
        fit = click_model_fits.fit_baseline(model, pages, options)
    elif model in click_model_fits.CHAINS:
        fit = click_model_fits.fit_chain(model, pages, options, counts=counts)
    elif counts:
        raise ValueError(f"method must be 'likelihood' for model {model!r}: it has no closed form by counts")
    else:
        fit = click_model_fits.fit_context(model, pages, options)
    sentences, end = fit.warnings, fit.end
    if not end.converged:
        sentences += (f"the search was stopped after {end.steps:,} steps, before it converged",)
        warnings.warn(f"{sessions.name}: {sentences[-1]}", ClickModelWarning, stacklevel=2)
    looks = fit.shared.get("examination")
    if looks is not None and looks.value.ndim == 1:
        examination = np.nan_to_num(looks.value, nan=0.0).clip(0.0, 1.0)
    else:
        examination = fitted_models.mean_looks(fit.user, pages.pairs, pages.clicks)
    return FittedModel(
        name=model,
        attraction=fit.attraction,
        satisfaction=fit.satisfaction,
        shared=fit.shared,
        examination=examination,
        items=pages.items,
        steps=end.steps,
        converged=end.converged,
        log_likelihood=end.log_likelihood,
        confidence=confidence,
        smoothing=float(smoothing),
        warnings=sentences,
        user=fit.user,
        codes=pages.codes,
        log=sessions,
    )


# All click models on one log: which of them predicts later pages best.


Floats = NDArray[np.float64]

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
    behind: Floats
    behind_error: Floats
    first: float

    def __repr__(self) -> str:
        return f"ModelComparison({', '.join(fit.name for fit in self.fits)}; use {self.best!r})"

    @property
    def best(self) -> str:
        """The simplest model that predicts the later pages as well as any, up to two standard errors."""
        near = self.behind <= _NEAR * self.behind_error
        order = [MODELS.index(fit.name) if near[k] else len(MODELS) for k, fit in enumerate(self.fits)]
        return self.fits[int(np.argmin(order))].name

    def advice(self) -> str:
        """Which model to use, and why, in a sentence."""
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
            fit = fit_model(early, name, **options)
        fits.append(fit)
        scores.append(fit.score(late))
        pages.append(-np.log(2.0) * surprises(fit.predict(late)[0], late).sum(axis=1))
    table = np.array(pages)
    best = table[int(np.argmax(table.mean(axis=1)))]
    gaps = best - table
    error = (
        gaps.std(axis=1, ddof=1) / np.sqrt(late.n_rows) if late.n_rows > 1 else np.full(len(names), np.inf)
    )
    return ModelComparison(tuple(fits), tuple(scores), gaps.mean(axis=1), error, float(first))
