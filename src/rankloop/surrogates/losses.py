"""Surrogates: losses that replace a ranking measure and have a gradient; by name, and what feedback each needs."""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import number, numbers, whole
from rankloop.kernels.discounts import by_logarithm

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
        """phi(`s`, `R`): a float for one list, otherwise an array."""
        values = np.asarray(self._value(*read(s, R)))
        return float(values) if values.ndim == 0 else values

    def gradient(self, s: ArrayLike, R: ArrayLike) -> Floats:
        """The gradient of phi(`s`, `R`) with respect to s."""
        return self._gradient(*read(s, R))

    def h(self, s: ArrayLike, indices: Sequence[int] | Ints, labels: ArrayLike) -> Floats:
        """One term of Lemma 1: h_{i_1, ..., i_level}(R_{i_1}, ..., R_{i_level}), a vector as long as s.

        The gradient at `s` is the sum of h over all ordered tuples of `level` different items, `indices` with their
        `labels`.
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


def one_list(argument: str, values: ArrayLike) -> Floats:
    """The numbers of a single list."""
    array = _finite(argument, values)
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


def _finite(argument: str, values: ArrayLike) -> Floats:
    array = numbers(argument, values)
    if array.ndim == 0 or array.shape[-1] == 0:
        raise ValueError(f"{argument} must list one number per item, got {values!r}")
    if not np.isfinite(array).all():
        raise ValueError(f"{argument} must be finite, got {values!r}")
    return array


class SquaredLoss(Surrogate):
    """||gap||^2, where the gap moves with the scores one to one, so that the gradient is 2 gap."""

    @abc.abstractmethod
    def _gap(self, s: Floats, R: Floats) -> Floats: ...

    def _value(self, s: Floats, R: Floats) -> Floats:
        total: Floats = (self._gap(s, R) ** 2).sum(axis=-1)
        return total

    def _gradient(self, s: Floats, R: Floats) -> Floats:
        return 2.0 * self._gap(s, R)


@dataclass(frozen=True)
class Squared(SquaredLoss):
    """||s - R||^2 (Cossock and Zhang 2006). Pointwise and convex; one label at a time is enough.

    >>> Squared().value([1.0, 0.0], [2, 0]), Squared().gradient([1.0, 0.0], [2, 0])
    (1.0, array([-2., 0.]))
    """

    name = "squared"
    level = 1
    reason = "its gradient 2(s - R) is a sum over items of terms with one label each (section 4.1)"
    convex = True
    # Section 4.1 keeps 2s and estimates R alone, which is the control variate R_hat = 0 (erratum B6).
    printed_baseline = 0.0

    def _gap(self, s: Floats, R: Floats) -> Floats:
        return s - R

    def _h(self, s: Floats, items: Ints, labels: Floats) -> Floats:
        (i,), (R_i,) = items, labels
        h: Floats = 2.0 * (s[i] - R_i) * unit(len(s), i)
        return h


@dataclass(frozen=True)
class CentredSquared(SquaredLoss):
    """||(s - mean of s) - (R - mean of R)||^2. Listwise and convex; one label at a time is enough.

    The squared loss asks scores to equal labels, which costs a linear ranker its weights where labels are high or low
    in a whole list. An order depends on differences alone, and so does this loss: it is half of the mean over j of
    the sum over i of ((s_i - s_j) - (R_i - R_j))^2.

    >>> CentredSquared().value([5.0, 4.0], [1, 0]), CentredSquared().gradient([0.0, 0.0], [1, 0])
    (0.0, array([-1.,  1.]))
    """

    name = "centred_squared"
    level = 1
    reason = "its gradient is the sum over items of 2(s_i - R_i)(e_i - 1/m), terms with one label each"
    convex = True

    def _gap(self, s: Floats, R: Floats) -> Floats:
        gap = s - R
        return np.asarray(gap - gap.mean(axis=-1, keepdims=True))

    def _h(self, s: Floats, items: Ints, labels: Floats) -> Floats:
        (i,), (R_i,), m = items, labels, len(s)
        h: Floats = 2.0 * (s[i] - R_i) * (unit(m, i) - 1.0 / m)
        return h


@dataclass(frozen=True)
class RankSVM(Surrogate):
    """Sum over pairs with R_i > R_j of max(0, 1 + s_j - s_i). Pairwise and convex; needs two labels at a time.

    The hinge loss of Joachims (2002). At a kink, 1 + s_j = s_i, the gradient is the paper's subgradient: the pair
    counts as settled.

    >>> RankSVM().value([0.0, 0.5], [1, 0]), RankSVM().gradient([0.0, 0.5], [1, 0])
    (1.5, array([-1., 1.]))
    """

    name = "ranksvm"
    level = 2
    reason = (
        "whether a pair counts depends on both of its labels, so the gradient cannot be written as a sum of terms "
        "with one label each (Lemma 2)"
    )
    convex = True

    def _value(self, s: Floats, R: Floats) -> Floats:
        hinge = np.maximum(0.0, 1.0 + s[..., None, :] - s[..., :, None])
        return np.asarray(np.where(R[..., :, None] > R[..., None, :], hinge, 0.0).sum(axis=(-2, -1)))

    def _gradient(self, s: Floats, R: Floats) -> Floats:
        # counts[i, j]: i ought to stand above j, and its score is not yet 1 higher.
        counts = (R[..., :, None] > R[..., None, :]) & (1.0 + s[..., None, :] > s[..., :, None])
        gradient: Floats = counts.sum(axis=-2).astype(np.float64) - counts.sum(axis=-1)
        return gradient

    def _h(self, s: Floats, items: Ints, labels: Floats) -> Floats:
        (i, j), (R_i, R_j), m = items, labels, len(s)
        if R_i > R_j and 1.0 + s[j] > s[i]:
            return unit(m, j) - unit(m, i)
        return np.zeros(m)


@dataclass(frozen=True)
class KL(Surrogate):
    """Sum of e^R_i (R_i - s_i) - e^R_i + e^s_i. Listwise in origin and convex; one label at a time is enough.

    The unnormalised Kullback-Leibler divergence: ListNet, changed so that it decomposes.

    Parameters
    ----------
    max_exponent : float, optional
        No exponential is taken of more than this, of a score or of a label (erratum B12: a step of size m /
        gamma can carry a score anywhere). Labels above it count as equal to it. Above it e^s goes on as its
        tangent, so the value stays convex and the gradient, then constant, stays its gradient.

    Examples
    --------
    >>> KL().value([1.0, 0.0], [1, 0]), KL().gradient([0.0, 0.0], [0, 1])
    (0.0, array([ 0. , -1.71828183]))
    >>> bool(np.isfinite(KL().gradient([1e5, 0.0], [4, 0])).all())
    True
    """

    max_exponent: float = 20.0

    name = "kl"
    level = 1
    reason = "its gradient e^s - e^R is a sum over items of terms with one label each (section 4.1)"
    convex = True

    def __post_init__(self) -> None:
        number("max_exponent", self.max_exponent, above=0, at_most=300)

    def _exp(self, v: Floats) -> Floats:
        return np.exp(np.minimum(v, self.max_exponent))

    def _value(self, s: Floats, R: Floats) -> Floats:
        labels = np.minimum(R, self.max_exponent)
        tangent = math.exp(self.max_exponent) * np.maximum(s - self.max_exponent, 0.0)
        terms = self._exp(R) * (labels - s - 1.0) + self._exp(s) + tangent
        total: Floats = terms.sum(axis=-1)
        return total

    def _gradient(self, s: Floats, R: Floats) -> Floats:
        return self._exp(s) - self._exp(R)

    def _h(self, s: Floats, items: Ints, labels: Floats) -> Floats:
        (i,) = items
        h: Floats = (self._exp(s[items]) - self._exp(labels)) * unit(len(s), i)
        return h


@dataclass(frozen=True)
class SmoothDCG(Surrogate):
    """Sum of q_i (2^R_i - 1) with q = softmax(s / epsilon). A gain, and not convex; one label at a time is enough.

    Chapelle and Wu (2010). The paper lists it among losses; it is the expected gain of the top item, so climb it
    (erratum B3).

    Parameters
    ----------
    epsilon : float, optional
        How soft the choice is. As it falls to 0 the value becomes the DCG@1 of the scores, and the gradient
        vanishes wherever one score leads by a few epsilon. The paper fixes 0.01, which saturates at once for
        scores of ordinary size; the default here is 1 (erratum B4).

    Examples
    --------
    >>> SmoothDCG().value([0.0, 0.0], [1, 0]), SmoothDCG().gradient([0.0, 0.0], [1, 0])
    (0.5, array([ 0.25, -0.25]))
    >>> SmoothDCG(epsilon=1e-5).value([1.0, 0.0], [1, 0])
    1.0
    """

    epsilon: float = 1.0

    name = "smooth_dcg"
    level = 1
    reason = "its gradient is linear in the gains 2^R_i - 1 of the single items (section 4.1.1)"
    convex = False
    is_gain = True

    def __post_init__(self) -> None:
        number("epsilon", self.epsilon, above=0)

    def _softmax(self, s: Floats) -> Floats:
        # The lead over the best score is taken before dividing, so that even s / epsilon need not be finite.
        with np.errstate(over="ignore"):  # -inf stands for a weight of 0
            return softmax((s - s.max(axis=-1, keepdims=True)) / self.epsilon)

    def _value(self, s: Floats, R: Floats) -> Floats:
        total: Floats = (self._softmax(s) * exp2_gain(R)).sum(axis=-1)
        return total

    def _gradient(self, s: Floats, R: Floats) -> Floats:
        q, G = self._softmax(s), exp2_gain(R)
        gradient: Floats = q * (G - (q * G).sum(axis=-1, keepdims=True)) / self.epsilon
        return gradient

    def _h(self, s: Floats, items: Ints, labels: Floats) -> Floats:
        (i,), q = items, self._softmax(s)
        h: Floats = exp2_gain(labels) * q[i] * (unit(len(s), i) - q) / self.epsilon
        return h


@dataclass(frozen=True)
class ListNet(Surrogate):
    """-sum of P_i(R) log P_i(s) with P = softmax. Listwise and convex; needs the labels of the whole list.

    The cross-entropy between two ways to choose the top item (Cao and others 2007). P takes the labels R as they are,
    not the gains 2^R - 1 (erratum B19).

    >>> ListNet().gradient([0.0, 0.0], [0, 0])
    array([0., 0.])
    """

    name = "listnet"
    level = None
    reason = (
        "each entry divides by the sum of e^R over the whole list, which is not a sum of terms with fewer labels "
        "(Lemma 3); kl is its form without that sum, and needs the label of the top item only"
    )
    convex = True

    def _value(self, s: Floats, R: Floats) -> Floats:
        shifted = s - s.max(axis=-1, keepdims=True)
        log_P = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
        total: Floats = -(softmax(R) * log_P).sum(axis=-1)
        return total

    def _gradient(self, s: Floats, R: Floats) -> Floats:
        return softmax(s) - softmax(R)


@dataclass(frozen=True)
class CalibratedSquared(SquaredLoss):
    """||s - G(R) / Z(R)||^2, with G(R) = 2^R - 1 and Z(R) the largest DCG that any order reaches. Convex.

    Its minimiser in expectation ranks optimally for NDCG (Ravikumar and others 2011). It needs the labels of the whole
    list, and no learner can do with much less: see `reason`. Where nothing is relevant, Z(R) = 0 and the target is 0.

    >>> CalibratedSquared().gradient([0.0, 0.0, 0.0], [1, 0, 0])
    array([-2., 0., 0.])
    """

    name = "calibrated_squared"
    level = None
    reason = (
        "Z(R) depends on every label. Under top-1 feedback the regret of every learner can grow in proportion to time "
        "(Theorem 5.2), and the same holds for the top k of m items while k <= m - 2, and with three grades for every "
        "k < m (erratum B17)"
    )
    convex = True

    def target(self, R: ArrayLike) -> Floats:
        """G(`R`) / Z(R), the scores that fit R exactly."""
        return self._target(read(R, R)[1])

    def _target(self, R: Floats) -> Floats:
        if (R < 0.0).any():
            raise ValueError(f"relevance must not be negative for {self.name}, got {R.min():g}")
        G = exp2_gain(R)
        Z = (-np.sort(-G, axis=-1) * by_logarithm(R.shape[-1])).sum(axis=-1, keepdims=True)
        target: Floats = np.divide(G, Z, out=np.zeros_like(G), where=Z > 0.0)
        return target

    def _gap(self, s: Floats, R: Floats) -> Floats:
        return s - self._target(R)


_SURROGATES: dict[str, type[Surrogate]] = {
    kind.name: kind for kind in (Squared, CentredSquared, RankSVM, KL, SmoothDCG, ListNet, CalibratedSquared)
}


def names() -> list[str]:
    """Every surrogate."""
    return list(_SURROGATES)


def get(name: str | Surrogate, **parameters: float) -> Surrogate:
    """The surrogate called `name`, with `parameters` such as `epsilon` of "smooth_dcg"; a surrogate as it is.

    Examples
    --------
    >>> get("squared")
    Squared()
    >>> get("smooth_dcg", epsilon=0.1)
    SmoothDCG(epsilon=0.1)
    """
    if isinstance(name, Surrogate):
        if parameters:
            raise ValueError(f"{name!r} is already made; it takes no further parameters, got {parameters}")
        return name
    kind = _SURROGATES.get(name)
    if kind is None:
        raise ValueError(f"surrogate {name!r} is not known; known are {', '.join(_SURROGATES)}")
    known = [field.name for field in dataclasses.fields(kind)]
    unknown = [parameter for parameter in parameters if parameter not in known]
    if unknown:
        raise ValueError(f"{name} has no parameter {unknown[0]!r}; it has {', '.join(known) or 'none'}")
    return kind(**parameters)


def require(surrogate: str | Surrogate, k: int | None) -> Surrogate:
    """The `surrogate`, if the labels of the top `k` are enough for it; otherwise a ValueError that says why not.

    `k=None` stands for the labels of the whole list.

    Examples
    --------
    >>> require("ranksvm", 2)
    RankSVM()
    >>> require("ranksvm", 1)
    Traceback (most recent call last):
    ValueError: ranksvm needs k >= 2, got k=1: whether a pair counts depends on both of its labels, ...
    """
    wanted = get(surrogate)
    if k is None:
        return wanted
    k = whole("k", k, at_least=1)
    if wanted.level is None:
        raise ValueError(f"{wanted.name} needs the labels of the whole list, got k={k}: {wanted.reason}")
    if k < wanted.level:
        raise ValueError(f"{wanted.name} needs k >= {wanted.level}, got k={k}: {wanted.reason}")
    return wanted
