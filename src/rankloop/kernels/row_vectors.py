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

from rankloop.kernels.vector_sums import LANES, VECTOR, spread, sum_lanes

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


def _dot_rows(builder: Any, x: Any, y: Any, length: Any) -> Any:
    # Of rows that begin at x and y.
    def product(k: Any) -> Any:
        at = [builder.bitcast(builder.gep(start, [k]), VECTOR.as_pointer()) for start in (x, y)]
        return builder.fmul(*(builder.load(place, align=8) for place in at))

    sums = _BUILD.alloca_once(builder, VECTOR)
    builder.store(product(ir.Constant(length.type, 0)), sums)
    bounds = (ir.Constant(length.type, LANES), length, ir.Constant(length.type, LANES))
    with _BUILD.for_range_slice(builder, *bounds, intp=length.type) as (k, _):
        builder.store(builder.fadd(builder.load(sums), product(k)), sums)
    return sum_lanes(builder, builder.load(sums))


def _row_dot(typing: Any, x: Any, i: Any, y: Any, j: Any) -> Any:
    """The sum over k of x[i, k] * y[j, k]."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (row, other), length = _rows(context, builder, signature, arguments, 2)
        return _dot_rows(builder, row, other, length)

    found = _signature(types.float64, (x, y))
    return None if found is None else (found, codegen)


row_dot: Any = intrinsic(_row_dot)


def _row_dots(typing: Any, out: Any, i: Any, x: Any, j: Any, y: Any, number: Any) -> Any:
    """out[i, b] = the sum over k of x[j, k] * y[b, k], for each b below `number`; rows of `out` have any length."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (written, row), length = _rows(context, builder, signature, arguments, 2)
        rows = context.make_array(signature.args[4])(context, builder, arguments[4]).data
        bounds = (ir.Constant(length.type, 0), arguments[5], ir.Constant(length.type, 1))
        with _BUILD.for_range_slice(builder, *bounds, intp=length.type) as (b, _):
            other = builder.gep(rows, [builder.mul(b, length)])
            builder.store(_dot_rows(builder, row, other, length), builder.gep(written, [b]))
        return context.get_dummy_value()

    found = None if y.layout != "C" else _signature(types.void, (out, x), y, types.intp)
    return None if found is None else (found, codegen)


row_dots: Any = intrinsic(_row_dots)


def _write(builder: Any, starts: Any, length: Any, compute: Callable[..., Any]) -> None:
    # First row, entry by entry: compute of the same entries of all rows.
    bounds = (ir.Constant(length.type, 0), length, ir.Constant(length.type, LANES))
    with _BUILD.for_range_slice(builder, *bounds, intp=length.type) as (k, _):
        at = [builder.bitcast(builder.gep(start, [k]), VECTOR.as_pointer()) for start in starts]
        result = compute(*(builder.load(place, align=8) for place in at))
        builder.store(result, at[0], align=8)


def _fill_row(typing: Any, out: Any, i: Any, x: Any, beyond: Any) -> Any:
    """out[i] = x, and `beyond` where x has no entry any more."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        starts, length = _rows(context, builder, signature, arguments, 1)
        values = context.make_array(signature.args[2])(context, builder, arguments[2])
        number, places = builder.extract_value(values.shape, 0), ir.VectorType(length.type, LANES)
        mask = ir.VectorType(ir.IntType(1), LANES)
        load = _BUILD.get_or_insert_function(
            builder.module,
            ir.FunctionType(VECTOR, [VECTOR.as_pointer(), ir.IntType(32), mask, VECTOR]),
            "llvm.masked.load.v8f64.p0",
        )
        rest = spread(builder, arguments[3])
        bounds = (ir.Constant(length.type, 0), length, ir.Constant(length.type, LANES))
        with _BUILD.for_range_slice(builder, *bounds, intp=length.type) as (k, _):
            left = spread(builder, builder.sub(number, k), places)
            there = builder.icmp_signed("<", ir.Constant(places, list(range(LANES))), left)
            at = [
                builder.bitcast(builder.gep(start, [k]), VECTOR.as_pointer())
                for start in (values.data, starts[0])
            ]
            entries = builder.call(load, [at[0], ir.Constant(ir.IntType(32), 8), there, rest])
            builder.store(entries, at[1], align=8)
        return context.get_dummy_value()

    if x.layout != "C":
        return None
    found = _signature(types.void, (out,), x, types.float64)
    return None if found is None else (found, codegen)


fill_row: Any = intrinsic(_fill_row)


def _scale(typing: Any, values: Any, number: Any, factor: Any) -> Any:
    """Multiply the first `number` entries, a multiple of eight, of a vector or a matrix."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        factors = spread(builder, arguments[2])
        _write(builder, [start], arguments[1], lambda own: builder.fmul(own, factors))
        return context.get_dummy_value()

    return None if values.layout != "C" else (types.void(values, types.intp, types.float64), codegen)


