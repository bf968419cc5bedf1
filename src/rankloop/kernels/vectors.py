"""Vector instructions, all in one place: sums and products in lanes of a fixed order, written in LLVM."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from rankloop.kernels.jit import hot

# Dot products and sums in eight lanes: as quick as the processor's vectors allow, and the same on every machine.
#
# numba either adds one number after another, or lets the compiler choose an order that depends on the machine. Here
# the order is fixed: lane l sums entries l, l + 8, l + 16 and so on, what is left over goes to lane 0, and the lanes
# are added in pairs. Written as LLVM vectors this is about three times as quick as the same sums in plain code.


_BUILD: Any = cgutils
LANES = 8
_DOUBLE = ir.DoubleType()
VECTOR = ir.VectorType(_DOUBLE, LANES)
_ZEROS = ir.Constant(VECTOR, [0.0] * LANES)


def split(builder: Any, vector: Any) -> list[Any]:
    """The eight lanes of a vector."""
    return [builder.extract_element(vector, ir.Constant(ir.IntType(32), i)) for i in range(LANES)]


def spread(builder: Any, value: Any, kind: Any = VECTOR) -> Any:
    """A vector with `value` in every lane."""
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(
        first, first, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    )


def add_in_pairs(builder: Any, lane: list[Any]) -> Any:
    """(0 + 4), (1 + 5), ... then (0 + 4) + (2 + 6), ... then all."""
    while len(lane) > 1:
        half = len(lane) // 2
        lane = [builder.fadd(lane[i], lane[i + half]) for i in range(half)]
    return lane[0]


def sum_lanes(builder: Any, vector: Any) -> Any:
    """The same sum of a whole vector: its halves are added to each other until one number is left."""
    width = LANES
    while width > 1:
        width //= 2
        low, high = (
            builder.shuffle_vector(
                vector,
                vector,
                ir.Constant(ir.VectorType(ir.IntType(32), width), list(range(first, first + width))),
            )
            for first in (0, width)
        )
        vector = builder.fadd(low, high)
    return builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))


def _accumulate(builder: Any, total: Any, first: Any, last: Any, step: int, term: Any) -> Any:
    # total + term(first) + term(first + step) + ... below last
    sums = _BUILD.alloca_once_value(builder, total)
    bounds = (first, last, ir.Constant(first.type, step))
    with _BUILD.for_range_slice(builder, *bounds, intp=first.type) as (i, _):
        builder.store(builder.fadd(builder.load(sums), term(i)), sums)
    return builder.load(sums)


def _dot(typing: Any, x: Any, w: Any) -> Any:
    """The sum over j of x[j] * w[j]; x of float32 or float64, w of float64, both contiguous, x not the shorter."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x_type, w_type = signature.args
        entries = context.make_array(x_type)(context, builder, arguments[0]).data
        w_array = context.make_array(w_type)(context, builder, arguments[1])
        weights, d = w_array.data, builder.extract_value(w_array.shape, 0)
        narrow = x_type.dtype == types.float32
        entry = ir.FloatType() if narrow else _DOUBLE
        zero, rest = ir.Constant(d.type, 0), builder.and_(d, ir.Constant(d.type, -LANES))

        def product(j: Any, kind: Any, of: Any) -> Any:
            x = builder.load(
                builder.bitcast(builder.gep(entries, [j]), of.as_pointer()), align=4 if narrow else 8
            )
            y = builder.load(builder.bitcast(builder.gep(weights, [j]), kind.as_pointer()), align=8)
            return builder.fmul(builder.fpext(x, kind) if narrow else x, y)

        products = partial(product, kind=VECTOR, of=ir.VectorType(entry, LANES))
        lane = split(builder, _accumulate(builder, _ZEROS, zero, rest, LANES, products))
        rest_of_them = partial(product, kind=_DOUBLE, of=entry)
        lane[0] = _accumulate(builder, lane[0], rest, d, 1, rest_of_them)
        return add_in_pairs(builder, lane)

    return types.float64(x, w), codegen


dot: Any = intrinsic(_dot)


