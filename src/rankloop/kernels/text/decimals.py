"""Decimal numbers in text, as float64, rounded as Python rounds them."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankloop.kernels.jit import hot

MISREAD, READ, LEFT = 0, 1, 2

_PLUS, _MINUS, _POINT = 43, 45, 46
_POWERS = np.array([float(f"1e{k}") for k in range(23)])  # exact: 5**22 has 52 bits
_EXACT = np.uint64(1 << 53)
_DIGITS = 19  # as many as always fit 64 bits
_SPLITTER = float((1 << 27) + 1)


@hot
def _quotient(mantissa: np.uint64, power: float) -> tuple[int, float]:
    """The correctly rounded `mantissa` / `power`, or left to the caller when that takes more than 106 bits to decide.

    The mantissa is high + low exactly, quotient * power is product + error exactly (Dekker, 1971), so what
    `quotient` lacks is known with a relative error below 2**-100 of the quotient.
    """
    high = float(mantissa)
    low = float(np.int64(mantissa - np.uint64(high)))
    quotient = high / power
    product = quotient * power
    a = quotient * _SPLITTER
    a -= a - quotient
    b = power * _SPLITTER
    b -= b - power
    error = ((a * b - product) + a * (power - b) + (quotient - a) * b) + (quotient - a) * (power - b)
    rest = ((high - product) - error + low) / power
    doubt = quotient * 2.0**-96
    least, most = quotient + (rest - doubt), quotient + (rest + doubt)
    return (READ if least == most else LEFT), least


@hot
def number(text: Any, at: int) -> tuple[int, float, int]:
    """The decimal number at `at`: whether it is one, its value if that could be decided here, and where it ends.

    Exact products and quotients of what float64 holds exactly are rounded once (Clinger, 1990).
    """
    negative = text[at] == _MINUS
    if negative or text[at] == _PLUS:
        at += 1
    mantissa = np.uint64(0)
    first = start = at
    while 48 <= text[at] <= 57:
        mantissa = mantissa * np.uint64(10) + np.uint64(text[at] - 48)
        at += 1
    n_digits = at - start
    power = 0
    if text[at] == _POINT:
        at += 1
        start = at
        while 48 <= text[at] <= 57:
            mantissa = mantissa * np.uint64(10) + np.uint64(text[at] - 48)
            at += 1
        power = start - at
        n_digits -= power
    if n_digits == 0:
        return MISREAD, 0.0, at
    if text[at] == 69 or text[at] == 101:  # E, e
        at += 1
        falling = text[at] == _MINUS
        if falling or text[at] == _PLUS:
            at += 1
        start = at
        exponent = 0
        while 48 <= text[at] <= 57:
            exponent = min(10 * exponent + (text[at] - 48), 100_000)
            at += 1
        if at == start:
            return MISREAD, 0.0, at
        power += -exponent if falling else exponent
    if n_digits > _DIGITS:
        while text[first] == 48 or text[first] == _POINT:  # zeros in front take no room
            n_digits -= text[first] == 48
            first += 1
        if n_digits > _DIGITS:
            return LEFT, 0.0, at
    known, value = READ, 0.0
    if mantissa == 0:
        pass
    elif not -22 <= power <= 22:
        known = LEFT
    elif mantissa <= _EXACT:
        value = float(mantissa)
        value = value / _POWERS[-power] if power < 0 else value * _POWERS[power]
    elif power < 0:
        known, value = _quotient(mantissa, _POWERS[-power])
    else:
        known = LEFT
    return known, -value if negative else value, at
