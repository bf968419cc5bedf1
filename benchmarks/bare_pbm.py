"""What no exact FTRL-PBM can do without, in compiled code: x and its column sums, twice a round.

Once to find that the multipliers of the round before no longer do, once to see that the new ones do. Not kept on disk,
for the same reason as `bare`.
"""

from __future__ import annotations

from typing import Any

import numba

from rankloop.kernels import hybrid, tsallis
from rankloop.kernels.jit import loop


@numba.njit(error_model="numpy", nogil=True)
def double_loop(rounds: int, L: Any, u: Any, v: Any, x: Any, columns: Any) -> None:
    """As anyone would write it with numba."""
    m, n = L.shape
    for t in range(1, rounds + 1):
        for _ in range(2):
            for j in range(m):
                total = 0.0
                for i in range(n):
                    D = L[j, i] + u[i] + v[j]
                    x[j, i] = t / (D * D)
                    total += x[j, i]
                columns[j] = total


@loop
def own_pass(rounds: int, L: Any, u: Any, v: Any, x: Any, rows: Any, scratch: Any) -> None:
    """With the kernel that the solver uses: vectors of eight, and row sums and slopes as well."""
    for t in range(1, rounds + 1):
        for _ in range(2):
            tsallis.evaluate(float(t), L, u, v, x, rows, scratch)


@loop
def hybrid_pass(rounds: int, L: Any, u: Any, v: Any, x: Any, rows: Any, scratch: Any) -> None:
    """The same for the hybrid regulariser."""
    for t in range(1, rounds + 1):
        for _ in range(2):
            hybrid.evaluate(0.5 * float(t), L, u, v, x, rows, scratch)
