"""Rows of float32 times weights, and sums of such rows, as LLVM vectors of sixteen: what `narrow_rows` is made of.

Rows have at least sixteen entries. Weights and sums are in vectors: as many as fill them, then sixteen for the last
entries of a row. Some of these are among the others already: they have weight 0, and their sums are not read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 16
_BUILD: Any = cgutils
_PLACE = ir.IntType(32)
_VECTOR = ir.VectorType(ir.FloatType(), LANES)


class _Rows:
    """Rows i, i + 1, ... of the first argument, and how to go along them."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any, n_rows: int) -> None:
        self.builder = builder
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        self.d = builder.extract_value(array.shape, 1)
        self.filled = arguments[3]
        self.at = [builder.add(arguments[1], self.number(row)) for row in range(n_rows)]
        self.starts = [builder.gep(array.data, [builder.mul(place, self.d)]) for place in self.at]

    def number(self, value: int) -> Any:
        return ir.Constant(self.d.type, value)

    def vector(self, start: Any, j: Any) -> Any:
        """Where a vector of entries from j on is."""
        return self.builder.bitcast(self.builder.gep(start, [j]), _VECTOR.as_pointer())

    def load(self, start: Any, j: Any) -> Any:
        return self.builder.load(self.vector(start, j), align=4)

    def each(self, visit: Callable[[Any, Any], None]) -> None:
        """Call visit(j, k) for every vector: j counts the entries of a row, k those of weights and sums."""
        builder = self.builder
        bounds = (self.number(0), self.filled, self.number(LANES))
        with _BUILD.for_range_slice(builder, *bounds, intp=self.d.type) as (j, _):
            visit(j, j)
        with builder.if_then(builder.icmp_signed("<", self.filled, self.d)):
            visit(builder.sub(self.d, self.number(LANES)), self.filled)


def _dots_of(n_rows: int) -> Any:
    """Rows i, i + 1, ... times the weights in `room`, into `scores`."""

    def of_rows(typing: Any, features: Any, i: Any, room: Any, whole: Any, scores: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            rows = _Rows(context, builder, signature, arguments, n_rows)
            weights = context.make_array(signature.args[2])(context, builder, arguments[2]).data
            found = context.make_array(signature.args[4])(context, builder, arguments[4]).data
            none = ir.Constant(_VECTOR, [0.0] * LANES)
            sums = [_BUILD.alloca_once_value(builder, none) for _ in rows.starts]

            def add(j: Any, k: Any) -> None:
                those = rows.load(weights, k)
                for start, total in zip(rows.starts, sums, strict=True):
                    product = builder.fmul(rows.load(start, j), those)
                    builder.store(builder.fadd(builder.load(total), product), total)

            rows.each(add)
            totals = _sums_of_each(builder, [builder.load(total) for total in sums])
            wide = builder.fpext(totals, ir.VectorType(ir.DoubleType(), n_rows))
            place = builder.bitcast(builder.gep(found, [rows.at[0]]), wide.type.as_pointer())
            builder.store(wide, place, align=8)
            return context.get_dummy_value()

        if features.layout != "C" or features.dtype != types.float32:
            return None
        return types.void(features, types.intp, room, types.intp, scores), codegen

    return intrinsic(of_rows)


def _sums_of_each(builder: Any, vectors: list[Any]) -> Any:
    # Of each vector the halves are added until one number is left; all of them side by side, in one vector.
    def picked(a: Any, b: Any, places: list[int]) -> Any:
        return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_PLACE, len(places)), places))

    parts, together, length = vectors, 1, LANES  # each part: of so many vectors, `length` numbers
    while length > 1:
        length //= 2
        joined = 2 if len(parts) > 1 else 1
        together *= joined
        low = [2 * length * vector + i for vector in range(together) for i in range(length)]
        high = [place + length for place in low]
        pairs = zip(parts[::joined], parts[joined - 1 :: joined], strict=True)
        parts = [builder.fadd(picked(a, b, low), picked(a, b, high)) for a, b in pairs]
    return parts[0]


dots, dot = _dots_of(4), _dots_of(1)


def _sums_of(n_rows: int) -> Any:
    """To each of `sums` the entries of rows i, i + 1, ..., one after the other, times their weights."""

    def of_rows(typing: Any, features: Any, i: Any, weights: Any, whole: Any, sums: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            rows = _Rows(context, builder, signature, arguments, n_rows)
            totals = context.make_array(signature.args[4])(context, builder, arguments[4]).data
            given = context.make_array(signature.args[2])(context, builder, arguments[2]).data
            factors = [_everywhere(builder, builder.load(builder.gep(given, [place]))) for place in rows.at]

            def add(j: Any, k: Any) -> None:
                total = rows.load(totals, k)
                for factor, start in zip(factors, rows.starts, strict=True):
                    total = builder.fadd(total, builder.fmul(factor, rows.load(start, j)))
                builder.store(total, rows.vector(totals, k), align=4)

            rows.each(add)
            return context.get_dummy_value()

        if features.layout != "C" or features.dtype != types.float32:
            return None
        return types.void(features, types.intp, weights, types.intp, sums), codegen

    return intrinsic(of_rows)


def _everywhere(builder: Any, weight: Any) -> Any:
    narrow = builder.fptrunc(weight, ir.FloatType())
    one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), narrow, ir.Constant(_PLACE, 0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(_PLACE, LANES), [0] * LANES))


weigh_rows, weigh_row = _sums_of(4), _sums_of(1)


def _add_four(typing: Any, features: Any, i: Any, out: Any, whole: Any) -> Any:
    """To each of `out`, float64, the sum of its entries in rows i to i + 3: in float32, two and two, then all."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows = _Rows(context, builder, signature, arguments, 4)
        totals = context.make_array(signature.args[2])(context, builder, arguments[2]).data
        kind = ir.VectorType(ir.DoubleType(), LANES)
        bounds = (rows.number(0), rows.filled, rows.number(LANES))
        with _BUILD.for_range_slice(builder, *bounds, intp=rows.d.type) as (j, _):
            a, b, c, d = (rows.load(start, j) for start in rows.starts)
            four = builder.fpext(builder.fadd(builder.fadd(a, b), builder.fadd(c, d)), kind)
            place = builder.bitcast(builder.gep(totals, [j]), kind.as_pointer())
            builder.store(builder.fadd(builder.load(place, align=8), four), place, align=8)
        return context.get_dummy_value()

    if features.layout != "C" or features.dtype != types.float32:
        return None
    return types.void(features, types.intp, out, types.intp), codegen


add_four: Any = intrinsic(_add_four)
