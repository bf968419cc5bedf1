"""Queries whose features are mostly zero, dense and sparse."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from rankloop.features import sparse_rows


def rows(rng: np.random.Generator, n: int, d: int, dtype: Any = np.float64) -> np.ndarray:
    """A row of zeros and a feature that is nowhere zero among them, where there is room."""
    features = np.where(rng.random((n, d)) < 0.3, rng.normal(size=(n, d)), 0.0)
    if n > 2 and d > 2:
        features[1] = 0.0
        features[:, 2] = rng.random(n) + 0.5
    return features.astype(dtype)


def queries(rng: np.random.Generator, d: int, dtype: Any = np.float64) -> tuple[Any, Any]:
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 8, 15))])
    features = rows(rng, int(offsets[-1]), d, dtype)
    rest: dict[str, Any] = {"relevance": rng.integers(0, 3, len(features)).astype(float), "offsets": offsets}
    return SimpleNamespace(features=features, **rest), SimpleNamespace(features=sparse_rows(features), **rest)
