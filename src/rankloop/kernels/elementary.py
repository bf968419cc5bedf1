"""exp, log, pow and their relatives, written out: the same bits on every machine, within one unit in the last place.

A mathematics library picks its code by the processor (with fused multiply-add or without), so its last bits differ
between machines, and a ranker that compares sums of them ends in another state there. Here every operation is one that
IEEE 754 rounds in a single way: +, -, *, / and the square root. Tables are computed in whole numbers; polynomials are
near-minimax fits, made by Chebyshev interpolation in 300 bits. `tests/kernels/test_elementary.py` measures the errors
against mpmath. The functions are plain Python, so that naming a measure loads no compiler; kernels compile them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Function = TypeVar("Function", bound=Callable[..., object])

FUNCTIONS: list[Callable[..., object]] = []  # for `kernels.jit`, which makes them known to the compiler


def both(function: Function) -> Function:
    """Mark a function that is called from Python as it is, and compiled into the kernels that call it."""
    FUNCTIONS.append(function)
    return function


_STEPS = 128  # entries of a table
_BITS = 160  # of the whole numbers that tables are computed in
_ROUND = 6755399441055744.0  # 1.5 * 2**52: added and taken away again, it leaves the nearest whole number
_SPLIT = 134217729.0  # 2**27 + 1: cuts a number into halves whose products are exact
_MANTISSA = 52  # bits
_ROOT_HALF = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)
_EXPONENT = np.int64(-(1 << 52))  # keeps the sign and the exponent
_HIGH_HALF = np.int64(-(1 << 21))  # keeps 32 bits of a mantissa
_MOST, _LEAST = 709.782712893384, -745.1332191019412  # exp overflows above, and is 0 below
EXP_RANGE = 690.0  # within it 2^(k / 128) is a normal number, and so is e^x
_ROUND_BITS = np.float64(_ROUND).view(np.int64)
_SMALLEST_NORMAL = 2.2250738585072014e-308
_TWO_PI, _TWO_PI_LOW = 6.283185307179586, 2.4492935982947064e-16


def _ln(x: Fraction) -> int:
    """ln(x) in units of 2^-160, of x near 1 or 2, by the series of the inverse hyperbolic tangent."""
    s = abs(x - 1) / (x + 1)
    z = s * s
    term, total, n = int(s * (1 << _BITS)), 0, 1
    while term > 0:
        total += term // n
        term = term * z.numerator // z.denominator
        n += 2
    return 2 * total if x > 1 else -2 * total


def _parts(value: int, cut: int) -> tuple[float, float]:
    """`value` units of 2^-160 as a multiple of 2^-cut, and the rest."""
    high = value >> (_BITS - cut)
    rest = value - (high << (_BITS - cut))
    return math.ldexp(float(high), -cut), math.ldexp(float(rest), -_BITS)


def _powers_of_two() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """2^(j / 128), rounded, and what rounding left, as a share of it."""
    root = 2 << _BITS
    for _ in range(7):
        root = math.isqrt(root << _BITS)
    power, head, rest = 1 << _BITS, [], []
    for _ in range(_STEPS):
        head.append(math.ldexp(float(power), -_BITS))
        left = power - int(Fraction(head[-1]) * (1 << _BITS))
        rest.append(float(Fraction(left, power)))
        power = power * root >> _BITS
    return np.array(head), np.array(rest)


def _reciprocals() -> NDArray[np.float64]:
    """Of each stretch of [sqrt(1/2), sqrt(2)): c of nine bits near 1 / x, and -ln(c) in two parts; c = 1 around 1.

    A fourth column fills each row up to 32 bytes, so that a shift finds it.
    """
    rows = []
    for j in range(_STEPS):
        bits = _ROOT_HALF + ((2 * j + 1) << (_MANTISSA - 8))
        middle = float(np.int64(bits).view(np.float64))
        c = Fraction(round(512 / middle) if abs(middle - 1) > 1 / _STEPS else 512, 512)
        rows.append((float(c), *_parts(-_ln(c), 42), 0.0))
    return np.array(rows)


_LN2_UNITS = _ln(Fraction(2))
_LN2, _LN2_LOW = _parts(_LN2_UNITS, 42)
_STEP, _STEP_LOW = _parts(_LN2_UNITS // _STEPS, 41)
_STEPS_PER_E = float(Fraction(_STEPS << _BITS, _LN2_UNITS))
_LOG2_E = float(Fraction(1 << _BITS, _LN2_UNITS))
_LOG2_E_LOW = float(Fraction(1 << _BITS, _LN2_UNITS) - Fraction(_LOG2_E))
_POWER, _POWER_LOW = _powers_of_two()
_RECIPROCAL = _reciprocals()


@both
def exp(x: float) -> Any:
    """e^x."""
    return _exp_of_sum(x, 0.0)


@both
def exp_within(x: float) -> Any:
    """`exp(x)` to the bit for |x| up to `EXP_RANGE`, without branches: a loop over many is compiled to vectors."""
    shifted = x * _STEPS_PER_E + _ROUND
    k = shifted - _ROUND
    steps = np.float64(shifted).view(np.int64) - _ROUND_BITS  # k as a whole number
    head, share = _near_power((x - k * _STEP) - k * _STEP_LOW, steps)
    return head + head * share


@both
def exp2(x: float) -> Any:
    """2^x, exact for whole x."""
    if not x < 1024.0:
        return x if x != x else np.inf
    if x < -1080.0:
        return 0.0
    k = (x * _STEPS + _ROUND) - _ROUND
    rest = x - k / _STEPS
    return _times_power(rest * _LN2 + rest * _LN2_LOW, np.int64(k))


@both
def exp2m1(x: float) -> Any:
    """2^x - 1 without cancellation: exact for whole x up to 53."""
    if not abs(x) < 60.0:
        return exp2(x) - 1.0
    if abs(x) < 0.5:
        high, low = _product(x, _LN2)
        low += x * _LN2_LOW
        return high + (low + _expm1_tail(high + low))
    k = (x * _STEPS + _ROUND) - _ROUND
    rest = x - k / _STEPS
    head, share = _near_power(rest * _LN2 + rest * _LN2_LOW, np.int64(k))
    return (head - 1.0) + head * share


@both
def log(x: float) -> Any:
    """The natural logarithm; -infinity of 0, NaN below."""
    bits = np.float64(x).view(np.int64)
    if not _SMALLEST_NORMAL <= x < np.inf:
        if not 0.0 < x < np.inf:
            return _log_at_the_edge(x)
        bits = _bits_below_normal(x)
    k, j, near, far = _cut(bits)
    r = near + far
    base = k * _LN2 + _RECIPROCAL[j, 1]  # exact
    high = base + r
    z = r * r
    curve = (0.1999999998505222 * r - 0.2499999998318377) + z * (0.1428662558463356 * r - 0.16667691876727825)
    bend = (0.3333333333333333 * r - 0.5) + z * curve
    return high + (((base - high) + r) + (k * _LN2_LOW + _RECIPROCAL[j, 2]) + z * bend)


@both
def log2(x: float) -> Any:
    """The logarithm to base 2, exact for powers of two."""
    if not 0.0 < x < np.inf:
        return _log_at_the_edge(x)
    high, low = _log_in_two(x)
    product, rest = _product(high, _LOG2_E)
    return product + (rest + (high * _LOG2_E_LOW + low * _LOG2_E))


@both
def power(x: float, y: float) -> Any:
    """x^y of a positive x; 0^y is 0, 1 or infinity by the sign of y, and a negative x gives NaN."""
    if y == 0.0 or x == 1.0:
        return 1.0
    if not 0.0 < x < np.inf:
        if x != x or x < 0.0 or y != y:
            return np.nan
        return 0.0 if (x == 0.0) == (y > 0.0) else np.inf
    high, low = _log_in_two(x)
    if not abs(y * high) < 800.0:
        return _exp_of_sum(y * high, 0.0)
    product, rest = _product(high, y)
    return _exp_of_sum(product, rest + low * y)


@both
def cos_turns(u: float) -> Any:
    """cos(2 pi u): the angle is counted in turns, so that the reduction is exact."""
    quarter = (4.0 * u + _ROUND) - _ROUND
    high, low = _product(u - 0.25 * quarter, _TWO_PI)
    low += (u - 0.25 * quarter) * _TWO_PI_LOW
    z = high * high
    turn = np.int64(quarter) & 3
    if turn & 1:
        value = high + (high * z * _sine_series(z) + low)
        return -value if turn == 1 else value
    value = 1.0 - (0.5 * z - (z * z * _cosine_series(z) - high * low))
    return value if turn == 0 else -value


@both
def _exp_of_sum(high: float, low: float) -> Any:
    """e^(high + low); `low` is small beside `high`."""
    if not high <= _MOST:
        return high if high != high else np.inf
    if high < _LEAST:
        return 0.0
    k = (high * _STEPS_PER_E + _ROUND) - _ROUND
    return _times_power(((high - k * _STEP) - k * _STEP_LOW) + low, np.int64(k))


@both
def _times_power(r: float, k: Any) -> Any:
    """e^r 2^(k / 128), for |r| up to about ln(2) / 256."""
    if k > -128_000 and k < 128_000:
        head, share = _near_power(r, k)
        return head + head * share
    # The power alone may be out of range where the result is not: in two steps.
    head, share = _near_power(r, k & (_STEPS - 1))
    whole = k >> 7
    half = whole >> 1
    return (head + head * share) * _power_of_two(half) * _power_of_two(whole - half)


@both
def _near_power(r: float, k: Any) -> Any:
    """(head, share): e^r 2^(k / 128) = head (1 + share), head being a number of the table times a power of two."""
    j = k & (_STEPS - 1)
    z = r * r
    tail = (0.4999999999999906 + r * 0.16666666666666533) + z * (
        0.04166667686916893 + r * 0.00833333479083362
    )
    bits = np.float64(_POWER[j]).view(np.int64) + ((k >> 7) << _MANTISSA)
    return np.int64(bits).view(np.float64), _POWER_LOW[j] + (r + z * tail)


@both
def _expm1_tail(r: float) -> Any:
    """e^r - 1 - r for |r| up to 0.35."""
    z = r * r
    a = 0.16666666666666669 + r * 0.041666666666666664
    b = 0.008333333333330062 + r * 0.0013888888888886552
    c = 0.00019841269863053618 + r * 2.4801587317144498e-05
    d = 2.7557268459997064e-06 + r * 2.755728296954995e-07
    e = 2.510038549551032e-08 + r * 2.0911236630261545e-09
    return z * (0.5 + r * ((a + z * b) + (z * z) * ((c + z * d) + (z * z) * e)))


@both
def _power_of_two(k: int) -> Any:
    return np.int64((k + 1023) << _MANTISSA).view(np.float64)


@both
def _bits_below_normal(x: float) -> Any:
    """The bits that a number below the smallest normal one would have if the exponent reached further down."""
    return np.float64(x * 18014398509481984.0).view(np.int64) - (54 << _MANTISSA)


@both
def _cut(bits: Any) -> Any:
    """(k, j, near, far) with x c_j = 2^k (1 + near + far), of the bits of x, all exact; their sum is up to 0.008."""
    distance = bits - _ROOT_HALF
    k = distance >> _MANTISSA
    j = (distance >> (_MANTISSA - 7)) & (_STEPS - 1)
    bits -= distance & _EXPONENT
    head = np.int64(bits & _HIGH_HALF).view(np.float64)
    rest = np.int64(bits).view(np.float64) - head
    c = _RECIPROCAL[j, 0]
    return k, j, head * c - 1.0, rest * c


@both
def _log_in_two(x: float) -> Any:
    """Log x as a sum of two numbers, to about 2^-66."""
    bits = np.float64(x).view(np.int64)
    if x < _SMALLEST_NORMAL:
        bits = _bits_below_normal(x)
    k, j, near, far = _cut(bits)
    r = near + far
    base = k * _LN2 + _RECIPROCAL[j, 1]  # exact
    high = base + r
    low = ((base - high) + r) + ((near - r) + far) + (k * _LN2_LOW + _RECIPROCAL[j, 2])
    square, square_low = _product(r, r)
    bend = -0.5 * square
    total = high + bend
    low += ((high - total) + bend) + (r * square * _log_series(r) - 0.5 * square_low)
    head = total + low
    return head, low - (head - total)


@both
def _log_series(r: float) -> Any:
    """1/3 - r/4 + r^2/5 - ..., for |r| up to 0.008."""
    z = r * r
    return (0.3333333333333343 + r * -0.2500000000000009) + z * (
        (0.19999999973093713 + r * -0.16666666642450972) + z * (0.14286807851755604 + r * -0.1250098421053792)
    )


@both
def _log_at_the_edge(x: float) -> Any:
    if x == 0.0:
        return -np.inf
    return np.inf if x > 0.0 else np.nan


@both
def _sine_series(z: float) -> Any:
    """(sin(a) / a - 1) / z with z = a^2, for |a| up to pi / 4."""
    y = z * z
    a = -0.16666666666666666 + z * 0.008333333333333331
    b = -0.00019841269841265017 + z * 2.755731921930192e-06
    c = -2.5052106219521895e-08 + z * 1.6058529572267877e-10
    return (a + y * b) + (y * y) * (c - y * 7.586576588171073e-13)


@both
def _cosine_series(z: float) -> Any:
    """(cos(a) - 1 + z / 2) / z^2 with z = a^2, for |a| up to pi / 4."""
    y = z * z
    a = 0.041666666666666664 - z * 0.0013888888888888887
    b = 2.4801587301584618e-05 - z * 2.7557319221382114e-07
    c = 2.087675578389404e-09 - z * 1.1470459749675607e-11
    return (a + y * b) + (y * y) * (c + y * 4.745804889760674e-14)


@both
def _product(a: float, b: float) -> Any:
    """The product and what its rounding lost (Dekker 1971)."""
    p = a * b
    cut = _SPLIT * a
    a_high = cut - (cut - a)
    a_low = a - a_high
    cut = _SPLIT * b
    b_high = cut - (cut - b)
    b_low = b - b_high
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low
