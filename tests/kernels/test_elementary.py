"""exp, log, pow: errors against mpmath, exact where they should be, the same from Python and compiled."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numba
import numpy as np
import pytest
from numpy.typing import NDArray

from rankloop.kernels import elementary
from rankloop.kernels.measures import logarithms

RNG = np.random.default_rng(12)
N = 3_000
AROUND_0 = RNG.normal(0, 1e-4, N)
WIDE = np.concatenate(
    [RNG.uniform(-1, 1, N), RNG.uniform(-700, 700, N), AROUND_0, [0.0, -0.0, 1e-300, 709.78, -744.0]]
)
POSITIVE = np.concatenate(
    [np.exp(RNG.uniform(-740, 709, N)), RNG.uniform(0.5, 2, N), 1 + AROUND_0, [5e-324, 1e-310]]
)
CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any], NDArray[np.float64]]] = {
    "exp": (elementary.exp, mpmath.exp, WIDE),
    "exp2": (elementary.exp2, lambda x: mpmath.mpf(2) ** x, WIDE),
    "exp2m1": (elementary.exp2m1, lambda x: mpmath.expm1(x * mpmath.log(2)), WIDE),
    "log": (elementary.log, mpmath.log, POSITIVE),
    "log2": (elementary.log2, lambda x: mpmath.log(x, 2), POSITIVE),
    "power": (
        elementary.power,
        lambda x, y: x**y,
        np.stack([np.exp(RNG.uniform(-20, 20, N)), RNG.uniform(-30, 30, N)], axis=1),
    ),
    "power of rounds": (
        elementary.power,
        lambda x, y: x**y,
        np.stack([RNG.integers(1, 10**9, N), RNG.choice([-2 / 3, -1 / 3, -0.5, 1 / 3, 0.2], N)], axis=1),
    ),
    "power near 1": (
        elementary.power,
        lambda x, y: x**y,
        np.stack([1 + RNG.normal(0, 1e-3, N), RNG.uniform(-1e5, 1e5, N)], axis=1),
    ),
    "cos_turns": (elementary.cos_turns, lambda u: mpmath.cos(2 * mpmath.pi * u), RNG.uniform(-2, 2, N)),
}


@pytest.mark.parametrize("name", CASES)
def test_errors_are_below_one_unit_in_the_last_place(name: str) -> None:
    ours, true, arguments = CASES[name]
    with mpmath.workprec(200):
        for row in arguments:
            x = tuple(map(float, np.atleast_1d(row)))
            exact = true(*map(mpmath.mpf, x))
            unit = math.ulp(float(exact))
            assert abs(mpmath.mpf(float(ours(*x))) - exact) < unit, x


def everything(x: float, y: float) -> Any:
    positive = abs(x)
    return (
        elementary.exp(x),
        elementary.exp2(x),
        elementary.exp2m1(x),
        elementary.log(positive),
        elementary.log2(positive),
        elementary.power(positive, y),
        elementary.cos_turns(x),
        elementary.exp_within(min(max(x, -elementary.EXP_RANGE), elementary.EXP_RANGE)),
    )


compiled = numba.njit(error_model="numpy")(everything)


def test_python_and_compiled_code_give_the_same_bits() -> None:
    for scale in (1e-3, 1.0, 30.0, 900.0):
        for x, y in RNG.normal(0, scale, (500, 2)).tolist():
            python = everything(x, y)
            inside = min(max(x, -elementary.EXP_RANGE), elementary.EXP_RANGE)
            assert np.array(compiled(x, y)).tobytes() == np.array(python, np.float64).tobytes()
            assert elementary.exp_within(inside) == elementary.exp(inside)


def test_whole_powers_of_two_are_exact() -> None:
    for k in range(-1074, 1024):
        assert elementary.exp2(float(k)) == math.ldexp(1.0, k)
        assert elementary.log2(math.ldexp(1.0, k)) == k
    for k in range(54):
        assert elementary.exp2m1(float(k)) == 2**k - 1


def test_logarithms_in_bulk_are_those_one_by_one() -> None:
    assert logarithms(3_000).tolist() == [elementary.log2(i + 2.0) for i in range(3_000)]


def test_the_edges() -> None:
    inf, nan = math.inf, math.nan
    assert (elementary.exp(inf), elementary.exp(-inf), elementary.exp(710.0)) == (inf, 0.0, inf)
    assert (elementary.exp2(1024.0), elementary.exp2(-1100.0), elementary.exp2m1(-2000.0)) == (inf, 0.0, -1.0)
    assert (elementary.log(0.0), elementary.log(inf), elementary.log2(0.0)) == (-inf, inf, -inf)
    assert (elementary.power(0.0, 2.0), elementary.power(0.0, -2.0), elementary.power(0.0, 0.0)) == (
        0.0,
        inf,
        1.0,
    )
    assert (elementary.power(inf, -1.0), elementary.power(2.0, 1e9), elementary.power(2.0, -1e9)) == (
        0.0,
        inf,
        0.0,
    )
    for lost in (elementary.exp(nan), elementary.log(-1.0), elementary.log(nan), elementary.power(-1.0, 2.0)):
        assert math.isnan(lost)
    assert math.isnan(elementary.power(2.0, nan))
