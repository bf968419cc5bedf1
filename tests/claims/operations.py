"""Lines of kernel code that a round runs, counted in plain Python: `python -m tests.claims.operations`.

Needs NUMBA_DISABLE_JIT=1. Every line is a constant amount of work, so the count is the time up to a constant, on any
machine. Prints the counts as JSON, by ranker and number of items.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from rankloop import rankers
from rankloop.kernels import sorting

SIZES = (256, 512, 1024, 2048)
SHORT = (32, 64, 128)  # up to here every item is compared with every other


def count_above(values: Any, n: int, counts: Any) -> None:
    """What the kernel of this name does, eight at a time: its twin is one line, however many there are."""
    for i in range(0, n, 8):
        counts[i : min(n, i + 8)] = 0
        for j in range(n):
            counts[i : min(n, i + 8)] += values[j] > values[i : min(n, i + 8)]


def lines(call: Callable[[], Any]) -> int:
    """How many lines of kernels, shared or a ranker's own, are run by a call."""
    count = 0

    def inside(frame: Any, event: str, _: Any) -> Any:
        nonlocal count
        count += event == "line"
        return inside

    def outside(frame: Any, event: str, _: Any) -> Any:
        code = frame.f_code
        kernels = any(folder in code.co_filename for folder in ("rankloop/kernels", "rankloop/rankers"))
        return inside if kernels or code is count_above.__code__ else None

    sys.settrace(outside)
    try:
        call()
    finally:
        sys.settrace(None)
    return count


def rtop1f(m: int) -> int:
    ranker, rng = rankers.RTop1F(n_items=m, horizon=100 * m * m, measure="dcg"), np.random.default_rng(1)
    ranker.state.s_hat[:] = rng.random(m)

    def play() -> None:
        shown = ranker.rank(rng=rng)
        ranker.learn(shown, [1.0])

    return lines(play)


def rtopkf(m: int) -> int:
    ranker, rng = rankers.RTopKF(n_features=3, surrogate="squared", k=1), np.random.default_rng(1)
    ranker.state.w[:] = 0.1
    documents = rng.random((m, 3))

    def play() -> None:
        shown = ranker.rank(documents, rng=rng)
        ranker.learn(shown, [1.0])

    return lines(play)


def every_pair(m: int) -> int:
    """The sort of short lists, used for long ones: each item is compared with all others."""
    scores, items = np.random.default_rng(1).random(m), np.empty(m, np.int64)
    return lines(lambda: sorting.by_count(scores, m, items, np.empty(m, np.int64)))


if __name__ == "__main__":
    sorting.count_above = count_above
    found = {
        "RTop1F": {m: rtop1f(m) for m in (*SHORT, *SIZES)},
        "RTopKF": {m: rtopkf(m) for m in (*SHORT, *SIZES)},
        "every pair": {m: every_pair(m) for m in (256, 512)},
    }
    print(json.dumps(found))
