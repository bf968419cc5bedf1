"""Sums of 1 / D^2 over many items at once, D = L + v, as polynomials in how far v has moved since they were taken.

Of an entry, 1 / (D + d)^2 = sum over k of (-1)^k (k + 1) d^k / D^(k + 2). The coefficients add up over items, so a
column of items whose L stays is evaluated at any v in a few multiplications; an item whose L changes is taken out with
its old coefficients and put in with its new ones. With |d| <= REACH D, what the polynomial leaves out is below
(TERMS + 1) REACH^TERMS = 6e-11 of the sum.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from rankloop.kernels.jit import hot
from rankloop.kernels.vector_sums import LANES, VECTOR, spread

_BUILD: Any = cgutils

TERMS = 8
REACH = 0.04


@hot
def add_entry(sums: Any, j: int, b: int, D: float, sign: float) -> None:
    """Add `sign` times the coefficients of 1 / (D + d)^2 to those of bin b in column j."""
    inverse = 1.0 / D
    term = sign * inverse * inverse
    for k in range(TERMS):
        sums[j, k, b] += float(k + 1) * term
        term *= -inverse


@hot
def value_and_slope(sums: Any, j: int, d: float) -> Any:
    """The sums of 1 / (D + d)^2 and of 1 / (D + d)^3 over column j, whose coefficients are in the last bin."""
    value, slope = 0.0, 0.0
    for k in range(TERMS - 1, -1, -1):
        slope = slope * d + value
        value = value * d + sums[j, k, -1]
    return value, -0.5 * slope


def _values(typing: Any, sums: Any, j: Any, d: Any, t: Any, n_bins: Any, whole: Any) -> Any:
    """Write t times the sum of 1 / (D + d)^2 to whole[j, b] for `n_bins` bins and up to seven more."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, row, shift, scale, last, _ = arguments
        powers = context.make_array(signature.args[0])(context, builder, arguments[0])
        written = context.make_array(signature.args[5])(context, builder, arguments[5])
        bins = builder.extract_value(powers.shape, 2)
        line = builder.mul(bins, ir.Constant(bins.type, TERMS))
        coefficients = builder.gep(powers.data, [builder.mul(row, line)])
        target = builder.gep(written.data, [builder.mul(row, bins)])
        shifts, scales = spread(builder, shift), spread(builder, scale)

        def at(start: Any, b: Any) -> Any:
            return builder.bitcast(builder.gep(start, [b]), VECTOR.as_pointer())

        bounds = (ir.Constant(bins.type, 0), last, ir.Constant(bins.type, LANES))
        with _BUILD.for_range_slice(builder, *bounds, intp=bins.type) as (b, _):

            def coefficient(k: int) -> Any:
                place = builder.add(builder.mul(bins, ir.Constant(bins.type, k)), b)
                return builder.load(at(coefficients, place), align=8)

            value = coefficient(TERMS - 1)
            for k in range(TERMS - 2, -1, -1):
                value = builder.fadd(builder.fmul(value, shifts), coefficient(k))
            builder.store(builder.fmul(value, scales), at(target, b), align=8)
        return context.get_dummy_value()

    if sums.layout != "C" or whole.layout != "C":
        return None  # addresses are counted out
    return types.void(sums, types.intp, types.float64, types.float64, types.intp, whole), codegen


values: Any = intrinsic(_values)
