"""A click model as it was fitted: estimates with errors, and what it predicts of other pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri

import rankloop
from rankloop import feedback
from rankloop.extras import counted
from rankloop.feedback import ClickModel, SavedModel, Sessions
from rankloop.kernels.click_fits import User, predict

Floats = NDArray[np.float64]

LEAST_CHANCE = 1e-6  # a model is never blamed for more than this when it calls impossible what happened


class Estimate(NamedTuple):
    """Floats with their standard errors and intervals, all of one shape.

    Parameters
    ----------
    value : ndarray of float
        The estimates; not a number where the log says nothing.
    standard_error : ndarray of float
        Their standard errors; infinite where the log does not identify them.
    low, high : ndarray of float
        The ends of the intervals.
    """

    value: Floats
    standard_error: Floats
    low: Floats
    high: Floats


class Score(NamedTuple):
    """How well a model predicts the clicks of some pages.

    Parameters
    ----------
    log_likelihood : float
        The natural logarithm of the chance of all clicks, per page.
    perplexity : float
        Two to the power of the mean surprise in bits: 1 for a perfect forecast, 2 for a coin. The mean over positions.
    perplexity_by_position : ndarray of float
        The same for each position. The forecast of a position knows the page, but not the clicks above.
    conditional_perplexity : float
        The same where the forecast knows the clicks above.
    impossible : float
        The share of pages with clicks that the model calls impossible. Each such click counts as one of a chance of
        one in a million.
    """

    log_likelihood: float
    perplexity: float
    perplexity_by_position: Floats
    conditional_perplexity: float
    impossible: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FittedModel:
    """A click model fitted to pages.

    Parameters
    ----------
    name : str
        The model, one of `logs.MODELS`.
    attraction : Estimate
        The attraction of each (query, item).
    satisfaction : Estimate or None
        The satisfaction of each (query, item), where the model has one.
    shared : mapping of str to Estimate
        What all items have in common, by name, such as ``"examination"`` or ``"continuation"``.
    examination : ndarray of float
        How often users look at each position, relative to the one that they look at most; for models that read
        down the page, the mean over the pages of the log. This is what a ranker takes as `examination`.
    items : tuple of (str, str)
        Query and item, by name, in the order of `attraction`.
    steps : int
        How often the log was gone through; 1 where counting is enough.
    converged : bool
        Whether the search came to the top of the likelihood.
    log_likelihood : float
        The natural logarithm of the chance of all clicks of the log.
    confidence : float
        The level of the intervals.
    smoothing : float
        The looks that were added for each item.
    warnings : tuple of str
        What the log does not tell, in sentences.
    user : tuple
        The chances of the model's user, as `kernels.click_fits` takes them; the last item stands for those that the
        log does not have.
    codes : ndarray of int
        Query times number of items plus item, for each of `items`, in rising order.
    log : Sessions
        The pages that the model was fitted to.
    """

    name: str
    attraction: Estimate
    satisfaction: Estimate | None
    shared: Mapping[str, Estimate]
    examination: Floats
    items: tuple[tuple[str, str], ...]
    steps: int
    converged: bool
    log_likelihood: float
    confidence: float
    smoothing: float
    warnings: tuple[str, ...]
    user: Any  # kernels.click_fits.User
    codes: NDArray[np.int64]
    log: Sessions

    def __repr__(self) -> str:
        end = counted(self.steps, "step") + ("" if self.converged else ", not converged")
        return (
            f"FittedModel({self.name} on {self.log.name!r}: {len(self.items):,} items,"
            f" {self.log.n_positions} positions, {end})"
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The items by name, with their query where there are several."""
        return item_names(self.items, several=self.log.n_queries > 1)

    def predict(self, pages: Sessions) -> tuple[Floats, Floats]:
        """The chance of a click at each position of other `pages`, with `item_ids` and `query_ids` as of the log.

        An item that the log does not have gets the mean attraction.

        Returns
        -------
        tuple of ndarray of float
            Given the clicks above each position, and without; not a number behind the end of a page.
        """
        if pages.item_ids != self.log.item_ids or pages.query_ids != self.log.query_ids:
            raise ValueError(
                f"pages must have the query_ids and item_ids of the log {self.log.name!r}, got others"
            )
        if pages.n_positions > self.log.n_positions:
            raise ValueError(
                f"pages must have at most {self.log.n_positions} positions as the log has, got {pages.n_positions}"
            )
        return chances(self.user, pair_numbers(pages, self.codes), pages.clicks)

    def score(self, pages: Sessions) -> Score:
        """How well the model predicts the clicks of other `pages`, with `item_ids` and `query_ids` as of the log."""
        informed, alone = self.predict(pages)
        clicked, shown = pages.clicks == 1, pages.items >= 0
        with np.errstate(invalid="ignore"):
            wrong = (clicked & (informed <= 0.0)) | (~clicked & (informed >= 1.0))
        times = shown.sum(axis=0)
        surprise = surprises(informed, pages)
        conditional, by_position = (
            np.exp2(bits.sum(axis=0) / np.maximum(times, 1)) for bits in (surprise, surprises(alone, pages))
        )
        return Score(
            log_likelihood=float(-surprise.sum() * np.log(2.0) / pages.n_rows),
            perplexity=float(by_position[times > 0].mean()),
            perplexity_by_position=by_position,
            conditional_perplexity=float(conditional[times > 0].mean()),
            impossible=float((wrong & shown).any(axis=1).mean()),
        )

    def model(self) -> ClickModel:
        """The click model with these parameters, of `rankloop.feedback`, its items in the order of `items`."""
        return _BUILT[self.name](self)

    def saved(self) -> SavedModel:
        """The model with its items and its origin, ready to be written to a file."""
        return SavedModel(
            self.model(),
            examination=self.examination,
            items=self.names,
            provenance={
                "source": self.log.name,
                "model": self.name,
                "pages": self.log.n_rows,
                "clicks": int(self.log.clicks.sum()),
                "bad_rows": dict(self.log.bad_rows),
                "smoothing": self.smoothing,
                "steps": self.steps,
                "converged": self.converged,
                "log_likelihood": self.log_likelihood if np.isfinite(self.log_likelihood) else None,
                "confidence": self.confidence,
                "warnings": list(self.warnings),
                "rankloop": rankloop.__version__,
            },
        )


