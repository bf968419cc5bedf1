"""A file that is written entirely or not at all."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_COPIED: dict[Path, Callable[[Path], None]] = {}
_SYSTEM = re.compile(r"\(os error (\d+)\)")


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then put it in place in one step.

    A reader of `path` sees the old file or the new one, and never a part of it. What the system refuses, as on a full
    disk, is an OSError that names `path`, also where a library tells it in an error of its own.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # The process id keeps two runs over the same folder from writing into one temporary file.
    part = path.parent / f".{path.name}.{os.getpid()}.part"
    try:
        write(part)
        part.replace(path)
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = str(path)
        raise
    except Exception as error:
        told = _SYSTEM.search(str(error))
        if told is None:
            raise
        number = int(told[1])
        raise OSError(number, os.strerror(number), str(path)) from error
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
