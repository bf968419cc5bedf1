"""What rankers with weights for features have in common."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import numbers
from rankloop.base import Floats, Ints, Memo
from rankloop.compiled import CompiledRanker
from rankloop.features import (
    LARGEST_FEATURE,
    SparseRows,
    dense_rows,
    is_sparse,
    read_features,
    read_sparse,
)
from rankloop.kernels.call_checks import within

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


def all_finite(*parts: Floats) -> bool:
    """Whether no number of a ticket is infinite or NaN."""
    return all(within(part.ravel(), -_LARGEST, _LARGEST) for part in parts)


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
        """X w, added up entry after entry: a product of matrices is not the same on every processor."""
        total: Floats = np.cumsum(self.dense_context(context) * self.state.w, axis=1)[:, -1]
        return total

    def current(self, context: Any = None) -> Ints:
        return np.argsort(-self.scores(context), kind="stable")

    def example_context(self, rng: np.random.Generator) -> Any:
        return rng.random((int(rng.integers(1, 9)), self.n_features)) / self.n_features
