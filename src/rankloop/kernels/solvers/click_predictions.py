"""The chance of a click at each position of many pages, for any of the click models as one general user.

The user reads from the top. While they read, they look at position j with a chance that depends on the last click above
it. Having looked, they click: with the chance `true[j]` if the item attracts them, and `false[j]` if not. Then they
read on or leave. One who does not look reads on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from rankloop.kernels.jit import hot


class User(NamedTuple):
    """All chances; the attraction and the satisfaction by item, the others by position."""

    alpha: Any
    sat: Any
    looks: Any  # by position and last click: column 0 for none above, column r for the r-th position
    true: Any
    false: Any
    none: Any
    g0: Any
    g1: Any


@hot
def predict(pairs: Any, clicks: Any, user: User, reading: Any, given: Any, alone: Any) -> None:
    """Fill `given` with the chances given the clicks above, and `alone` with those that nothing is known of.

    Items that are not on the page have a pair of -1 and get nothing. `reading` is room for one number per position and
    one more.
    """
    m = pairs.shape[1]
    for s in range(len(pairs)):
        last, still = 0, 1.0
        reading[:] = 0.0
        reading[0] = 1.0
        for j in range(m):
            i = pairs[s, j]
            if i < 0:
                break
            alpha, sat = user.alpha[i], user.sat[i]
            like = alpha * user.true[j] + (1.0 - alpha) * user.false[j]
            after = sat * user.g1[j] + (1.0 - sat) * user.g0[j]
            seen = user.looks[j, last]
            p = still * seen * like
            given[s, j] = p
            if clicks[s, j] == 1:
                last, still = j + 1, after
            else:
                rest = 1.0 - p
                stays = still * (seen * (1.0 - like) * user.none[j] + 1.0 - seen)
                still = stays / rest if rest > 0.0 else 0.0
            total = 0.0
            for r in range(j + 1):
                seen = user.looks[j, r]
                total += reading[r] * seen * like
                reading[r] *= seen * (1.0 - like) * user.none[j] + 1.0 - seen
            reading[j + 1] = total * after
            alone[s, j] = total
