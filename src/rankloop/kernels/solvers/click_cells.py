"""Clicks that depend on the item and on a context alone, such as the position: one step, on counts.

An item attracts with the chance alpha_i. In context k, one that attracts is clicked with the chance u_k, and one that
does not with the chance v_k.
"""

from __future__ import annotations

from typing import Any

from rankloop.kernels.elementary import log
from rankloop.kernels.jit import hot


@hot
def expect(
    items: Any, contexts: Any, shown: Any, clicked: Any, x: Any, u: Any, v: Any, hits: Any, tries: Any
) -> float:
    """Add to `hits` and `tries`, for each chance in `x`, how often it came true and was tried; the log likelihood.

    u[k] and v[k] say which number of `x` each is; -1 stands for a chance of 1, -2 for one of 0.
    """
    total = 0.0
    for c in range(len(items)):
        i, k = items[c], contexts[c]
        alpha = x[i]
        likes = 1.0 if u[k] == -1 else x[u[k]]
        errs = 0.0 if v[k] == -2 else x[v[k]]
        p = alpha * likes + (1.0 - alpha) * errs
        missed = shown[c] - clicked[c]
        attracted_click, attracted_miss = 0.0, 0.0
        if clicked[c] > 0.0:
            total += clicked[c] * log(p)
            attracted_click = clicked[c] * alpha * likes / p
        if missed > 0.0:
            total += missed * log(1.0 - p)
            attracted_miss = missed * alpha * (1.0 - likes) / (1.0 - p)
        hits[i] += attracted_click + attracted_miss
        tries[i] += shown[c]
        if u[k] >= 0:
            hits[u[k]] += attracted_click
            tries[u[k]] += attracted_click + attracted_miss
        if v[k] >= 0:
            hits[v[k]] += clicked[c] - attracted_click
            tries[v[k]] += shown[c] - attracted_click - attracted_miss
    return total
