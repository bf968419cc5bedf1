"""Whole rows of matrices in vectors of eight: entry by entry, and dot products in a fixed order.

Rows are as long as a multiple of eight. In plain code the compiler would prove the same only for some of these loops;
in the others a vector is read right after its entries were written one by one, which the processor waits for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from rankloop.kernels.vector_sums import LANES, VECTOR, add_in_pairs, split, spread

_BUILD: Any = cgutils
_LINE = 64  # bytes of a vector, and of a line of the processor's cache
_ZEROS = ir.Constant(VECTOR, [0.0] * LANES)
_ONES = ir.Constant(VECTOR, [1.0] * LANES)


def aligned(*shape: int, fill: float = 0.0) -> NDArray[np.float64]:
    """An array that begins where a line of the cache does, so that no vector lies across two of them."""
    number = int(np.prod(shape))
    memory = np.empty(number + _LINE // 8)
    first = -(memory.ctypes.data % -_LINE) // 8
    found = memory[first : first + number].reshape(shape)
    found[...] = fill
    return found


def _rows(context: Any, builder: Any, signature: Any, arguments: Any, number: int) -> Any:
    # The first `number` pairs of a matrix and a row: where each begins, and how long they are.
    starts, length = [], None
    for place in range(0, 2 * number, 2):
        matrix = context.make_array(signature.args[place])(context, builder, arguments[place])
        length = builder.extract_value(matrix.shape, 1)
        starts.append(builder.gep(matrix.data, [builder.mul(arguments[place + 1], length)]))
    return starts, length


def _signature(returned: Any, matrices: Any, *numbers: Any) -> Any:
    if any(matrix.layout != "C" for matrix in matrices):
        return None  # addresses are counted out
    pairs = [kind for matrix in matrices for kind in (matrix, types.intp)]
    return returned(*pairs, *numbers)


def _row_dot(typing: Any, x: Any, i: Any, y: Any, j: Any) -> Any:
    """The sum over k of x[i, k] * y[j, k]."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        starts, length = _rows(context, builder, signature, arguments, 2)
        sums = _BUILD.alloca_once_value(builder, _ZEROS)
        bounds = (ir.Constant(length.type, 0), length, ir.Constant(length.type, LANES))
        with _BUILD.for_range_slice(builder, *bounds, intp=length.type) as (k, _):
            at = [builder.bitcast(builder.gep(start, [k]), VECTOR.as_pointer()) for start in starts]
            product = builder.fmul(*(builder.load(place, align=8) for place in at))
            builder.store(builder.fadd(builder.load(sums), product), sums)
        return add_in_pairs(builder, split(builder, builder.load(sums)))

    found = _signature(types.float64, (x, y))
    return None if found is None else (found, codegen)


row_dot: Any = intrinsic(_row_dot)


def _write(builder: Any, starts: Any, length: Any, compute: Callable[..., Any]) -> None:
    # First row, entry by entry: compute of the same entries of all rows.
    bounds = (ir.Constant(length.type, 0), length, ir.Constant(length.type, LANES))
    with _BUILD.for_range_slice(builder, *bounds, intp=length.type) as (k, _):
        at = [builder.bitcast(builder.gep(start, [k]), VECTOR.as_pointer()) for start in starts]
        result = compute(*(builder.load(place, align=8) for place in at))
        builder.store(result, at[0], align=8)


def _add_row(typing: Any, out: Any, i: Any, x: Any, j: Any, factor: Any) -> Any:
    """out[i] += factor * x[j]."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        starts, length = _rows(context, builder, signature, arguments, 2)
        factors = spread(builder, arguments[4])
        _write(builder, starts, length, lambda own, x: builder.fadd(own, builder.fmul(factors, x)))
        return context.get_dummy_value()

    found = _signature(types.void, (out, x), types.float64)
    return None if found is None else (found, codegen)


add_row: Any = intrinsic(_add_row)


def _multiply_rows(typing: Any, out: Any, i: Any, x: Any, j: Any, y: Any, k: Any) -> Any:
    """out[i] = x[j] * y[k]."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        starts, length = _rows(context, builder, signature, arguments, 3)
        _write(builder, starts, length, lambda own, x, y: builder.fmul(x, y))
        return context.get_dummy_value()

    found = _signature(types.void, (out, x, y))
    return None if found is None else (found, codegen)


multiply_rows: Any = intrinsic(_multiply_rows)


def _invert_row(typing: Any, out: Any, i: Any, x: Any, j: Any) -> Any:
    """out[i] = 1 / x[j]."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        starts, length = _rows(context, builder, signature, arguments, 2)
        _write(builder, starts, length, lambda own, x: builder.fdiv(_ONES, x))
        return context.get_dummy_value()

    found = _signature(types.void, (out, x))
    return None if found is None else (found, codegen)


invert_row: Any = intrinsic(_invert_row)


def _inverse_cubes(typing: Any, out: Any, i: Any, x: Any, j: Any, y: Any, k: Any, c: Any, t: Any) -> Any:
    """out[i] = t / (x[j] + y[k] + c)^3."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        starts, length = _rows(context, builder, signature, arguments, 3)
        shifts, scales = spread(builder, arguments[6]), spread(builder, arguments[7])

        def cube(own: Any, x: Any, y: Any) -> Any:
            inverse = builder.fdiv(_ONES, builder.fadd(builder.fadd(x, shifts), y))
            return builder.fmul(builder.fmul(builder.fmul(scales, inverse), inverse), inverse)

        _write(builder, starts, length, cube)
        return context.get_dummy_value()

    found = _signature(types.void, (out, x, y), types.float64, types.float64)
    return None if found is None else (found, codegen)


inverse_cubes: Any = intrinsic(_inverse_cubes)
