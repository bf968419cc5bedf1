"""The vectors of `vectors`, written in LLVM: what the compiler makes of them. Imported where numba compiles.

Every vector here takes at most two thirds of the time of the same arithmetic in a plain kernel.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from rankloop.kernels import loop, vectors
from rankloop.kernels.vectors import LANES, NARROW_LANES, TERMS, Vector

WRITTEN: dict[str, Any] = {}  # what numba takes for a vector, by its name
_BUILD: Any = cgutils
_TYPES: Any = types
_DOUBLE, _FLOAT, _WORD = ir.DoubleType(), ir.FloatType(), ir.IntType(64)
_VECTOR = ir.VectorType(_DOUBLE, LANES)
_NARROW, _HALF_NARROW = ir.VectorType(_FLOAT, NARROW_LANES), ir.VectorType(_FLOAT, LANES)
_WORDS = ir.VectorType(_WORD, LANES)
_ZEROS = ir.Constant(_VECTOR, [0.0] * LANES)
_PAIR = _TYPES.UniTuple(types.float64, 2)


class _Code:
    """What a vector is written with: its arguments, counted from 0, and loads, stores and loops."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        self.context, self.builder, self.signature, self.arguments = context, builder, signature, arguments

    def _array(self, k: int) -> Any:
        kind = self.context.make_array(self.signature.args[k])
        return kind(self.context, self.builder, self.arguments[k])

    def size(self, k: int, axis: int = 0) -> Any:
        """How long argument k is."""
        return self.builder.extract_value(self._array(k).shape, axis)

    def start(self, k: int, row: Any = None) -> Any:
        """Where argument k begins in memory, or one of its rows."""
        begin = self._array(k).data
        return begin if row is None else self.builder.gep(begin, [self.builder.mul(row, self.size(k, 1))])

    def rows(self, number: int) -> list[Any]:
        """Where the rows begin that the first arguments are: `number` pairs of a matrix and a row."""
        return [self.start(k, self.arguments[k + 1]) for k in range(0, 2 * number, 2)]

    def place(self, start: Any, i: Any, kind: Any = _VECTOR) -> Any:
        """Where entry i lies, as an address of this kind."""
        return self.builder.bitcast(self.builder.gep(start, [i]), kind.as_pointer())

    def load(self, start: Any, i: Any, kind: Any = _VECTOR) -> Any:
        """The entries from i on."""
        align = 4 if _FLOAT in (kind, getattr(kind, "element", None)) else 8
        return self.builder.load(self.place(start, i, kind), align=align)

    def store(self, value: Any, start: Any, i: Any) -> None:
        """Write the entries from i on."""
        align = 4 if value.type == _NARROW else 8
        self.builder.store(value, self.place(start, i, value.type), align=align)

    def loop(self, first: Any, last: Any, step: int) -> Any:
        """For every `step`-th place from `first` on, below `last`."""
        first, last = self.whole(first), self.whole(last)
        return _BUILD.for_range_slice(self.builder, first, last, self.whole(step), intp=_WORD)

    def variable(self, value: Any) -> Any:
        """A number or vector that changes as the loop goes on."""
        return _BUILD.alloca_once_value(self.builder, value)

    def add_to(self, variable: Any, term: Any) -> None:
        """Add to a variable."""
        self.builder.store(self.builder.fadd(self.builder.load(variable), term), variable)

    def whole(self, value: Any) -> Any:
        """A whole number, as LLVM has it."""
        return ir.Constant(_WORD, value) if isinstance(value, int) else value

    def filled(self, length: Any, lanes: int = LANES) -> Any:
        """How many of `length` entries fill vectors."""
        return self.builder.and_(length, self.whole(-lanes))

    def spread(self, value: Any, kind: Any = _VECTOR) -> Any:
        """A vector with `value` in every lane; of a number, the number itself where `kind` is one."""
        if kind is _DOUBLE:
            return value
        none = ir.Constant(kind, ir.Undefined)
        first = self.builder.insert_element(none, value, ir.Constant(ir.IntType(32), 0))
        return self.picked(first, first, [0] * kind.count)

    def picked(self, a: Any, b: Any, places: list[int]) -> Any:
        """These entries of a and b, one after the other."""
        mask = ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places)
        return self.builder.shuffle_vector(a, b, mask)

    def in_pairs(self, vectors: list[Any]) -> Any:
        """The sum of each vector's lanes, side by side in one: halves are added until one number is left."""
        parts, together, length = (
            vectors,
            1,
            vectors[0].type.count,
        )  # a part: `length` numbers of so many vectors
        while length > 1:
            length //= 2
            joined = 2 if len(parts) > 1 else 1
            together *= joined
            low = [2 * length * vector + i for vector in range(together) for i in range(length)]
            high = [place + length for place in low]
            pairs = zip(parts[::joined], parts[joined - 1 :: joined], strict=True)
            parts = [self.builder.fadd(self.picked(a, b, low), self.picked(a, b, high)) for a, b in pairs]
        return parts[0]

    def sum_lanes(self, vector: Any) -> Any:
        """The sum of one vector's lanes."""
        return self.builder.extract_element(self.in_pairs([vector]), ir.Constant(ir.IntType(32), 0))

    def accumulate(self, total: Any, first: Any, last: Any, step: int, term: Any) -> Any:
        """Total + term(first) + term(first + step) + ... below last."""
        sums = self.variable(total)
        with self.loop(first, last, step) as (i, _):
            self.add_to(sums, term(i))
        return self.builder.load(sums)

    def write_row(self, starts: Any, length: Any, compute: Callable[..., Any]) -> None:
        """Into the first row, vector by vector: what `compute` makes of the same entries of all rows."""
        with self.loop(0, length, LANES) as (k, _):
            self.store(compute(*(self.load(start, k) for start in starts)), starts[0], k)


