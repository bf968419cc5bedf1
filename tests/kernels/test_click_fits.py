"""The likeliest attraction of each group, beside a slow search on the likelihood itself."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from rankloop.kernels import click_fits


def test_every_group_is_at_the_maximum_of_its_likelihood() -> None:
    rng = np.random.default_rng(8)
    sizes = [0, 1, 3, 6, 2, 4, 1, 1]
    starts = np.append(0, np.cumsum(sizes))
    n = int(starts[-1])
    weights = np.array([1.0, 0.7, 0.4, 0.0, 0.1])
    other = rng.integers(5, size=n)
    shown = rng.integers(1, 60, n)
    clicked = rng.binomial(shown, 0.5 * weights[other]).astype(np.float64)
    clicked[starts[4] : starts[5]] = 0.0  # never clicked
    missed = shown - clicked
    other[-2:], clicked[-2:], missed[-2:] = 1, (40.0, 5.0), (0.0, 1.0)  # clicked more often than examined
    for liked, disliked in ((0.0, 0.0), (0.3, 0.7), (1.0, 0.0)):
        x = rng.random(len(sizes))
        click_fits.likeliest(starts, other, weights, clicked, missed, liked, disliked, x)
        for g in range(len(sizes)):
            here = slice(starts[g], starts[g + 1])
            hits, loss, w = clicked[here], missed[here], weights[other[here]]

            def badness(at: float, hits=hits, loss=loss, w=w, liked=liked, disliked=disliked) -> float:  # type: ignore[no-untyped-def]
                told = (hits[w > 0] * np.log(at * w[w > 0])).sum() + (loss * np.log1p(-at * w)).sum()
                return -float(told + liked * np.log(at) + disliked * np.log1p(-at))

            if hits.sum() + liked == 0.0:
                assert x[g] == 0.0
                continue
            best = minimize_scalar(
                badness, bounds=(1e-9, 1 - 1e-9), method="bounded", options={"xatol": 1e-10}
            )
            assert abs(x[g] - best.x) < 1e-4
            assert badness(np.clip(x[g], 1e-9, 1 - 1e-9)) <= best.fun + 1e-9 * abs(best.fun)
        if disliked == 0.0:
            assert x[-1] == x[-2] == 1.0
