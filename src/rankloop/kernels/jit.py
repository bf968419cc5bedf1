"""How every kernel is compiled: once, cached on disk, numpy's rules for division, without the interpreter lock."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.extending import register_jitable

from rankloop.kernels import elementary, notice

Function = TypeVar("Function", bound=Callable[..., object])

# Nothing here is passed to C as a function pointer, so none is made: it would be compiled for each kernel.
_OPTIONS: dict[str, Any] = {"cache": True, "error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}
_WITHOUT_RUNTIME = _OPTIONS | {"_nrt": False}  # not in numba's documentation: see docs/decisions/0007
# For functions that are compiled with each caller, into it.
IN_CALLERS: Any = {"error_model": "numpy", "nogil": True, "_nrt": False, "forceinline": True}
_CONFIG: Any = numba.config
notice.listen()
_FOLDER = Path(__file__).parent


def _fingerprint() -> str:
    digest = hashlib.sha256(numba.__version__.encode())
    for source in sorted(_FOLDER.rglob("*.py")):
        if "__pycache__" not in source.parts:  # the loops are written there, made of what is hashed here
            digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


# numba compares a cached kernel with its own file only, so a kernel would go on calling the old version of one that
# was edited in another file. Each state of this folder therefore has a cache of its own.
CACHE = Path(_CONFIG.CACHE_DIR or _FOLDER / "__pycache__") / f"kernels-{_fingerprint()}"


def _compile(function: Function, options: dict[str, Any]) -> Function:
    elsewhere = _CONFIG.CACHE_DIR
    try:
        CACHE.mkdir(parents=True, exist_ok=True)
        _CONFIG.CACHE_DIR = str(CACHE)
    except OSError:
        pass  # a read-only installation: numba then finds a folder of the user's
    try:
        return cast(Function, numba.njit(**options)(function))
    finally:
        _CONFIG.CACHE_DIR = elsewhere


def kernel(function: Function) -> Function:
    """Compile `function` on first call and keep the machine code on disk.

    Parameters
    ----------
    function : callable
        The function to compile.

    Returns
    -------
    callable
        The compiled function.
    """
    return _compile(function, _OPTIONS)


def hot(function: Function) -> Function:
    """Compile a kernel that runs every round: it may not allocate, and refuses to compile if it would.

    Without numba's runtime there are no references to count, and inside a caller there are no arrays to hand over:
    together that is two thirds of the time for ten items.

    Parameters
    ----------
    function : callable
        The function to compile.

    Returns
    -------
    callable
        The compiled function.
    """
    return _compile(function, _WITHOUT_RUNTIME | {"forceinline": True})


def apart(function: Function) -> Function:
    """Compile a part of a hot kernel that runs seldom or runs long: called, not built into every caller.

    It may not allocate either. A caller that is compiled without it is compiled in a fraction of the time.

    Parameters
    ----------
    function : callable
        The kernel, in the Python that numba compiles.

    Returns
    -------
    callable
        The compiled kernel.
    """
    return _compile(function, _WITHOUT_RUNTIME)


def inlined(function: Function) -> Function:
    """Compile `function` into each kernel that calls it, for parts of a hot kernel.

    Parameters
    ----------
    function : callable
        The function to compile.

    Returns
    -------
    callable
        The compiled function.
    """
    return _compile(function, _OPTIONS | {"inline": "always"})


def loop(function: Function) -> Function:
    """Compile a function that takes kernels as arguments; such code cannot be cached on disk.

    Parameters
    ----------
    function : callable
        The function to compile.

    Returns
    -------
    callable
        The compiled function.
    """
    return _compile(function, _OPTIONS | {"cache": False})


def counts_references(compiled: Any) -> bool:
    """Whether a kernel counts who holds the arrays that it returns, so that its callers must do so, too.

    Parameters
    ----------
    compiled : callable
        What one of the decorators here returned.

    Returns
    -------
    bool
        Whether it does; one that is `inlined` is part of its caller, and does what that does.
    """
    options = compiled.targetoptions
    return bool(options.get("_nrt", True)) and options.get("inline") != "always"


def _forget_old_code() -> None:
    # Caches of earlier states of the folder, unless something was compiled into them within a week.
    for folder in CACHE.parent.glob("kernels-*"):
        with contextlib.suppress(OSError):  # another process may be doing the same
            if folder != CACHE and folder.stat().st_mtime < time.time() - 7 * 86_400:
                shutil.rmtree(folder, ignore_errors=True)


_forget_old_code()

for _function in elementary.FUNCTIONS:
    register_jitable(**IN_CALLERS)(_function)
