"""How every kernel is compiled: once, cached on disk, numpy's rules for division, without the interpreter lock."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])

_OPTIONS: dict[str, Any] = {"cache": True, "error_model": "numpy", "nogil": True}
_WITHOUT_RUNTIME = _OPTIONS | {"_nrt": False}  # not in numba's documentation: see docs/decisions
_FOLDER = Path(__file__).parent
CACHE = _FOLDER / "__pycache__"


def kernel(function: Function) -> Function:
    """Compile `function` on first call and keep the machine code beside its source."""
    return cast(Function, numba.njit(**_OPTIONS)(function))


def hot(function: Function) -> Function:
    """Compile a kernel that runs every round: it may not allocate, and refuses to compile if it would.

    Without numba's runtime there are no references to count either, which for ten items is half of the time.
    """
    return cast(Function, numba.njit(**_WITHOUT_RUNTIME)(function))


def inlined(function: Function) -> Function:
    """Compile `function` into each kernel that calls it, for parts of a hot kernel."""
    return cast(Function, numba.njit(**_OPTIONS, inline="always")(function))


def loop(function: Function) -> Function:
    """Compile a function that takes kernels as arguments; such code cannot be cached on disk."""
    return cast(Function, numba.njit(**_OPTIONS | {"cache": False})(function))


def _fingerprint() -> str:
    digest = hashlib.sha256(numba.__version__.encode())
    for source in sorted(_FOLDER.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def _drop_stale_code() -> None:
    # numba compares a cached kernel with its own file only, so a kernel would go on calling the old
    # version of one that was edited in another file. A changed fingerprint of the folder drops them all.
    stamp = CACHE / "kernels.sha256"
    try:
        if stamp.exists() and stamp.read_text() == FINGERPRINT:
            return
        for compiled in [*CACHE.glob("*.nb?"), *CACHE.glob("loops/**/*.*")]:
            compiled.unlink(missing_ok=True)
        CACHE.mkdir(exist_ok=True)
        stamp.write_text(FINGERPRINT)
    except OSError:
        return  # a read-only installation: its files do not change either


FINGERPRINT = _fingerprint()
_drop_stale_code()
