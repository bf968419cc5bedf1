"""The sum of a stretch of a row, in eight lanes: quick, and the same on every machine (see `lanes`)."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from rankloop.kernels.vector_sums import add_in_pairs, split

_BUILD: Any = cgutils
_LANES = 8
_DOUBLE = ir.DoubleType()


def _sum_stretch(typing: Any, x: Any, j: Any, start: Any, stop: Any) -> Any:
    """x[j, start] + ... + x[j, stop - 1]."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        matrix = context.make_array(signature.args[0])(context, builder, arguments[0])
        _, row, first, last = arguments
        data = builder.gep(matrix.data, [builder.mul(row, builder.extract_value(matrix.shape, 1))])
        whole = builder.and_(builder.sub(last, first), ir.Constant(first.type, -_LANES))
        middle = builder.add(first, whole)

        def add_up(total: Any, begin: Any, end: Any, step: int, kind: Any) -> Any:
            sums = _BUILD.alloca_once_value(builder, total)
            bounds = (begin, end, ir.Constant(begin.type, step))
            with _BUILD.for_range_slice(builder, *bounds, intp=begin.type) as (i, _):
                place = builder.bitcast(builder.gep(data, [i]), kind.as_pointer())
                builder.store(builder.fadd(builder.load(sums), builder.load(place, align=8)), sums)
            return builder.load(sums)

        lanes = ir.VectorType(_DOUBLE, _LANES)
        sums = add_up(ir.Constant(lanes, [0.0] * _LANES), first, middle, _LANES, lanes)
        return add_up(add_in_pairs(builder, split(builder, sums)), middle, last, 1, _DOUBLE)

    if x.layout != "C":
        return None  # addresses are counted out, so nothing but a whole, contiguous matrix will do
    return types.float64(x, types.intp, types.intp, types.intp), codegen


sum_stretch: Any = intrinsic(_sum_stretch)
