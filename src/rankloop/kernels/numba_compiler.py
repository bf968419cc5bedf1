"""numba: compiles the kernels that no library has, keeps them on disk, and lets kernels of others call ours.

Imported where something is to be compiled, and by numba itself, as its extension, where both are loaded.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import numba
from numba.extending import overload, register_jitable, typeof_impl

from rankloop.kernels import elementary, jit, llvm, rows
from rankloop.kernels.library import fingerprint
from rankloop.kernels.vectors import Vector

_CONFIG: Any = numba.config
_EXTENDING: Any = typeof_impl
_NUMBA: Any = numba
# numba compares a cached kernel with its own file only, so a kernel would go on calling the old version of one that
# was edited in another file. Each state of the sources therefore has a cache of its own.
_VERSION = hashlib.sha256(f"{numba.__version__} {fingerprint()}".encode()).hexdigest()[:16]
CACHE = Path(_CONFIG.CACHE_DIR or Path(__file__).parent / "__pycache__") / f"kernels-{_VERSION}"


def dispatcher(kernel: jit.Kernel) -> Any:
    """The `kernel` as numba knows it: it is compiled when it is called, or found on disk."""
    if sys.stderr.isatty():
        jit.say("compiling what is called; the first time takes up to half a minute, then it is kept on disk")
    elsewhere = _CONFIG.CACHE_DIR
    try:
        CACHE.mkdir(parents=True, exist_ok=True)
        _CONFIG.CACHE_DIR = str(CACHE)
    except OSError:
        pass  # a read-only installation: numba then finds a folder of the user's
    try:
        return numba.njit(**kernel.targetoptions)(kernel.py_func)
    finally:
        _CONFIG.CACHE_DIR = elsewhere


def _forget_old_code() -> None:
    # Caches of earlier states of the sources, unless something was compiled into them within a week.
    for folder in CACHE.parent.glob("kernels-*"):
        with contextlib.suppress(OSError):  # another process may be doing the same
            if folder != CACHE and folder.stat().st_mtime < time.time() - 7 * 86_400:
                shutil.rmtree(folder, ignore_errors=True)


def _type_of_kernel(kernel: jit.Kernel, _: Any) -> Any:
    return _NUMBA.typeof(kernel.compiled)


def _type_of_vector(vector: Vector, _: Any) -> Any:
    return _NUMBA.core.registry.cpu_target.typing_context.resolve_value_type(
        llvm.WRITTEN[vector.twin.__name__]
    )


_EXTENDING.register(jit.Kernel)(_type_of_kernel)
_EXTENDING.register(Vector)(_type_of_vector)


for _function in elementary.FUNCTIONS:
    register_jitable(**jit.IN_CALLERS)(_function)
_WITH_CHOOSERS = rows
for _function, _choose in jit.CHOOSERS:
    overload(_function, jit_options=jit.IN_CALLERS, strict=False)(_choose)  # strict compares annotations, too
_forget_old_code()


def extension() -> None:
    """What numba calls before it compiles for the first time; to import this module is all."""
