"""Clicks counted by position and item: S[j, i] clicks in N[j, i] displays of item i at position j."""

from __future__ import annotations

from typing import Any

from rankloop.kernels.jit import hot, inlined


@inlined
def count(S: Any, N: Any, items: Any, clicks: Any) -> None:
    """Add one round: what was shown at each position, and whether it was clicked there."""
    for j in range(len(items)):
        N[j, items[j]] += 1.0
        S[j, items[j]] += clicks[j]


@inlined
def clicks_and_looks(S: Any, N: Any, kappa: Any, i: int, clicks: float, looks: float) -> Any:
    """The clicks on item i and how often it was examined, if position j is with chance kappa_j; added to what is given.

    With S and N transposed, and attractions for examinations, the same of a position.
    """
    for j in range(len(kappa)):
        clicks += S[j, i]
        looks += kappa[j] * N[j, i]
    return clicks, looks


@hot
def first_unseen(N: Any) -> int:
    """The first item that was never shown at the first position; -1 once each was.

    The circular lists that begin with each item in turn show every item at every position.
    """
    for i in range(N.shape[1]):
        if N[0, i] == 0.0:
            return i
    return -1
