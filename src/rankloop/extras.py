"""What an installation may lack, and the one sentence when it does; files written whole; what a notebook shows."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from html import escape
from pathlib import Path

_ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")
_SYSTEM = re.compile(r"\(os error (\d+)\)")
_TABLE = "border-collapse:collapse;margin:0.2em 0"
_NAME = "text-align:left;vertical-align:top;padding:0 1em 0 0;font-weight:normal;opacity:0.7"
_TEXT = "text-align:left;vertical-align:top;padding:0;overflow-wrap:anywhere"
_LONGEST = 300  # characters of one fact


class MissingExtra(ImportError):
    """Something optional is used that is not installed; the message is one sentence that says how to install it."""


def require(*modules: str, extra: str, for_: str) -> None:
    """Raise the sentence unless all `modules` can be imported.

    Call it where the optional part is first used, before the import itself, so that a plain installation can do
    everything that it has the libraries for. `extra` is written as in brackets, ``"plot"`` or ``"data,plot"``, and
    `for_` is the subject of the sentence.

    >>> require("json", extra="plot", for_="drawing a figure")
    >>> require("no_such_module", extra="plot", for_="drawing a figure")
    Traceback (most recent call last):
    ...
    rankloop.extras.MissingExtra: drawing a figure needs no_such_module: pip install "rankloop[plot]"
    """
    missing = [module for module in modules if not installed(module)]
    if missing:
        names = " and ".join([", ".join(missing[:-1]), missing[-1]] if len(missing) > 1 else missing)
        raise MissingExtra(f'{for_} needs {names}: pip install "rankloop[{extra}]"', name=missing[0])


def installed(module: str) -> bool:
    """Whether a top-level module can be imported, without importing it.

    >>> installed("json"), installed("no_such_module")
    (True, False)
    """
    if module in sys.modules:
        return sys.modules[module] is not None
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False


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
        of_system = _SYSTEM.search(str(error))
        if of_system is None:
            raise
        number = int(of_system[1])
        raise OSError(number, os.strerror(number), str(path)) from error
    finally:
        part.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text entirely or not at all."""
    write_whole(path, lambda part: part.write_text(text, encoding="utf-8"))


def sweep(folder: Path) -> None:
    """Remove what a killed process left half-written in `folder`."""
    for left_over in folder.glob(".*.part"):
        with suppress(OSError):
            left_over.unlink()


def local_folder(place: str | os.PathLike[str]) -> Path:
    """A folder of this machine, which need not exist yet; ValueError for an address of a store.

    >>> local_folder("s3://bucket/results")
    Traceback (most recent call last):
    ...
    ValueError: folder must be on this machine, got the address 's3://bucket/results': mount it, or copy it there
    """
    if isinstance(place, str) and _ADDRESS.match(place):
        raise ValueError(
            f"folder must be on this machine, got the address {place!r}: mount it, or copy it there"
        )
    return Path(place)


def card(title: str, facts: Mapping[str, object]) -> str:
    """A title and named facts as a small HTML table that stands alone; everything is escaped.

    >>> "&lt;3 items&gt;" in card("Ranker", {"n_items": "<3 items>"})
    True
    """
    rows = "".join(
        f'<tr><th style="{_NAME}">{escape(name)}</th><td style="{_TEXT}">{escape(_short(str(value)))}</td></tr>'
        for name, value in facts.items()
    )
    table = f'<table style="{_TABLE}"><tbody>{rows}</tbody></table>' if rows else ""
    return f"<div><b>{escape(title)}</b>{table}</div>"


def counted(number: int, one: str, many: str = "") -> str:
    """A number of things, in words.

    >>> counted(1, "seed"), counted(2_000, "round"), counted(0, "query", "queries")
    ('1 seed', '2,000 rounds', '0 queries')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