def item_names(items: Sequence[tuple[str, str]], *, several: bool) -> tuple[str, ...]:
    """Items by name, with their query where there are several."""
    return tuple(f"{query}/{item}" if several else item for query, item in items)


def surprises(chance: Floats, pages: Sessions) -> Floats:
    """The surprise of each click and non-click, in bits; 0 behind the end of a page."""
    right = np.where(pages.clicks == 1, chance, 1.0 - chance).clip(LEAST_CHANCE, 1.0 - LEAST_CHANCE)
    return np.where(pages.items >= 0, -np.log2(right), 0.0)


def pair_numbers(pages: Sessions, codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each shown item its place in `codes`, their number for one that is not there, -1 where nothing is shown."""
    wanted = pages.queries[:, None].astype(np.int64) * pages.n_items + pages.items
    size = pages.n_queries * pages.n_items
    if size <= 4 * wanted.size:  # a table is quicker than a search
        table = np.full(size, len(codes))
        table[codes] = np.arange(len(codes))
        return np.where(pages.items < 0, -1, table[np.maximum(wanted, 0)])
    at = np.searchsorted(codes, wanted)
    known = codes[np.minimum(at, len(codes) - 1)] == wanted
    return np.where(pages.items < 0, -1, np.where(known, at, len(codes)))


def chances(user: User, pairs: NDArray[np.int64], clicks: NDArray[Any]) -> tuple[Floats, Floats]:
    """The chances of a click given those above, and without."""
    informed, alone = np.full(pairs.shape, np.nan), np.full(pairs.shape, np.nan)
    predict(pairs, np.ascontiguousarray(clicks), user, np.empty(pairs.shape[1] + 1), informed, alone)
    return informed, alone


def log_likelihood(user: User, pairs: NDArray[np.int64], clicks: NDArray[Any]) -> float:
    """The natural logarithm of the chance of all clicks, minus infinity where one is impossible."""
    informed, _ = chances(user, pairs, clicks)
    with np.errstate(divide="ignore"):
        return float(np.log(np.where(clicks == 1, informed, 1.0 - informed)[pairs >= 0]).sum())


def user(*, alpha: Floats, m: int, **other: Any) -> User:
    """A user who looks everywhere and never leaves, but for the chances that are given."""
    usual: dict[str, Any] = {
        "sat": np.zeros(len(alpha)),
        "looks": np.ones((m, m)),
        "true": np.ones(m),
        "false": np.zeros(m),
        "none": np.ones(m),
        "g0": np.ones(m),
        "g1": np.zeros(m),
    }
    parts = {name: np.ascontiguousarray(part, dtype=np.float64) for name, part in (usual | other).items()}
    return User(alpha=alpha, **parts)


def from_log_odds(x: Floats, error: Floats, confidence: float) -> Estimate:
    """Chances whose log-odds have these errors: the interval is symmetric there, and stays within 0 and 1."""
    half = float(ndtri(0.5 + confidence / 2)) * error
    inside = x.clip(1e-12, 1.0 - 1e-12)
    return Estimate(
        x, error * inside * (1.0 - inside), expit(logit(inside) - half), expit(logit(inside) + half)
    )


def from_trials(hits: Floats, tries: Floats, confidence: float) -> Estimate:
    """Shares of so many trials, with half a hit and half a miss for the error of those without either."""
    rough = (hits + 0.5) / (tries + 1.0)
    error = 1.0 / np.sqrt((tries + 1.0) * rough * (1.0 - rough))
    ends = from_log_odds(rough, error, confidence)
    value = np.divide(hits, tries, out=np.full(len(hits), np.nan), where=tries > 0)
    return Estimate(value, ends.standard_error, ends.low, ends.high)


def mean_looks(user: User, pairs: NDArray[np.int64], clicks: NDArray[Any]) -> Floats:
    """How often the model's users look at each position of these pages, the most being 1."""
    seen = user._replace(alpha=user.alpha.clip(1e-9))
    _, alone = chances(seen, pairs, clicks)
    alpha = np.append(seen.alpha, 0.0)[pairs]
    likes = alpha * user.true + (1.0 - alpha) * user.false
    with np.errstate(divide="ignore", invalid="ignore"):
        looks = np.where(pairs >= 0, alone / likes, 0.0)
    mean: Floats = looks.sum(axis=0) / np.maximum((pairs >= 0).sum(axis=0), 1)
    most = mean.max()
    return mean / most if most > 0 else mean


def _value(fit: FittedModel, name: str) -> Floats:
    return np.nan_to_num(fit.shared[name].value, nan=0.0)


def _by_look(kind: Callable[..., ClickModel]) -> Callable[[FittedModel], ClickModel]:
    return lambda fit: kind(attraction=fit.attraction.value, examination=_value(fit, "examination"))


def _dynamic(fit: FittedModel) -> ClickModel:
    sat, gamma = fit.user.sat[:-1], float(fit.user.none[0])
    return feedback.DynamicBayesianModel(
        attraction=fit.attraction.value, satisfaction=sat, continuation=gamma
    )


def _trust(fit: FittedModel) -> ClickModel:
    return feedback.TrustBiasModel(
        attraction=fit.user.alpha[:-1],
        examination=np.ones(fit.log.n_positions),
        true_clicks=fit.user.true,
        false_clicks=fit.user.false,
    )


def _rates(fit: FittedModel) -> ClickModel:
    # Clicks that depend on the position alone: every item attracts everybody who looks.
    return feedback.PositionBasedModel(attraction=np.ones(len(fit.items)), examination=fit.user.looks[:, 0])


_BUILT: dict[str, Callable[[FittedModel], ClickModel]] = {
    "pbm": _by_look(feedback.PositionBasedModel),
    "ubm": _by_look(feedback.UserBrowsingModel),
    "cascade": lambda fit: feedback.CascadeModel(attraction=fit.attraction.value),
    "dcm": lambda fit: feedback.DependentClickModel(
        attraction=fit.attraction.value, continuation=fit.user.g0
    ),
    "sdbn": _dynamic,
    "dbn": _dynamic,
    "ccm": lambda fit: feedback.ClickChainModel(
        attraction=fit.attraction.value, continuation=_value(fit, "continuation")
    ),
    "trust": _trust,
    "rcm": _rates,
    "rctr": _rates,
}
