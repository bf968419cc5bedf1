"""How many of some numbers are larger than each of them, eight at a time, as LLVM vectors.

Every number meets eight others at once, whose counts stay in one register: nothing has to be added up at the end.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from rankloop.kernels.vector_sums import LANES, VECTOR, spread

_BUILD: Any = cgutils
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
