"""What a surrogate is."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import numbers

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

HIGHEST_GRADE = 1000.0  # 2^1000, even summed over the longest list, is still a finite float64


@dataclass(frozen=True)
class Surrogate(abc.ABC):
    """A smooth replacement for a ranking measure: phi(s, R), for the scores s and the relevance R of one list.

    A measure depends only on the order of the scores, so it has no useful gradient; a surrogate has one.
    Scores and relevance list one number per item. Axes before the last are lists side by side, broadcast as numpy
    does.

    Attributes
    ----------
    name : str
        As `surrogates.get` takes it.
    level : int or None
        How many labels at a time the gradient decomposes over (Lemma 1); None where all of them are needed. A
        ranker that sees the labels of the top k needs k >= level.
    reason : str
        Why the level is what it is.
    convex : bool
        Convex in s for every R.
    is_gain : bool
        Larger is better, so climb the gradient instead of descending it (erratum B3).
    printed_baseline : float or None
        The guess R_hat that makes an estimate the one printed in the paper; None where that has none. See
        `estimators`.
    """

    name: ClassVar[str]
    level: ClassVar[int | None]
    reason: ClassVar[str]
    convex: ClassVar[bool]
    is_gain: ClassVar[bool] = False
    printed_baseline: ClassVar[float | None] = None

    def value(self, s: ArrayLike, R: ArrayLike) -> float | Floats:
        """phi(s, R): a float for one list, otherwise an array.

        Parameters
        ----------
        s : array_like
            The scores.
        R : array_like
            The relevance.

        Returns
        -------
        float or ndarray of float
            One value for each list.
        """
        values = np.asarray(self._value(*read(s, R)))
        return float(values) if values.ndim == 0 else values

    def gradient(self, s: ArrayLike, R: ArrayLike) -> Floats:
        """The gradient of phi(s, R) with respect to s.

        Parameters
        ----------
        s : array_like
            The scores.
        R : array_like
            The relevance.

        Returns
        -------
        ndarray of float
            One slope for each score.
        """
        return self._gradient(*read(s, R))

    def h(self, s: ArrayLike, indices: Sequence[int] | Ints, labels: ArrayLike) -> Floats:
        """One term of Lemma 1: h_{i_1, ..., i_level}(R_{i_1}, ..., R_{i_level}), a vector as long as s.

        The gradient is the sum of h over all ordered tuples of `level` different items.

        Parameters
        ----------
        s : array_like
            The scores of one list.
        indices : sequence of int or ndarray of int
            The items of the term.
        labels : array_like
            Their labels.

        Returns
        -------
        ndarray of float
            The term, a number for each score.
        """
        scores = one_list("s", s)
        items, grades = np.asarray(indices, dtype=np.int64), one_list("labels", labels)
        if self.level is None:
            raise ValueError(f"the gradient of {self.name} does not decompose: {self.reason}")
        if items.shape != (self.level,) or grades.shape != (self.level,):
            raise ValueError(
                f"{self.name} decomposes over {self.level} labels at a time, "
                f"got indices={items.tolist()}, labels={grades.tolist()}"
            )
        if len(set(items.tolist())) < self.level or not ((items >= 0) & (items < len(scores))).all():
            raise ValueError(
                f"indices must be different items of a list of {len(scores)}, got {items.tolist()}"
            )
        return self._h(scores, items, grades)

    @abc.abstractmethod
    def _value(self, s: Floats, R: Floats) -> Floats: ...

    @abc.abstractmethod
    def _gradient(self, s: Floats, R: Floats) -> Floats: ...

    def _h(self, s: Floats, items: Ints, labels: Floats) -> Floats:
        raise NotImplementedError(f"{type(self).__name__} has level {self.level} and so needs h")


def read(s: ArrayLike, R: ArrayLike) -> tuple[Floats, Floats]:
    """Scores and relevance as numbers, lists of the same length."""
    scores, relevance = _finite("s", s), _finite("R", R)
    if scores.shape[-1] != relevance.shape[-1]:
        raise ValueError(f"s scores {scores.shape[-1]} items but R is given for {relevance.shape[-1]}")
    return scores, relevance


def one_list(argument: str, given: ArrayLike) -> Floats:
    """`given` as the numbers of a single list."""
    array = _finite(argument, given)
    if array.ndim != 1:
        raise ValueError(f"{argument} must be one list, got shape {array.shape}")
    return array


def exp2_gain(R: Floats) -> Floats:
    """G(R) = 2^R - 1."""
    if (R > HIGHEST_GRADE).any():
        raise ValueError(f"relevance must be at most {HIGHEST_GRADE:g}, or 2^R overflows; got {R.max():g}")
    gains: Floats = np.exp2(R) - 1.0
    return gains


def softmax(v: Floats) -> Floats:
    """exp(v_i) / sum of exp(v_j) along the last axis. The largest exponent is 0, so nothing overflows."""
    weights = np.exp(v - v.max(axis=-1, keepdims=True))
    shares: Floats = weights / weights.sum(axis=-1, keepdims=True)
    return shares


def unit(m: int, i: int) -> Floats:
    """e_i, the standard basis vector of R^m along coordinate i."""
    e = np.zeros(m)
    e[i] = 1.0
    return e


def _finite(argument: str, given: ArrayLike) -> Floats:
    array = numbers(argument, given)
    if array.ndim == 0 or array.shape[-1] == 0:
        raise ValueError(f"{argument} must list one number per item, got {given!r}")
    if not np.isfinite(array).all():
        raise ValueError(f"{argument} must be finite, got {given!r}")
    return array