def _sparse_dot(typing: Any, data: Any, indices: Any, first: Any, last: Any, w: Any) -> Any:
    """The sum over entries e from first up to last of data[e] * w[indices[e]], in the lanes that `dot` has for them."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data_type, indices_type, _, _, w_type = signature.args
        entries = context.make_array(data_type)(context, builder, arguments[0]).data
        places = context.make_array(indices_type)(context, builder, arguments[1]).data
        w_array = context.make_array(w_type)(context, builder, arguments[4])
        weights, d = w_array.data, builder.extract_value(w_array.shape, 0)
        zero, rest = ir.Constant(d.type, 0), builder.and_(d, ir.Constant(d.type, -LANES))
        lanes = _BUILD.alloca_once(builder, ir.ArrayType(_DOUBLE, LANES))
        slots = [builder.gep(lanes, [zero, ir.Constant(d.type, i)]) for i in range(LANES)]
        for slot in slots:
            builder.store(ir.Constant(_DOUBLE, 0.0), slot)
        bounds = (arguments[2], arguments[3], ir.Constant(d.type, 1))
        with _BUILD.for_range_slice(builder, *bounds, intp=d.type) as (e, _):
            x = builder.load(builder.gep(entries, [e]))
            x = builder.fpext(x, _DOUBLE) if data_type.dtype == types.float32 else x
            j = builder.sext(builder.load(builder.gep(places, [e])), d.type)
            in_whole = builder.icmp_signed("<", j, rest)
            lane = builder.select(in_whole, builder.and_(j, ir.Constant(d.type, LANES - 1)), zero)
            slot = builder.gep(lanes, [zero, lane])
            product = builder.fmul(x, builder.load(builder.gep(weights, [j])))
            builder.store(builder.fadd(builder.load(slot), product), slot)
        return add_in_pairs(builder, [builder.load(slot) for slot in slots])

    if indices.dtype != types.int32:
        return None
    return types.float64(data, indices, types.intp, types.intp, w), codegen


sparse_dot: Any = intrinsic(_sparse_dot)


def _sum_stretch(typing: Any, x: Any, j: Any, start: Any, stop: Any) -> Any:
    """x[j, start] + ... + x[j, stop - 1]."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        matrix = context.make_array(signature.args[0])(context, builder, arguments[0])
        _, row, first, last = arguments
        data = builder.gep(matrix.data, [builder.mul(row, builder.extract_value(matrix.shape, 1))])
        whole = builder.and_(builder.sub(last, first), ir.Constant(first.type, -LANES))
        middle = builder.add(first, whole)

        def entry(i: Any, kind: Any) -> Any:
            return builder.load(builder.bitcast(builder.gep(data, [i]), kind.as_pointer()), align=8)

        lanes = _accumulate(builder, _ZEROS, first, middle, LANES, partial(entry, kind=VECTOR))
        total = sum_lanes(builder, lanes)
        return _accumulate(builder, total, middle, last, 1, partial(entry, kind=_DOUBLE))

    if x.layout != "C":
        return None  # addresses are counted out, so nothing but a whole, contiguous matrix will do
    return types.float64(x, types.intp, types.intp, types.intp), codegen


sum_stretch: Any = intrinsic(_sum_stretch)


# Rows of float32 times weights, and sums of such rows, as LLVM vectors of sixteen: what `narrow_rows` is made of.
#
# Rows have at least sixteen entries. Weights and sums are in vectors: as many as fill them, then sixteen for the last
# entries of a row. Some of these are among the others already: they have weight 0, and their sums are not read.


NARROW_LANES = 16
_PLACE = ir.IntType(32)
_NARROW_VECTOR = ir.VectorType(ir.FloatType(), NARROW_LANES)


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
        return self.builder.bitcast(self.builder.gep(start, [j]), _NARROW_VECTOR.as_pointer())

    def load(self, start: Any, j: Any) -> Any:
        return self.builder.load(self.vector(start, j), align=4)

    def each(self, visit: Callable[[Any, Any], None]) -> None:
        """Call visit(j, k) for every vector: j counts the entries of a row, k those of weights and sums."""
        builder = self.builder
        bounds = (self.number(0), self.filled, self.number(NARROW_LANES))
        with _BUILD.for_range_slice(builder, *bounds, intp=self.d.type) as (j, _):
            visit(j, j)
        with builder.if_then(builder.icmp_signed("<", self.filled, self.d)):
            visit(builder.sub(self.d, self.number(NARROW_LANES)), self.filled)


