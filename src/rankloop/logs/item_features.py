"""The features of items that a fitted ranker is asked about."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import numbers


def item_features(features: ArrayLike, n_features: int) -> NDArray[np.float64]:
    """Items by features, as many as were fitted.

    Parameters
    ----------
    features : array_like
        As they were given.
    n_features : int
        How many each item must have.

    Returns
    -------
    ndarray of float
        Items by features.

    Raises
    ------
    ValueError
        Where their shape is another one.
    """
    given = numbers("features", features)
    if given.ndim != 2 or given.shape[1] != n_features:
        raise ValueError(f"features must be items by {n_features} features, got shape {given.shape}")
    return given
