"""One pass over a column of the Tsallis minimiser: x = t / D^2, D = L + u + v, and what Newton's method needs of it.

Eight items at a time, as LLVM vectors, with the sums in a fixed order: as quick as the processor divides, and the same
on every machine (see `lanes`). One division an entry; everything else is multiplied from it.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from rankloop.kernels.vector_sums import LANES, VECTOR, spread, sum_lanes

_BUILD: Any = cgutils
_TYPES: Any = types
_DOUBLE = ir.DoubleType()


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
