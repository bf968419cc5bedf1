"""numba-cuda: compiles a function that calls kernels for a GPU of NVIDIA's. No GPU is needed for that.

Kernels are compiled as they are, but for three things. Products and sums are not fused, so that every operation is
rounded as on a CPU. Tables lie in ordinary memory: constant memory serves the 32 threads of a warp one after another
where they read different entries. The square root and `ceil` are those of `math`, which round in the same way.
"""

from __future__ import annotations

import functools
import importlib
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FunctionType, SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from rankloop.extras import require
from rankloop.kernels import elementary, jit, rows, sorting
from rankloop.kernels.vectors import Vector

_WITH_CHOOSERS = rows, sorting
_OF_MATH: dict[Any, Any] = {np.sqrt: math.sqrt, np.ceil: math.ceil}


def to_ptx(
    function: Callable[..., None],
    arguments: Sequence[np.dtype[Any] | tuple[np.dtype[Any], int]],
    cc: tuple[int, int],
) -> tuple[str, str]:
    """The code of a function for GPUs of capability `cc`, and the name that it has there.

    Of each argument the type of a number is told, or type and number of axes of an array.
    """
    compiler = numba_cuda()
    types = compiler.types
    kinds = [
        _number(kind) if isinstance(kind, np.dtype) else types.Array(_number(kind[0]), kind[1], "C")
        for kind in arguments
    ]
    with _as_on_a_cpu(cc):
        code, _ = compiler.compile(function, types.void(*kinds), device=False, abi="numba", cc=cc)
    code = code.replace(".const .align", ".global .align").replace("ld.const.", "ld.global.nc.")
    (name,) = re.findall(r"\.visible \.entry ([\w$]+)\(", code)
    if "fma.rn." in code:
        raise RuntimeError("the compiler fused a product and a sum, which rounds otherwise than a CPU")
    return code, name


def _number(dtype: np.dtype[Any]) -> Any:
    return importlib.import_module("numba.np.numpy_support").from_dtype(dtype)


@functools.cache
def numba_cuda() -> Any:
    """The module `numba.cuda`, which from now on knows the functions that are chosen by type."""
    require("numba", "numba_cuda", extra="cuda", for_="compiling for a GPU")
    # NumPy 2.5 has no `row_stack` any more, and numba-cuda 0.30 names it.
    with patch.object(np, "row_stack", np.vstack, create=True):
        compiler = importlib.import_module("numba.cuda")
        importlib.import_module("numba.cuda.descriptor").cuda_target.typing_context.refresh()
    for function, choose in jit.CHOOSERS:
        compiler.extending.overload(function, strict=False)(choose)
    return compiler


@functools.cache
def _on_gpu(value: Any) -> Any:
    """What a function of ours is for the compiler."""
    compiler = numba_cuda()
    if isinstance(value, Vector):
        written = importlib.import_module("rankloop.kernels.llvm").WRITTEN[value.twin.__name__]
        return compiler.extending.intrinsic(written._defn)
    return compiler.jit(device=True)(value.py_func if isinstance(value, jit.Kernel) else value)


@contextmanager
def _as_on_a_cpu(cc: tuple[int, int]) -> Iterator[None]:
    """While it lasts, numba-cuda finds our functions, fuses nothing, and asks no GPU what it is."""
    context = importlib.import_module("numba.cuda.descriptor").cuda_target.typing_context
    nvvm = importlib.import_module("numba.cuda.cudadrv.nvvm")
    dispatcher = importlib.import_module("numba.cuda.dispatcher")
    resolve, compile_ir = context.resolve_value_type, nvvm.compile_ir

    def ours(value: Any) -> Any:
        if isinstance(value, jit.Kernel | Vector) or (
            isinstance(value, FunctionType) and value in elementary.FUNCTIONS
        ):
            value = _on_gpu(value)
        elif isinstance(value, np.ufunc):
            value = _OF_MATH.get(value, value)
        return resolve(value)

    with (
        patch.object(context, "resolve_value_type", ours),
        patch.object(
            nvvm, "compile_ir", lambda code, **options: compile_ir(code, **options | {"fma": False})
        ),
        patch.object(dispatcher, "get_current_device", lambda: SimpleNamespace(compute_capability=cc)),
    ):
        yield
