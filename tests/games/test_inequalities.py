"""Strict inequalities: what HiGHS suggests and what the exact simplex finds must both be proofs, of the same thing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankloop.games.inequalities import Mixture, by_simplex, decide, excludes


def _proves(found: object, D: np.ndarray, e: np.ndarray | None, interior: bool) -> bool:
    if isinstance(found, Mixture):
        return excludes(found, D, e)
    p = np.array(found, dtype=object)
    lowest = 1 if interior else 0
    return bool(p.min() >= lowest and (D @ p > 0).all() and (e is None or e @ p == 0))


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**9), st.booleans(), st.booleans())
def test_both_ways_decide_alike(seed: int, with_equality: bool, interior: bool) -> None:
    rng = np.random.default_rng(seed)
    D = rng.integers(-2, 3, (rng.integers(1, 7), rng.integers(2, 7))).astype(object)
    e = None
    if with_equality:
        e = rng.integers(-2, 3, D.shape[1]).astype(object)
        e[0], e[1] = -1, 1  # both signs
    one, other = decide(D, e, interior=interior), by_simplex(D, e, interior=interior)
    assert isinstance(one, Mixture) == isinstance(other, Mixture)
    assert _proves(one, D, e, interior)
    assert _proves(other, D, e, interior)


@pytest.mark.parametrize("tiny", [1, 10**6, 10**12, 10**30, 10**80])
@pytest.mark.parametrize("sign", [1, 0, -1])
def test_no_tolerance_decides_a_tie(tiny: int, sign: int) -> None:
    # p1 > 2 p2 and (2 + sign/tiny) p2 > p1: only with sign = 1 is there room, and ever so little.
    D = np.array([[tiny, -2 * tiny], [-tiny, 2 * tiny + sign]], dtype=object)
    found = decide(D)
    assert isinstance(found, Mixture) == (sign < 1)
    assert _proves(found, D, None, True)
