"""What rankers with weights for features have in common: requests, falling steps and rates, and saved weights."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import numbers, one_of
from rankloop.base import Floats, Ints, Memo
from rankloop.compiled import CompiledRanker, Limits
from rankloop.features import (
    LARGEST_FEATURE,
    SparseRows,
    dense_rows,
    is_sparse,
    read_features,
    read_sparse,
)
from rankloop.kernels import elementary
from rankloop.kernels.call_checks import within
from rankloop.kernels.jit import kernel
from rankloop.kernels.rows import score

# What rankers with weights for features have in common.


_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
_LARGEST = float(np.finfo(np.float64).max)


class Weighted(Protocol):
    """Something that has weights of features, such as the result of `logs.fit_ranker`."""

    @property
    def weights(self) -> Floats:
        """One for each feature."""
        ...


WarmStart = ArrayLike | Weighted


def read_start(warm_start: WarmStart | None, n_features: int, *, radius: float = np.inf) -> Floats:
    """The weights to begin with: 0 where none are given. ValueError unless they are in the ball of `radius`."""
    if warm_start is None:
        return np.zeros(n_features)
    start = np.array(numbers("warm_start", getattr(warm_start, "weights", warm_start)))
    if start.shape != (n_features,) or not np.isfinite(start).all():
        raise ValueError(
            f"warm_start must be {n_features} finite weights, one for each feature, got {warm_start!r:.200}"
        )
    if np.linalg.norm(start) > radius:
        raise ValueError(f"warm_start must be in the ball of radius {radius:g}, got {warm_start!r:.200}")
    return start


def finite_limits(*parts: Floats) -> list[Limits]:
    """Limits of a ticket in which no number of these parts is infinite or NaN."""
    return [("memo must be finite", part.ravel(), -_LARGEST, _LARGEST) for part in parts]


@kernel
def score_rows(features: Any, w: Any, scores: Any) -> None:
    """X w, into `scores`."""
    score(features, w, scores)


class LinearRanker(CompiledRanker):
    """Scores items by X w, for lists of any length; `state.w` are the weights."""

    n_features: int
    n_positions = None

    def read_context(self, context: Any) -> tuple[int, Any]:
        if self._is_ordinary(context):
            return len(context), context
        if is_sparse(context):
            if not self.takes_sparse:
                raise ValueError(
                    f"{type(self).__name__} takes dense features, got sparse ones: {context!r:.80}"
                )
            rows = read_sparse("context", context, self.n_features)
            return rows.shape[0], rows
        features = read_features(context, self.n_features)
        return len(features), features

    def _is_ordinary(self, context: Any) -> bool:
        # As nearly all requests are: nothing to convert, and no message to write.
        return (
            type(context) is np.ndarray
            and context.dtype in _FLOATS
            and context.ndim == 2
            and context.shape[0] > 0
            and context.shape[1] == self.n_features
            and context.flags.c_contiguous
            and within(context.ravel(), -LARGEST_FEATURE, LARGEST_FEATURE)
        )

    def keep_request(self, request: Any) -> Memo:
        if isinstance(request, SparseRows):
            return request.data.copy(), request.indices.copy(), request.indptr.copy()
        return super().keep_request(request)

    def kept_request(self, kept: Memo, n: int) -> tuple[int, Any]:
        if self.takes_sparse and len(kept) == 3:
            return self.read_context(SparseRows(*kept, (n, self.n_features)))
        return super().kept_request(kept, n)

    def dense_context(self, context: Any) -> NDArray[Any]:
        """The request as dense rows, for what is not done every round."""
        _, features = self.read_context(context)
        return dense_rows(features) if isinstance(features, SparseRows) else features

    def weights_now(self) -> Floats | None:
        return np.array(self.state.w)

    def scores(self, context: Any) -> Floats:
        """X w, with the same bytes on every processor."""
        n, features = self.read_context(context)
        scores = np.empty(n)
        score_rows(features, self.state.w, scores)
        return scores

    def current(self, context: Any = None) -> Ints:
        return np.argsort(-self.scores(context), kind="stable")

    def example_context(self, rng: np.random.Generator) -> Any:
        return rng.random((int(rng.integers(1, 9)), self.n_features)) / self.n_features


# Step sizes and exploration rates that decrease with the rounds: scale * t**-power.


class Schedule(NamedTuple):
    """scale * t**-power at round t, counted from 1.

    >>> Schedule(0.1, 1 / 3).at(8)
    0.05
    """

    scale: float
    power: float = 0.0

    def at(self, t: int) -> float:
        """The value at round t."""
        return float(self.scale * elementary.power(t, -self.power))


class Smoothing(NamedTuple):
    """RTop-kF's epsilon: a schedule or None, where it ends, and whether it follows the width of the scores."""

    epsilon: Schedule | None
    floor: float
    relative: bool


