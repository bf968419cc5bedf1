"""What rankers with weights for features have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankloop.compiled import CompiledRanker, read_features


class LinearRanker(CompiledRanker):
    """Scores items by X w, for lists of any length; `state.w` are the weights."""

    n_features: int
    n_positions = None

    def read_context(self, context: Any) -> tuple[int, Any]:
        features = read_features(context, self.n_features)
        return len(features), features

    def current(self, context: Any = None) -> NDArray[np.int64]:
        _, features = self.read_context(context)
        return np.argsort(-(features @ self.state.w), kind="stable")

    def example_context(self, rng: np.random.Generator) -> Any:
        return rng.random((int(rng.integers(1, 9)), self.n_features)) / self.n_features
