"""How every kernel is compiled: once, cached on disk, numpy's rules for division, without the interpreter lock."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import event
from numba.extending import register_jitable
from numpy.typing import NDArray

from rankloop.kernels import elementary

__all__ = ["apart", "counts_references", "hot", "inlined", "kernel", "loop"]

Function = TypeVar("Function", bound=Callable[..., object])
Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Ints = NDArray[np.int64]

PATIENCE = 2.0  # seconds of compiling before a word is said
# Nothing here is passed to C as a function pointer, so none is made: it would be compiled for each kernel.
_OPTIONS: dict[str, Any] = {"cache": True, "error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}
_WITHOUT_RUNTIME = _OPTIONS | {"_nrt": False}  # not in numba's documentation: see docs/decisions/0007
# For functions that are compiled with each caller, into it.
IN_CALLERS: Any = {"error_model": "numpy", "nogil": True, "_nrt": False, "forceinline": True}
_CONFIG: Any = numba.config
_FOLDER = Path(__file__).parent


def _fingerprint() -> str:
    digest = hashlib.sha256(numba.__version__.encode())
    for folder in ("environments", "kernels", "rankers"):  # kernels there call kernels of other files
        for source in sorted((_FOLDER.parent / folder).glob("*.py")):
            digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


# numba compares a cached kernel with its own file only, so a kernel would go on calling the old version of one that
# was edited in another file. Each state of these folders therefore has a cache of its own.
CACHE = Path(_CONFIG.CACHE_DIR or _FOLDER / "__pycache__") / f"kernels-{_fingerprint()}"


def _compile(function: Function, options: dict[str, Any]) -> Function:
    if _CONFIG.DISABLE_JIT:  # for a debugger: kernels are plain Python, and warn of nothing, as compiled ones
        return np.errstate(all="ignore")(function)
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
        The kernel, in the Python that numba compiles.
    """
    return _compile(function, _OPTIONS)


def hot(function: Function) -> Function:
    """Compile a kernel that runs every round: it may not allocate, and refuses to compile if it would.

    Without numba's runtime there are no references to count, and inside a caller there are no arrays to hand over:
    together that is two thirds of the time for ten items.

    Parameters as of `kernel`.
    """
    return _compile(function, _WITHOUT_RUNTIME | {"forceinline": True})


def apart(function: Function) -> Function:
    """Compile a part of a hot kernel that runs seldom or runs long: called, not built into every caller.

    It may not allocate either. A caller that is compiled without it is compiled in a fraction of the time.

    Parameters as of `kernel`.
    """
    return _compile(function, _WITHOUT_RUNTIME)


def inlined(function: Function) -> Function:
    """Compile `function` into each kernel that calls it, for parts of a hot kernel.

    Parameters as of `kernel`.
    """
    return _compile(function, _OPTIONS | {"inline": "always"})


def loop(function: Function) -> Function:
    """Compile a function that takes kernels as arguments; such code cannot be cached on disk.

    Parameters as of `kernel`.
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


class Notice(event.Listener):
    """One line on the terminal when compiling takes long, so that nobody waits for a silent program.

    Compiled code is kept on disk, so it is shown the first time only, and again after rankloop or numba has changed;
    and only where standard error is a terminal or RANKLOOP_PROGRESS is set, which switches it off if it is 0.
    """

    def __init__(self) -> None:
        self.depth = 0  # of functions that are compiled for another one
        self.begun = 0.0
        self.what = ""
        self.shown = False
        self.muted = 0
        self.lock = threading.Lock()

    def on_start(self, event: Any) -> None:
        with self.lock:
            if self.depth == 0:
                self.begun, self.what, self.shown = (
                    time.perf_counter(),
                    _name(event.data["dispatcher"]),
                    False,
                )
            self.depth += 1
            self._speak()

    def on_end(self, event: Any) -> None:
        with self.lock:
            self._speak()
            self.depth -= 1

    def _speak(self) -> None:
        # Parts are compiled one after another, each with a start and an end: no clock of its own is needed.
        if self.shown or self.muted or time.perf_counter() - self.begun < PATIENCE or not wanted():
            return
        self.shown = True
        line = f"rankloop: compiling {self.what}; the first time takes up to half a minute, then it is kept on disk"
        print(line, file=sys.stderr, flush=True)


def wanted() -> bool:
    """Whether anybody is there to read it."""
    asked = os.environ.get("RANKLOOP_PROGRESS", "")
    return sys.stderr.isatty() if asked == "" else asked != "0"


@contextmanager
def muted() -> Iterator[None]:
    """Say nothing meanwhile, for those who draw on the terminal themselves and say so there."""
    NOTICE.muted += 1
    try:
        yield
    finally:
        NOTICE.muted -= 1


def _name(dispatcher: Any) -> str:
    function = dispatcher.py_func
    rank, arrive = (function.__globals__.get(role) for role in ("rank", "arrive"))
    if function.__name__ == "play_rounds" and rank is not None and arrive is not None:
        return f"the loop of {_module(rank)} and {_module(arrive)}"
    return f"{function.__module__}.{function.__name__}"


def _module(kernel: Any) -> str:
    return str(kernel.py_func.__module__).rpartition(".")[2]


NOTICE = Notice()


def _forget_old_code() -> None:
    # Caches of earlier states of the sources, unless something was compiled into them within a week.
    for folder in CACHE.parent.glob("kernels-*"):
        with contextlib.suppress(OSError):  # another process may be doing the same
            if folder != CACHE and folder.stat().st_mtime < time.time() - 7 * 86_400:
                shutil.rmtree(folder, ignore_errors=True)


_forget_old_code()
_register: Any = event.register
_register("numba:compile", NOTICE)
for _function in elementary.FUNCTIONS:
    register_jitable(**IN_CALLERS)(_function)
