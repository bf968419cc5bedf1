"""Whether clicks tell which of two items is the better one, where nobody knows how positions are examined.

A list that is always shown in one order fits a good item at a good position as well as a better item at a worse one.
The likelihood knows: the best fit under which both items are equally attractive is then hardly less likely than the
best fit of all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.kernels.elementary import log
from rankloop.kernels.jit import apart, hot
from rankloop.kernels.solvers.pbm_likelihood import fit

_SWEEPS = 10
_LEAST = 1e-300


class OrderRoom(NamedTuple):
    """Room to work in; never state."""

    S: NDArray[np.float64]  # clicks and displays, those of two items added up
    N: NDArray[np.float64]
    theta: NDArray[np.float64]
    kappa: NDArray[np.float64]


def room(n: int, m: int) -> OrderRoom:
    """Room for `n` items on `m` positions."""
    return OrderRoom(np.empty((m, n)), np.empty((m, n)), np.empty(n), np.empty(m))


def room_bytes(n: int, m: int) -> int:
    """Bytes of the room for `n` items on `m` positions."""
    return 8 * (2 * m * n + n + m)


@apart
def order_gap(S: Any, N: Any, theta: Any, kappa: Any, a: int, b: int, room: Any) -> Any:
    """By how much the log likelihood of `theta` and `kappa` exceeds that of the best fit where a and b are alike."""
    m, n = S.shape
    for i in range(n):
        room.theta[i] = theta[i]
        for j in range(m):
            room.S[j, i] = S[j, i]
            room.N[j, i] = N[j, i]
    for j in range(m):
        room.kappa[j] = kappa[j]
        room.S[j, a] += S[j, b]
        room.N[j, a] += N[j, b]
        room.S[j, b] = 0.0
        room.N[j, b] = 0.0
    fit(room.S, room.N, room.theta, room.kappa, _SWEEPS)
    return log_likelihood(S, N, theta, kappa) - log_likelihood(room.S, room.N, room.theta, room.kappa)


@hot
def log_likelihood(S: Any, N: Any, theta: Any, kappa: Any) -> Any:
    """The logarithm of the chance of these clicks, up to a constant."""
    total = 0.0
    for j in range(len(kappa)):
        for i in range(len(theta)):
            p, missed = theta[i] * kappa[j], N[j, i] - S[j, i]
            if S[j, i] > 0.0:
                total += S[j, i] * log(max(p, _LEAST))
            if missed > 0.0:
                total += missed * log(max(1.0 - p, _LEAST))
    return total
