"""Kernels from numba's cache without the compiler: what is only needed to compile is loaded when something must be.

Before numba loads machine code from its cache it makes ready everything that it could compile: that takes half a second
and fifty megabytes. Kernels that do without numba's runtime need none of it.
"""

from __future__ import annotations

from typing import Any


class LightCache:
    """The cache of one kernel, which loads machine code and nothing else.

    Parameters
    ----------
    cache : object
        numba's own.
    """

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, signature: Any, target: Any) -> Any:
        """The kernel compiled for these types; None where it is not in the cache, and numba compiles it.

        Parameters
        ----------
        signature : tuple
            The types.
        target : object
            What numba compiles for.

        Returns
        -------
        object or None
            What numba's own cache would return.
        """
        with self._cache._guard_against_spurious_io_errors():
            return self._cache._load_overload(signature, target)


def lighten(kernel: Any) -> None:
    """Let a kernel be loaded without the compiler, where that is possible.

    Parameters
    ----------
    kernel : callable
        A compiled function, or one in Python, which stays as it is.
    """
    cache = getattr(kernel, "_cache", None)
    if isinstance(cache, LightCache):
        return
    # Of another version of numba nothing is taken for granted: it then loads as it always does.
    if hasattr(cache, "_load_overload") and getattr(kernel, "targetoptions", {}).get("_nrt") is False:
        kernel._cache = LightCache(cache)
