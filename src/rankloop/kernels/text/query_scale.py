"""Features brought to one scale within each query."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankloop.kernels.jit import hot


@hot
def bounds(features: Any, queries: Any, marker: float, least: Any, most: Any) -> None:
    """Widen `least` and `most`, a row for each query, to what its documents have.

    Columns that the documents lack are 0; magnitudes from `marker` on do not count.
    """
    n_columns = features.shape[1]
    for i in range(len(queries)):
        low, high = least[queries[i]], most[queries[i]]
        for j in range(len(low)):
            value = np.float64(features[i, j]) if j < n_columns else 0.0
            if abs(value) < marker:
                low[j] = min(low[j], value)
                high[j] = max(high[j], value)


@hot
def place(features: Any, queries: Any, to: Any, least: Any, most: Any, rescale: bool, out: Any) -> None:
    """Write each document's features to row `to` of `out`, cut off at the bounds of its query.

    To `rescale`, write how far along from the one bound to the other they are, 0 where the bounds are the same.
    """
    n_columns = features.shape[1]
    for i in range(len(queries)):
        low, high, row = least[queries[i]], most[queries[i]], out[to[i]]
        for j in range(len(low)):
            value = np.float64(features[i, j]) if j < n_columns else 0.0
            if not low[j] <= high[j]:
                value = 0.0  # nothing but marks
            else:
                value = min(max(value, low[j]), high[j])
                if rescale:
                    span = high[j] - low[j]
                    if span == 0.0:
                        value = 0.0
                    elif span < np.inf:
                        value = (value - low[j]) / span
                    else:  # too wide for float64, but half of it is not
                        value = (0.5 * value - 0.5 * low[j]) / (0.5 * high[j] - 0.5 * low[j])
            row[j] = value
