"""Which slots of a plan are tight, eight at a time: few are, and those that are not cost next to nothing."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from rankloop.kernels.vector_sums import LANES, VECTOR, spread

_BUILD: Any = cgutils
_ZEROS = ir.Constant(VECTOR, [0.0] * LANES)


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