def read_schedule(name: str, given: float | tuple[float, float], *, positive: bool = True) -> Schedule:
    """A number stays as it is; a pair is scale and power."""
    pair = given if isinstance(given, tuple | list) else (given, 0.0)
    good = len(pair) == 2 and all(isinstance(part, int | float | np.number) for part in pair)
    scale, power = pair if good else (np.nan, np.nan)
    if not (
        np.isfinite(scale) and np.isfinite(power) and power >= 0 and (scale > 0 if positive else scale >= 0)
    ):
        raise ValueError(
            f"{name} must be a positive number, or a pair (scale, power) for scale * t**-power, got {given!r}"
        )
    return Schedule(float(scale), float(power))


def is_adaptive(learning_rate: Any) -> bool:
    """Whether the steps are AdaGrad's."""
    return isinstance(learning_rate, str) and learning_rate == "adagrad"


def read_steps(learning_rate: str | float | tuple[float, float]) -> Schedule | None:
    """The schedule of the steps; None for AdaGrad's."""
    if isinstance(learning_rate, str):
        one_of("learning_rate", learning_rate, ("adagrad",))
        return None
    return read_schedule("learning_rate", learning_rate)


def read_papers_schedule(
    name: str,
    given: str | float | tuple[float, float],
    camera_ready: Schedule,
    power: float,
    horizon: int | None,
) -> Schedule:
    """A schedule of one's own, or one of the two that RTop-kF was published with."""
    if not isinstance(given, str):
        return read_schedule(name, given)
    one_of(name, given, ("camera-ready", "preprint"))
    if given == "camera-ready":
        return camera_ready
    if horizon is None:
        raise ValueError(f"{name}='preprint' is a constant made from T: it needs a horizon, got None")
    return Schedule(float(elementary.power(horizon, -power)))


def check_scaled_weights(saved: Any, radius: float, start: Floats) -> None:
    """ValueError unless AdaGrad can have left such a state."""
    if saved["t"][0] < 0:
        raise ValueError(f"saved state 't' must not be negative, got {saved['t'][0]}")
    for name in ("squares", "scale"):
        if not ((saved[name] >= 0) & np.isfinite(saved[name])).all():
            raise ValueError(f"saved state {name!r} must be finite and not negative, got {saved[name]}")
    # A weight far from 0 beside its radius is rounded, by a part of itself.
    most = radius * (1 + 1e-9) + 1e-12 * np.abs(start) * saved["scale"]
    if not (np.abs(saved["w"] - start) * saved["scale"] <= most).all():
        raise ValueError(
            f"saved state 'w' must be within {radius:g} of its start, times 'scale', got {saved['w']}"
        )


def check_weights(saved: Any, radius: float) -> None:
    """ValueError unless saved weights are in the ball and the rounds are not negative."""
    if saved["t"][0] < 0:
        raise ValueError(f"saved state 't' must not be negative, got {saved['t'][0]}")
    if np.linalg.norm(saved["w"]) > radius * (1 + 1e-9):
        raise ValueError(f"saved state 'w' must be in the ball of radius {radius:g}, got {saved['w']}")