scale: Any = intrinsic(_scale)


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


def _add_up(builder: Any, starts: Any, length: Any, y: Any, number: Any, add: Callable[..., Any]) -> None:
    # First row: the second, to which `add` adds the rows of y one after another.
    def bounds(first: Any, last: Any, step: int) -> Any:
        return (first, last, ir.Constant(length.type, step))

    zero, sums = ir.Constant(length.type, 0), _BUILD.alloca_once(builder, VECTOR)
    with _BUILD.for_range_slice(builder, *bounds(zero, length, LANES), intp=length.type) as (k, _):

        def at(start: Any, k: Any = k) -> Any:
            return builder.bitcast(builder.gep(start, [k]), VECTOR.as_pointer())

        builder.store(builder.load(at(starts[1]), align=8), sums)
        with _BUILD.for_range_slice(builder, *bounds(zero, number, 1), intp=length.type) as (a, _):
            row = builder.load(at(builder.gep(y, [builder.mul(a, length)])), align=8)
            builder.store(add(builder.load(sums), row, a), sums)
        builder.store(builder.load(sums), at(starts[0]), align=8)


def _sum_rows(typing: Any, out: Any, i: Any, x: Any, j: Any, y: Any, number: Any) -> Any:
    """out[i] = x[j] + y[0] + y[1] + ..., `number` rows of y."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        starts, length = _rows(context, builder, signature, arguments, 2)
        rows = context.make_array(signature.args[4])(context, builder, arguments[4]).data
        _add_up(builder, starts, length, rows, arguments[5], lambda sums, row, a: builder.fadd(sums, row))
        return context.get_dummy_value()

    found = None if y.layout != "C" else _signature(types.void, (out, x), y, types.intp)
    return None if found is None else (found, codegen)


sum_rows: Any = intrinsic(_sum_rows)


def _subtract_rows(typing: Any, out: Any, i: Any, y: Any, weights: Any, number: Any) -> Any:
    """out[i] = out[i] - weights[0] * y[0] - weights[1] * y[1] - ..., `number` rows of y."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        starts, length = _rows(context, builder, signature, arguments, 1)
        rows, factors = (
            context.make_array(signature.args[k])(context, builder, arguments[k]).data for k in (2, 3)
        )

        def subtract(sums: Any, row: Any, a: Any) -> Any:
            weight = spread(builder, builder.load(builder.gep(factors, [a])))
            return builder.fsub(sums, builder.fmul(weight, row))

        _add_up(builder, 2 * starts, length, rows, arguments[4], subtract)
        return context.get_dummy_value()

    if y.layout != "C" or weights.layout != "C":
        return None
    found = _signature(types.void, (out,), y, weights, types.intp)
    return None if found is None else (found, codegen)


subtract_rows: Any = intrinsic(_subtract_rows)


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


def _excess_row(typing: Any, out: Any, i: Any, x: Any, j: Any) -> Any:
    """out[i] = x[j] * (sqrt(x[j]) - 1)."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        starts, length = _rows(context, builder, signature, arguments, 2)
        root = _BUILD.get_or_insert_function(
            builder.module, ir.FunctionType(VECTOR, [VECTOR]), "llvm.sqrt.v8f64"
        )

        def excess(own: Any, x: Any) -> Any:
            return builder.fmul(x, builder.fsub(builder.call(root, [x]), _ONES))

        _write(builder, starts, length, excess)
        return context.get_dummy_value()

    found = _signature(types.void, (out, x))
    return None if found is None else (found, codegen)


excess_row: Any = intrinsic(_excess_row)