def _dots_of(n_rows: int) -> Any:
    """Rows i, i + 1, ... times the weights in `scratch`, into `scores`."""

    def of_rows(typing: Any, features: Any, i: Any, scratch: Any, whole: Any, scores: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            rows = _Rows(context, builder, signature, arguments, n_rows)
            weights = context.make_array(signature.args[2])(context, builder, arguments[2]).data
            found = context.make_array(signature.args[4])(context, builder, arguments[4]).data
            none = ir.Constant(_NARROW_VECTOR, [0.0] * NARROW_LANES)
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
        return types.void(features, types.intp, scratch, types.intp, scores), codegen

    return intrinsic(of_rows)


def _sums_of_each(builder: Any, vectors: list[Any]) -> Any:
    # Of each vector the halves are added until one number is left; all of them side by side, in one vector.
    def picked(a: Any, b: Any, places: list[int]) -> Any:
        return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_PLACE, len(places)), places))

    parts, together, length = vectors, 1, NARROW_LANES  # each part: of so many vectors, `length` numbers
    while length > 1:
        length //= 2
        joined = 2 if len(parts) > 1 else 1
        together *= joined
        low = [2 * length * vector + i for vector in range(together) for i in range(length)]
        high = [place + length for place in low]
        pairs = zip(parts[::joined], parts[joined - 1 :: joined], strict=True)
        parts = [builder.fadd(picked(a, b, low), picked(a, b, high)) for a, b in pairs]
    return parts[0]


narrow_dots, narrow_dot = _dots_of(4), _dots_of(1)


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
    one = builder.insert_element(ir.Constant(_NARROW_VECTOR, ir.Undefined), narrow, ir.Constant(_PLACE, 0))
    return builder.shuffle_vector(
        one, one, ir.Constant(ir.VectorType(_PLACE, NARROW_LANES), [0] * NARROW_LANES)
    )


weigh_rows, weigh_row = _sums_of(4), _sums_of(1)


def _add_four(typing: Any, features: Any, i: Any, out: Any, whole: Any) -> Any:
    """To each of `out`, float64, the sum of its entries in rows i to i + 3: in float32, two and two, then all."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows = _Rows(context, builder, signature, arguments, 4)
        totals = context.make_array(signature.args[2])(context, builder, arguments[2]).data
        kind = ir.VectorType(ir.DoubleType(), NARROW_LANES)
        bounds = (rows.number(0), rows.filled, rows.number(NARROW_LANES))
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


# How many of some numbers are larger than each of them, eight at a time, as LLVM vectors.
#
# Every number meets eight others at once, whose counts stay in one register: nothing has to be added up at the end.


_COUNTS = ir.VectorType(ir.IntType(64), LANES)


def _count_above(typing: Any, values: Any, n: Any, counts: Any) -> Any:
    """Into counts[i], for the first n values, at least eight: how many of them are larger than values[i]."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        given = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        found = context.make_array(signature.args[2])(context, builder, arguments[2]).data
        n = arguments[1]
        zero, one, step = (ir.Constant(n.type, number) for number in (0, 1, LANES))
        last = builder.sub(n, step)
        none = ir.Constant(_COUNTS, [0] * LANES)
        with _BUILD.for_range_slice(builder, zero, n, step, intp=n.type) as (i, _):
            # The last eight may be counted twice.
            first = builder.select(builder.icmp_signed("<", i, last), i, last)
            eight = builder.load(builder.bitcast(builder.gep(given, [first]), VECTOR.as_pointer()), align=8)
            sums = _BUILD.alloca_once_value(builder, none)
            with _BUILD.for_range_slice(builder, zero, n, one, intp=n.type) as (j, _):
                other = spread(builder, builder.load(builder.gep(given, [j])))
                larger = builder.sext(builder.fcmp_ordered(">", other, eight), _COUNTS)
                builder.store(builder.sub(builder.load(sums), larger), sums)
            place = builder.bitcast(builder.gep(found, [first]), _COUNTS.as_pointer())
            builder.store(builder.load(sums), place, align=8)
        return context.get_dummy_value()

    if values.layout != "C" or values.dtype != types.float64 or counts.dtype.bitwidth != 64:
        return None
    return types.void(values, types.intp, counts), codegen


