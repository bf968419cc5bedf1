"""Gives back the memory that holds the compiler's library while nothing is compiled.

Loading the library goes through 35 MB of it, and loading kernels through 15 more; a service that has its kernels does
not look at them again. They are as they are in the file, so the process can do without them: where one is needed
after all, the system puts it back.
"""

from __future__ import annotations

import asyncio
import ctypes
import mmap
from collections.abc import Iterable
from pathlib import Path

LIBRARY = "libllvmlite.so"
_SECONDS = 5.0  # between two looks: kernels may have been loaded for a new ranker


class CompilerPages:
    """The parts of the library that nobody has written to; none where the system is not Linux."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, int]] = []
        if not hasattr(mmap, "MADV_DONTNEED"):
            return
        try:
            with Path("/proc/self/smaps").open() as told:
                self._parts = unchanged(told, LIBRARY)
            self._advise = ctypes.CDLL(None).madvise
        except (OSError, AttributeError):  # then they stay
            self._parts = []
            return
        self._advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)

    def release(self) -> None:
        """Do without them until they are needed again."""
        for first, end in self._parts:
            self._advise(first, end - first, mmap.MADV_DONTNEED)

    async def release_now_and_then(self) -> None:
        """Never ends."""
        while True:
            self.release()
            await asyncio.sleep(_SECONDS)


def unchanged(told: Iterable[str], library: str) -> list[tuple[int, int]]:
    """Where a library is in memory exactly as in its file and cannot be written to, from the lines of `smaps`.

    >>> told = ["1000-3000 r-xp 0 08:01 7 /lib/a.so", "Anonymous: 0 kB", "3000-4000 r--p 0 08:01 7 /lib/a.so",
    ...         "Anonymous: 4 kB", "4000-5000 rw-p 0 08:01 7 /lib/a.so", "Anonymous: 0 kB"]
    >>> unchanged(told, "a.so")
    [(4096, 12288)]
    """
    found = []
    part: tuple[int, int] | None = None
    for line in told:
        words = line.split(None, 5)
        if not words[0].endswith(":"):
            part = None
            if len(words) == 6 and Path(words[5].strip()).name == library and "w" not in words[1]:
                first, _, end = words[0].partition("-")
                part = int(first, 16), int(end, 16)
        elif part is not None and words[:2] == ["Anonymous:", "0"]:
            found.append(part)
    return found
