"""Queries that come one by one, and users who click on the first documents of each list."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.environments.click_users import draw_clicks
from rankloop.kernels.jit import hot


class ClickedQueriesParams(NamedTuple):
    """Those of a query stream, the grade of each document, and how users of a document of that grade behave."""

    features: Any  # an array, or `SparseRows`
    relevance: NDArray[np.float64]
    offsets: NDArray[np.int64]
    order: int
    measure: int
    discount: NDArray[np.float64]
    cutoff: int
    max_grade: int
    gains: NDArray[np.float64]
    query_offset: NDArray[np.float64]
    best: NDArray[np.float64]
    grades: NDArray[np.int64]
    n_shown: int
    browsing: Any  # tables by grade


@hot
def respond(params: Any, state: Any, items: Any, key: Any, revealed: Any) -> None:
    """Clicks on the documents that are shown."""
    start, stop = params.offsets[state.query[0]], params.offsets[state.query[0] + 1]
    n_shown = min(params.n_shown, stop - start)
    draw_clicks(params.browsing, params.grades, start, items, n_shown, key, revealed)