count_above: Any = intrinsic(_count_above)


# Whole rows of matrices in vectors of eight: entry by entry, and dot products in a fixed order.
#
# Rows are as long as a multiple of eight. In plain code the compiler would prove the same only for some of these
# loops; in the others a vector is read right after its entries were written one by one, which the processor waits
# for.


_LINE = 64  # bytes of a vector, and of a line of the processor's cache
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


# Which slots of a plan are tight, eight at a time: few are, and those that are not cost next to nothing.


def _find_tight_slots(typing: Any, u: Any, rows: Any, most: Any, tight: Any) -> Any:
    """Write to `tight` where `u` is not zero or the row sum not at most `most`; returns how many, -1 without room.

    Both arrays are as long as a multiple of eight.
    """

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        multipliers, sums, found = (
            context.make_array(signature.args[k])(context, builder, arguments[k]) for k in (0, 1, 3)
        )
        n, space = (builder.extract_value(array.shape, 0) for array in (sums, found))
        zero, one, bound = ir.Constant(n.type, 0), ir.Constant(n.type, 1), spread(builder, arguments[2])
        number, left = (_BUILD.alloca_once_value(builder, zero) for _ in range(2))
        with _BUILD.for_range_slice(builder, zero, n, ir.Constant(n.type, LANES), intp=n.type) as (s, _):
            multiplier, total = (
                builder.load(builder.bitcast(builder.gep(start, [s]), VECTOR.as_pointer()), align=8)
                for start in (multipliers.data, sums.data)
            )
            here = builder.or_(
                builder.fcmp_unordered("!=", multiplier, _ZEROS), builder.fcmp_unordered(">", total, bound)
            )
            bits = builder.zext(builder.bitcast(here, ir.IntType(LANES)), n.type)
            builder.store(bits, left)
            with _BUILD.for_range_slice(builder, zero, builder.ctpop(bits), one, intp=n.type):
                bits, count = builder.load(left), builder.load(number)
                place = builder.select(builder.icmp_signed("<", count, space), count, zero)
                lane = builder.cttz(bits, ir.Constant(ir.IntType(1), 1))
                builder.store(builder.add(s, lane), builder.gep(found.data, [place]))
                builder.store(builder.and_(bits, builder.sub(bits, one)), left)
                builder.store(builder.add(count, one), number)
        count = builder.load(number)
        return builder.select(builder.icmp_signed("<=", count, space), count, ir.Constant(n.type, -1))

    if any(array.layout != "C" for array in (u, rows, tight)):
        return None  # addresses are counted out
    return types.intp(u, rows, types.float64, tight), codegen


find_tight_slots: Any = intrinsic(_find_tight_slots)


# Sums of 1 / D^2 over many items at once, D = L + v, as polynomials in how far v has moved since they were taken.
#
# Of an entry, 1 / (D + d)^2 = sum over k of (-1)^k (k + 1) d^k / D^(k + 2). The coefficients add up over items, so a
# column of items whose L stays is evaluated at any v in a few multiplications; an item whose L changes is taken out
# with its old coefficients and put in with its new ones. With |d| <= REACH D, what the polynomial leaves out is below
# (TERMS + 1) REACH^TERMS = 6e-11 of the sum.


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


# One pass over a column of the Tsallis minimiser: x = t / D^2, D = L + u + v, and what Newton's method needs of it.
#
# Eight items at a time, as LLVM vectors, with the sums in a fixed order: as quick as the processor divides, and the
# same on every machine (see `lanes`). One division an entry; everything else is multiplied from it.


