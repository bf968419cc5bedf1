"""A file that is written entirely or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_COPIED: dict[Path, Callable[[Path], None]] = {}


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then put it in place in one step.

    A reader of `path` sees the old file or the new one, and never a part of it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # The process id keeps two runs over the same folder from writing into one temporary file.
    part = path.parent / f".{path.name}.{os.getpid()}.part"
    try:
        write(part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    for folder, send in list(_COPIED.items()):
        if path.is_relative_to(folder):
            send(path)


@contextmanager
def copying(folder: Path, send: Callable[[Path], None]) -> Iterator[None]:
    """Call `send` with every file that `write_whole` puts anywhere into `folder` meanwhile."""
    _COPIED[folder] = send
    try:
        yield
    finally:
        del _COPIED[folder]


def sweep(folder: Path) -> None:
    """Remove what a killed process left half-written in `folder`."""
    for left_over in folder.glob(".*.part"):
        with suppress(OSError):
            left_over.unlink()
