"""A grounded network of a few nodes, solved in the registers of the processor.

The operations are those of the loops in `planned_step`, in the same order, but written out for each number of nodes:
nothing is stored in between, and no branch has to be guessed.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_TYPES: Any = types
MOST = 8  # nodes
_ONE = ir.Constant(ir.DoubleType(), 1.0)


def _solve_small(typing: Any, w: Any, drain: Any, du: Any, u: Any, tight: Any, n: Any) -> Any:
    """Turn the flow into each of `n` nodes, in `du`, into how far it rises, which is not below -u[tight].

    Conductances are in `w` between nodes a > b, and in `drain` to the ground. Of no or more than `MOST` nodes, nothing
    is done.
    """

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pairs = zip(signature.args[:5], arguments[:5], strict=True)
        between, grounds, flows, falls, nodes = (
            context.make_array(kind)(context, builder, value) for kind, value in pairs
        )
        width = builder.extract_value(between.shape, 1)

        def whole(k: int) -> Any:
            return ir.Constant(width.type, k)

        def load(array: Any, k: int, row: int = 0) -> Any:
            place = builder.add(builder.mul(width, whole(row)), whole(k))
            return builder.load(builder.gep(array.data, [place]))

        end = builder.append_basic_block()
        choice = builder.switch(arguments[5], end)
        for k in range(1, MOST + 1):
            block = builder.append_basic_block()
            choice.add_case(whole(k), block)
            builder.position_at_end(block)
            rises = _rises(
                builder,
                [[load(between, b, a) for b in range(a)] for a in range(k)],
                [load(grounds, a) for a in range(k)],
                [load(flows, a) for a in range(k)],
                [builder.load(builder.gep(falls.data, [load(nodes, a)])) for a in range(k)],
            )
            for a, rise in enumerate(rises):
                builder.store(rise, builder.gep(flows.data, [whole(a)]))
            builder.branch(end)
        builder.position_at_end(end)
        return context.get_dummy_value()

    if any(array.layout != "C" for array in (w, drain, du, u, tight)):
        return None  # addresses are counted out
    return _TYPES.void(w, drain, du, u, tight, types.intp), codegen


def _rises(builder: Any, w: Any, drain: Any, flow: Any, most: Any) -> list[Any]:
    inverse: list[Any] = [None] * len(flow)
    for a in range(len(flow) - 1, -1, -1):  # eliminate node a: its conductances pass to the others
        total = drain[a]
        for b in range(a):
            total = builder.fadd(total, w[a][b])
        inverse[a] = builder.fdiv(_ONE, total)
        for b in range(a):
            part = builder.fmul(w[a][b], inverse[a])
            drain[b] = builder.fadd(drain[b], builder.fmul(part, drain[a]))
            flow[b] = builder.fadd(flow[b], builder.fmul(part, flow[a]))
            for c in range(b):
                w[b][c] = builder.fadd(w[b][c], builder.fmul(part, w[a][c]))
    rises: list[Any] = []
    for a, total in enumerate(flow):
        for b in range(a):
            total = builder.fadd(total, builder.fmul(w[a][b], rises[b]))
        rise, least = builder.fmul(total, inverse[a]), builder.fneg(most[a])
        rises.append(builder.select(builder.fcmp_ordered("<", rise, least), least, rise))
    return rises


solve_small: Any = intrinsic(_solve_small)
