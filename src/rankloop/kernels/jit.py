"""How a kernel runs: from the library that a wheel brings, compiled by numba when it is called, or as plain Python.

`RANKLOOP_KERNELS` chooses: `library`, `numba`, `python`, or the processor whose library is wanted, such as `x86-64-v2`.
Without it the library is taken where there is one, else numba, else Python. What the library does not have, such as a
kernel of a user's own, is compiled by numba. With `NUMBA_DISABLE_JIT=1` everything is plain Python, for a debugger.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from rankloop.extras import installed
from rankloop.kernels.library import UNKNOWN, Library, Prepared, Variant, kind_of, opened

__all__ = ["apart", "hot", "kernel", "loop"]

Function = TypeVar("Function", bound=Callable[..., object])
Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Ints = NDArray[np.int64]

# numba's options. Nothing here is passed to C as a function pointer, so no code for that is made.
_OPTIONS: dict[str, Any] = {"cache": True, "error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}
_WITHOUT_RUNTIME = _OPTIONS | {"_nrt": False}  # not in numba's documentation: see docs/decisions/0007
# For functions that are compiled with each caller, into it.
IN_CALLERS: Any = {"error_model": "numpy", "nogil": True, "_nrt": False, "forceinline": True}
# Functions that have another form for other types of arrays, and what chooses the form.
CHOOSERS: list[tuple[Callable[..., Any], Callable[..., Any]]] = []


def say(line: str) -> None:
    """One line for whoever starts the program, once."""
    if line not in _SAID:
        _SAID.add(line)
        print(f"rankloop: {line}", file=sys.stderr, flush=True)


_SAID: set[str] = set()


def _how() -> tuple[str, Library | None]:
    asked = os.environ.get("RANKLOOP_KERNELS", "")
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        asked = "python"
    if asked in ("python", "numba"):
        return asked, None
    library = opened(asked, say)
    if library is None and asked:
        raise ImportError(
            f"RANKLOOP_KERNELS={asked!r}: there is no such library of compiled kernels here; "
            "use numba, python, or leave the variable unset"
        )
    return ("numba" if library is None else "library"), library


MODE, LIBRARY = _how()
# A file, for tests: the calls that this package makes and the library does not have are written there.
_MISSED = "" if MODE == "python" else os.environ.get("RANKLOOP_MISSED_KERNELS", "")


@functools.cache
def compiler() -> Any:
    """The module that has numba compile, or None, with a line, where numba is not installed."""
    if MODE == "python":
        return None
    if not installed("numba"):
        say(
            "kernels that are not compiled run as plain Python, slowly; "
            'pip install "rankloop[jit]" brings a compiler'
        )
        return None
    return importlib.import_module("rankloop.kernels.numba_compiler")


def find(kernel: Any, kind: str) -> Variant | None:
    """What the library has for a call of `kernel` with arguments of this kind, if that is one of ours."""
    if not isinstance(kernel, Kernel) or (LIBRARY is None and not _MISSED):
        return None
    variant = None if LIBRARY is None else LIBRARY.find(kernel.name, kind)
    if variant is None and _MISSED and UNKNOWN not in kind and _is_ours(sys._getframe(1)):
        with Path(_MISSED).open("a") as file:
            file.write(f"{kernel.name} {kind}\n")
    return variant


def _is_ours(frame: Any) -> bool:
    while frame.f_globals["__name__"] == __name__:
        frame = frame.f_back
    return str(frame.f_globals["__name__"]).startswith("rankloop.")


class Kernel:
    """A function of arrays and numbers that runs compiled."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self.targetoptions = options  # numba asks for it by this name
        self.plain = np.errstate(all="ignore")(function)  # a compiled kernel warns of nothing
        self.name = f"{function.__module__}.{function.__qualname__}"
        self._calls: dict[str, Callable[..., Any]] = {}

    def __call__(self, *arguments: Any) -> Any:
        if LIBRARY is None and not _MISSED:
            return self.compiled(*arguments)
        kind = kind_of(arguments)
        call = self._calls.get(kind)
        if call is None:
            variant = find(self, kind)
            call = self._calls[kind] = self.compiled if variant is None else variant.call
        return call(*arguments)

    def __reduce__(self) -> Any:
        module = sys.modules.get(self.py_func.__module__)
        if getattr(module, self.py_func.__qualname__, None) is self:
            return self.py_func.__qualname__
        return Kernel, (self.py_func, self.targetoptions)

    @functools.cached_property
    def compiled(self) -> Callable[..., Any]:
        """The function as numba compiles it at the first call; as plain Python without numba."""
        numba_compiler = compiler()
        return self.plain if numba_compiler is None else numba_compiler.dispatcher(self)


class Ready:
    """A kernel with its arguments, to be called many times; those that are `Unset` are put in place before a call."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._function = function
        self._arguments = list(arguments)

    def put(self, number: int, argument: Any) -> None:
        """Another argument of the same kind in place `number`."""
        self._arguments[number] = argument

    def run(self) -> Any:
        """Call the kernel."""
        return self._function(*self._arguments)


def ready(function: Any, arguments: tuple[Any, ...]) -> Ready | Prepared:
    """A kernel with its arguments: of the library where it is in there, any other function as well."""
    variant = find(function, kind_of(arguments))
    return (
        Ready(getattr(function, "compiled", function), arguments)
        if variant is None
        else variant.prepared(arguments)
    )


def _kernel(function: Function, options: dict[str, Any]) -> Function:
    return cast(Function, Kernel(function, options))


def kernel(function: Function) -> Function:
    """Compile `function`, and keep the machine code on disk.

    Parameters
    ----------
    function : callable
        The kernel, in the Python that numba compiles.
    """
    return _kernel(function, _OPTIONS)


def hot(function: Function) -> Function:
    """Compile a kernel that runs every round: it may not allocate, and refuses to compile if it would.

    Without numba's runtime there are no references to count, and inside a caller there are no arrays to hand over:
    together that is two thirds of the time for ten items.

    Parameters as of `kernel`.
    """
    return _kernel(function, _WITHOUT_RUNTIME | {"forceinline": True})


def apart(function: Function) -> Function:
    """Compile a part of a hot kernel that runs seldom or runs long: called, not built into every caller.

    It may not allocate either. A caller that is compiled without it is compiled in a fraction of the time.

    Parameters as of `kernel`.
    """
    return _kernel(function, _WITHOUT_RUNTIME)


def loop(function: Function) -> Function:
    """Compile a function that takes kernels as arguments; such code cannot be kept on disk.

    Parameters as of `kernel`.
    """
    return _kernel(function, _OPTIONS | {"cache": False})


def chosen_by_type(function: Function, choose: Callable[..., Any]) -> Function:
    """Let `choose` say, when a kernel that calls `function` is compiled, which function that is for its types."""
    CHOOSERS.append((function, choose))
    return function


def __getattr__(name: str) -> Any:
    if name == "inlined":
        warnings.warn("rankloop.kernels.jit.inlined is hot: use that", DeprecationWarning, stacklevel=2)
        return hot
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