_NUMBERS = {"n": types.intp, "x": types.float64}
_ARRAYS = {"a": None, "f": types.float32, "i": types.int32}  # any array, one of float32, one of int32


def _writes(vector: Vector, kinds: str, returned: Any = types.void) -> Callable[[Any], Any]:
    """Make a writer of LLVM what `vector` is when it is compiled; a letter for each argument, an array or a number."""

    def function(write: Any) -> Any:
        def typed(typing: Any, *arguments: Any) -> Any:
            for letter, kind in zip(kinds, arguments, strict=True):
                # Addresses are counted out, so nothing but whole, contiguous arrays will do.
                if letter in _ARRAYS and (kind.layout != "C" or _ARRAYS[letter] not in (None, kind.dtype)):
                    return None
            pairs = zip(kinds, arguments, strict=True)
            return returned(*(_NUMBERS.get(letter, kind) for letter, kind in pairs)), codegen

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            value = write(_Code(context, builder, signature, arguments))
            return context.get_dummy_value() if returned is types.void else value

        own = inspect.signature(vector.twin)
        first = inspect.Parameter("typing", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        described: Any = typed
        described.__signature__ = own.replace(parameters=[first, *own.parameters.values()])
        described.__name__ = vector.twin.__name__
        WRITTEN[vector.twin.__name__] = intrinsic(typed)
        return write

    return function


@_writes(vectors.dot, "aa", types.float64)
def _dot(code: _Code) -> Any:
    builder, x, w, d = code.builder, code.start(0), code.start(1), code.size(1)
    narrow = code.signature.args[0].dtype == types.float32
    whole, first = code.filled(d), ir.Constant(ir.IntType(32), 0)

    def product(j: Any, kind: Any) -> Any:
        if narrow:
            entries = builder.fpext(code.load(x, j, _FLOAT if kind is _DOUBLE else _HALF_NARROW), kind)
        else:
            entries = code.load(x, j, kind)
        return builder.fmul(entries, code.load(w, j, kind))

    lanes = code.accumulate(_ZEROS, 0, whole, LANES, partial(product, kind=_VECTOR))
    rest = builder.extract_element(lanes, first)
    rest = code.accumulate(rest, whole, d, 1, partial(product, kind=_DOUBLE))
    return code.sum_lanes(builder.insert_element(lanes, rest, first))


@_writes(vectors.sparse_dot, "ainna", types.float64)
def _sparse_dot(code: _Code) -> Any:
    builder, data, indices, w = code.builder, code.start(0), code.start(1), code.start(4)
    narrow = code.signature.args[0].dtype == types.float32
    whole = code.filled(code.size(4))
    lanes = _BUILD.alloca_once(builder, ir.ArrayType(_DOUBLE, LANES))
    begin = builder.bitcast(lanes, _DOUBLE.as_pointer())
    code.store(_ZEROS, begin, code.whole(0))
    with code.loop(code.arguments[2], code.arguments[3], 1) as (e, _):
        x = builder.load(builder.gep(data, [e]))
        j = builder.sext(builder.load(builder.gep(indices, [e])), _WORD)
        own = builder.and_(j, code.whole(LANES - 1))
        lane = builder.select(builder.icmp_signed("<", j, whole), own, code.whole(0))
        weight = builder.load(builder.gep(w, [j]))
        code.add_to(
            builder.gep(begin, [lane]), builder.fmul(builder.fpext(x, _DOUBLE) if narrow else x, weight)
        )
    return code.sum_lanes(code.load(begin, code.whole(0)))


@_writes(vectors.sum_stretch, "annn", types.float64)
def _sum_stretch(code: _Code) -> Any:
    _, row, first, last = code.arguments
    data = code.start(0, row)
    middle = code.builder.add(first, code.filled(code.builder.sub(last, first)))
    lanes = code.accumulate(_ZEROS, first, middle, LANES, partial(code.load, data))
    return code.accumulate(code.sum_lanes(lanes), middle, last, 1, partial(code.load, data, kind=_DOUBLE))


# Rows of float32 in sixteen lanes: what `rows` scores and adds up narrow rows with.
#
# Rows have at least sixteen entries. Weights and sums are in vectors: as many as fill them, `whole` entries, then
# sixteen for the last entries of a row. Some of these are among the others already: they have weight 0, and their sums
# are not read.


def _each(code: _Code, visit: Callable[[Any, Any], None]) -> None:
    # visit(j, k) for every vector: j counts the entries of a row, k those of weights and sums.
    d, filled = code.size(0, 1), code.arguments[3]
    with code.loop(0, filled, NARROW_LANES) as (j, _):
        visit(j, j)
    with code.builder.if_then(code.builder.icmp_signed("<", filled, d)):
        visit(code.builder.sub(d, code.whole(NARROW_LANES)), filled)


def _next_rows(code: _Code, number: int) -> tuple[list[Any], list[Any]]:
    # Rows i, i + 1, ...: their numbers, and where they begin.
    places = [code.builder.add(code.arguments[1], code.whole(row)) for row in range(number)]
    return places, [code.start(0, place) for place in places]


def _write_narrow_dots(number: int, code: _Code) -> None:
    _, starts = _next_rows(code, number)
    weights = code.start(2)
    sums = [code.variable(ir.Constant(_NARROW, [0.0] * NARROW_LANES)) for _ in starts]

    def add(j: Any, k: Any) -> None:
        those = code.load(weights, k, _NARROW)
        for start, total in zip(starts, sums, strict=True):
            code.add_to(total, code.builder.fmul(code.load(start, j, _NARROW), those))

    _each(code, add)
    totals = code.in_pairs([code.builder.load(total) for total in sums])
    wide = code.builder.fpext(totals, ir.VectorType(_DOUBLE, number))
    code.store(wide, code.start(4), code.arguments[1])


@_writes(vectors.narrow_dot, "fnana")
def _narrow_dot(code: _Code) -> None:
    _write_narrow_dots(1, code)


@_writes(vectors.narrow_dots, "fnana")
def _narrow_dots(code: _Code) -> None:
    _write_narrow_dots(4, code)


def _write_weigh(number: int, code: _Code) -> None:
    places, starts = _next_rows(code, number)
    weights, sums, builder = code.start(2), code.start(4), code.builder
    numbers = [builder.fptrunc(builder.load(builder.gep(weights, [place])), _FLOAT) for place in places]
    factors = [code.spread(factor, _NARROW) for factor in numbers]

    def add(j: Any, k: Any) -> None:
        total = code.load(sums, k, _NARROW)
        for factor, start in zip(factors, starts, strict=True):
            total = builder.fadd(total, builder.fmul(factor, code.load(start, j, _NARROW)))
        code.store(total, sums, k)

    _each(code, add)


@_writes(vectors.weigh_row, "fnana")
def _weigh_row(code: _Code) -> None:
    _write_weigh(1, code)


@_writes(vectors.weigh_rows, "fnana")
def _weigh_rows(code: _Code) -> None:
    _write_weigh(4, code)


@_writes(vectors.add_four, "fna")
def _add_four(code: _Code) -> None:
    builder, (_, starts), out, first = code.builder, _next_rows(code, 4), code.start(2), code.whole(0)
    for lanes in (NARROW_LANES, 4, 1):
        last = code.filled(code.size(0, 1), lanes)
        narrow, kind = ir.VectorType(_FLOAT, lanes), ir.VectorType(_DOUBLE, lanes)
        with code.loop(first, last, lanes) as (j, _):
            a, b, c, d = (code.load(start, j, narrow) for start in starts)
            four = builder.fpext(builder.fadd(builder.fadd(a, b), builder.fadd(c, d)), kind)
            code.store(builder.fadd(code.load(out, j, kind), four), out, j)
        first = last


# Sorting: every number meets eight others at once, whose counts stay in one register.


@_writes(vectors.count_above, "ana")
def _count_above(code: _Code) -> None:
    builder, values, n = code.builder, code.start(0), code.arguments[1]
    last = builder.sub(n, code.whole(LANES))
    with code.loop(0, n, LANES) as (i, _):
        first = builder.select(
            builder.icmp_signed("<", i, last), i, last
        )  # the last eight may be counted twice
        eight = code.load(values, first)
        counts = code.variable(ir.Constant(_WORDS, [0] * LANES))
        with code.loop(0, n, 1) as (j, _):
            other = code.spread(builder.load(builder.gep(values, [j])))
            larger = builder.sext(builder.fcmp_ordered(">", other, eight), _WORDS)
            builder.store(builder.sub(builder.load(counts), larger), counts)
        code.store(builder.load(counts), code.start(2), first)


# Whole rows of matrices, as long as a multiple of eight: entry by entry, and dot products.
#
# In plain code a vector is read right after its entries were written one by one, which the processor waits for.


@_writes(vectors.fill_row, "anax")
def _fill_row(code: _Code) -> None:
    builder, x, number = code.builder, code.start(2), code.size(2)
    (out,) = code.rows(1)
    kind = [_VECTOR.as_pointer(), ir.IntType(32), ir.VectorType(ir.IntType(1), LANES), _VECTOR]
    name = "llvm.masked.load.v8f64.p0"
    load = _BUILD.get_or_insert_function(builder.module, ir.FunctionType(_VECTOR, kind), name)
    beyond, align = code.spread(code.arguments[3]), ir.Constant(ir.IntType(32), 8)
    with code.loop(0, code.size(0, 1), LANES) as (k, _):
        left = code.spread(builder.sub(number, k), _WORDS)
        there = builder.icmp_signed("<", ir.Constant(_WORDS, list(range(LANES))), left)
        code.store(builder.call(load, [code.place(x, k), align, there, beyond]), out, k)


@_writes(vectors.scale, "anx")
def _scale(code: _Code) -> None:
    factor = code.spread(code.arguments[2])
    code.write_row([code.start(0)], code.arguments[1], lambda own: code.builder.fmul(own, factor))


@_writes(vectors.add_row, "ananx")
def _add_row(code: _Code) -> None:
    builder, factor = code.builder, code.spread(code.arguments[4])
    code.write_row(code.rows(2), code.size(0, 1), lambda own, x: builder.fadd(own, builder.fmul(factor, x)))


@_writes(vectors.multiply_rows, "ananan")
def _multiply_rows(code: _Code) -> None:
    code.write_row(code.rows(3), code.size(0, 1), lambda own, x, y: code.builder.fmul(x, y))


@_writes(vectors.inverse_cubes, "anananxx")
def _inverse_cubes(code: _Code) -> None:
    builder, c, t = code.builder, code.spread(code.arguments[6]), code.spread(code.arguments[7])

    def cube(own: Any, x: Any, y: Any) -> Any:
        ones = ir.Constant(_VECTOR, [1.0] * LANES)
        inverse = builder.fdiv(ones, builder.fadd(builder.fadd(x, c), y))
        return builder.fmul(builder.fmul(builder.fmul(t, inverse), inverse), inverse)

    code.write_row(code.rows(3), code.size(0, 1), cube)


def _sum_up(code: _Code, out: Any, x: Any, y: int, add: Callable[..., Any]) -> None:
    # Into row `out`: row x, to which `add` adds the rows of argument y, as many as the last argument says.
    length = code.size(0, 1)
    with code.loop(0, length, LANES) as (k, _):
        sums = code.variable(code.load(x, k))
        with code.loop(0, code.arguments[-1], 1) as (a, _):
            row = code.load(code.start(y, a), k)
            code.builder.store(add(code.builder.load(sums), row, a), sums)
        code.store(code.builder.load(sums), out, k)


@_writes(vectors.sum_rows, "ananan")
def _sum_rows(code: _Code) -> None:
    out, x = code.rows(2)
    _sum_up(code, out, x, 4, lambda sums, row, a: code.builder.fadd(sums, row))


@_writes(vectors.subtract_rows, "anaan")
def _subtract_rows(code: _Code) -> None:
    builder, weights = code.builder, code.start(3)
    (out,) = code.rows(1)

    def subtract(sums: Any, row: Any, a: Any) -> Any:
        weight = code.spread(builder.load(builder.gep(weights, [a])))
        return builder.fsub(sums, builder.fmul(weight, row))

    _sum_up(code, out, out, 2, subtract)


def _dot_rows(code: _Code, x: Any, y: Any, length: Any) -> Any:
    # Of rows that begin at x and y; the first products begin the sums.
    def product(k: Any) -> Any:
        return code.builder.fmul(code.load(x, k), code.load(y, k))

    sums = code.variable(product(code.whole(0)))
    with code.loop(LANES, length, LANES) as (k, _):
        code.add_to(sums, product(k))
    return code.sum_lanes(code.builder.load(sums))


@_writes(vectors.row_dot, "anan", types.float64)
def _row_dot(code: _Code) -> Any:
    x, y = code.rows(2)
    return _dot_rows(code, x, y, code.size(0, 1))


@_writes(vectors.row_dots, "ananan")
def _row_dots(code: _Code) -> None:
    out, x = code.rows(2)
    with code.loop(0, code.arguments[5], 1) as (b, _):
        total = _dot_rows(code, x, code.start(4, b), code.size(2, 1))
        code.builder.store(total, code.builder.gep(out, [b]))


# What FTRL-PBM's minimiser does in every step of Newton's method: see `tsallis` and `list_plan`.


@_writes(vectors.find_tight_slots, "aaxa", types.intp)
def _find_tight_slots(code: _Code) -> Any:
    builder, u, rows, tight, space = code.builder, code.start(0), code.start(1), code.start(3), code.size(3)
    zero, one, most = code.whole(0), code.whole(1), code.spread(code.arguments[2])
    number, left = code.variable(zero), code.variable(zero)
    with code.loop(0, code.size(1), LANES) as (s, _):
        held = builder.fcmp_unordered("!=", code.load(u, s), _ZEROS)
        here = builder.or_(held, builder.fcmp_unordered(">", code.load(rows, s), most))
        bits = builder.zext(builder.bitcast(here, ir.IntType(LANES)), _WORD)
        builder.store(bits, left)
        with code.loop(0, builder.ctpop(bits), 1):
            bits, count = builder.load(left), builder.load(number)
            place = builder.select(builder.icmp_signed("<", count, space), count, zero)
            lane = builder.cttz(bits, ir.Constant(ir.IntType(1), 1))
            builder.store(builder.add(s, lane), builder.gep(tight, [place]))
            builder.store(builder.and_(bits, builder.sub(bits, one)), left)
            builder.store(builder.add(count, one), number)
    count = builder.load(number)
    return builder.select(builder.icmp_signed("<=", count, space), count, code.whole(-1))


@_writes(vectors.polynomials, "anxxna")
def _polynomials(code: _Code) -> None:
    builder, bins = code.builder, code.size(0, 2)
    _, row, d, t, n_bins, _ = code.arguments
    d, t = code.spread(d), code.spread(t)
    line = builder.mul(bins, code.whole(TERMS))
    sums, out = builder.gep(code.start(0), [builder.mul(row, line)]), code.start(5, row)
    with code.loop(0, n_bins, LANES) as (b, _):

        def coefficient(k: int) -> Any:
            return code.load(sums, builder.add(builder.mul(bins, code.whole(k)), b))

        value = coefficient(TERMS - 1)
        for k in range(TERMS - 2, -1, -1):
            value = builder.fadd(builder.fmul(value, d), coefficient(k))
        code.store(builder.fmul(value, t), out, b)


@_writes(vectors.evaluate_column, "anaxxxaa", _PAIR)
def _evaluate_column(code: _Code) -> Any:
    builder, j, n = code.builder, code.arguments[1], code.size(0, 1)
    losses, u, x, rows = code.start(0, j), code.start(2), code.start(6, j), code.start(7)
    whole, begun = code.filled(n), builder.icmp_signed("!=", j, code.whole(0))

    def so_far(totals: Any, kind: Any) -> Any:
        # As bits, because a choice between two vectors would make the compiler write the loop twice.
        bits, mask = (_WORD if kind is _DOUBLE else _WORDS), builder.sext(begun, _WORD)
        mask = mask if kind is _DOUBLE else code.spread(mask, _WORDS)
        return builder.bitcast(builder.and_(builder.bitcast(totals, bits), mask), kind)

    def run(first: Any, last: Any, kind: Any, sums: Any) -> Any:
        totals = [code.variable(total) for total in sums]
        v, t, weight = (code.spread(code.arguments[k], kind) for k in (3, 4, 5))
        one, zero = (code.spread(ir.Constant(_DOUBLE, value), kind) for value in (1.0, 0.0))
        with code.loop(first, last, 1 if kind is _DOUBLE else LANES) as (i, _):
            multiplier = code.load(u, i, kind)
            D = builder.fadd(builder.fadd(code.load(losses, i, kind), multiplier), v)
            inverse = builder.fdiv(one, D)
            chance = builder.fmul(builder.fmul(t, inverse), inverse)
            code.store(chance, x, i)
            code.store(builder.fadd(so_far(code.load(rows, i, kind), kind), chance), rows, i)
            factor = builder.select(builder.fcmp_ordered("==", multiplier, zero), weight, zero)
            code.add_to(totals[0], chance)
            code.add_to(totals[1], builder.fmul(builder.fmul(chance, inverse), factor))
        return [builder.load(total) for total in totals]

    sums = [code.sum_lanes(lanes) for lanes in run(0, whole, _VECTOR, [_ZEROS, _ZEROS])]
    return code.context.make_tuple(builder, _PAIR, run(whole, n, _DOUBLE, sums))


@_writes(loop.call, "na")
def _call(code: _Code) -> None:
    address, words = code.arguments[0], code.builder.bitcast(code.start(1), _WORD.as_pointer())
    kind = ir.FunctionType(ir.VoidType(), [_WORD.as_pointer()])
    code.builder.call(code.builder.inttoptr(address, kind.as_pointer()), [words])