_TYPES: Any = types


def _evaluate_column(
    typing: Any, L: Any, j: Any, u: Any, v: Any, t: Any, weight: Any, x: Any, rows: Any
) -> Any:
    """Write x[j] and add it to `rows`, which column 0 begins; returns the sums of x over the items and of h = x / D.

    h counts where the multiplier is zero, times `weight`.
    """

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def first(k: int, row: Any = None) -> Any:
            array = context.make_array(signature.args[k])(context, builder, arguments[k])
            if row is None:
                return array.data, array
            length = builder.extract_value(array.shape, 1)
            return builder.gep(array.data, [builder.mul(row, length)]), array

        losses, matrix = first(0, arguments[1])
        n = builder.extract_value(matrix.shape, 1)
        multipliers, chances = first(2)[0], first(6, arguments[1])[0]
        totals = first(7)[0]
        begun = builder.icmp_signed("!=", arguments[1], ir.Constant(n.type, 0))
        rest = builder.and_(n, ir.Constant(n.type, -LANES))

        def at(start: Any, i: Any, kind: Any) -> Any:
            return builder.bitcast(builder.gep(start, [i]), kind.as_pointer())

        def alike(value: Any, kind: Any) -> Any:
            return value if kind is _DOUBLE else spread(builder, value)

        def number(value: float, kind: Any) -> Any:
            return ir.Constant(kind, value if kind is _DOUBLE else [value] * LANES)

        def so_far(totals: Any, kind: Any) -> Any:
            # As bits, because a choice between two vectors would make the compiler write the loop twice.
            whole = ir.IntType(64) if kind is _DOUBLE else ir.VectorType(ir.IntType(64), LANES)
            mask = builder.sext(begun, ir.IntType(64))
            mask = mask if kind is _DOUBLE else spread(builder, mask, whole)
            return builder.bitcast(builder.and_(builder.bitcast(totals, whole), mask), kind)

        def run(begin: Any, end: Any, step: int, kind: Any, sums: Any) -> Any:
            kept = [_BUILD.alloca_once_value(builder, total) for total in sums]
            v_all, t_all, weight_all = (alike(arguments[k], kind) for k in (3, 4, 5))
            bounds = (begin, end, ir.Constant(n.type, step))
            with _BUILD.for_range_slice(builder, *bounds, intp=n.type) as (i, _):

                def load(start: Any) -> Any:
                    return builder.load(at(start, i, kind), align=8)

                multiplier = load(multipliers)
                D = builder.fadd(builder.fadd(load(losses), multiplier), v_all)
                inverse = builder.fdiv(number(1.0, kind), D)
                chance = builder.fmul(builder.fmul(t_all, inverse), inverse)
                builder.store(chance, at(chances, i, kind), align=8)
                total = builder.fadd(so_far(load(totals), kind), chance)
                builder.store(total, at(totals, i, kind), align=8)
                zero = number(0.0, kind)
                factor = builder.select(builder.fcmp_ordered("==", multiplier, zero), weight_all, zero)
                h = builder.fmul(builder.fmul(chance, inverse), factor)
                for place, term in zip(kept, (chance, h), strict=True):
                    builder.store(builder.fadd(builder.load(place), term), place)
            return [builder.load(place) for place in kept]

        zeros = [ir.Constant(VECTOR, [0.0] * LANES)] * 2
        sums = run(ir.Constant(n.type, 0), rest, LANES, VECTOR, zeros)
        added = [sum_lanes(builder, vector) for vector in sums]
        added = run(rest, n, 1, _DOUBLE, added)
        return context.make_tuple(builder, signature.return_type, added)

    if any(array.layout != "C" for array in (L, u, x, rows)):
        return None  # addresses are counted out, so nothing but whole, contiguous arrays will do
    returned = _TYPES.UniTuple(types.float64, 2)
    return returned(L, types.intp, u, types.float64, types.float64, types.float64, x, rows), codegen


evaluate_column: Any = intrinsic(_evaluate_column)
