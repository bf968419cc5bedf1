"""The file of a saved ranker: its state as named arrays, its class and arguments as JSON. Never pickle."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankloop.constructor import Constructed, import_path, plain

Arrays = Mapping[str, NDArray[Any]]
ORIGIN = "ranker.json"  # beside the arrays; a field of a NamedTuple cannot be called so


def origin(ranker: Constructed) -> NDArray[np.str_]:
    """Class and arguments of a ranker, as an array that `np.savez` takes.

    Parameters
    ----------
    ranker : Constructed
        A ranker.

    Returns
    -------
    numpy.ndarray
        One string of JSON. An argument that JSON cannot hold is named there without its value.
    """
    parameters, left_out = {}, {}
    for name, value in ranker.get_params().items():
        try:
            parameters[name] = plain(value)
        except TypeError:
            left_out[name] = type(value).__name__
    told = {"class": import_path(type(ranker)), "parameters": parameters, "left_out": left_out}
    return np.array(json.dumps(told))


def read_origin(saved: Arrays) -> dict[str, Any] | None:
    """Class and arguments from a saved ranker.

    Parameters
    ----------
    saved : mapping of str to numpy.ndarray
        What was saved.

    Returns
    -------
    dict or None
        `class`, `parameters` and `left_out`; None where an older version saved, which wrote only the state.

    Raises
    ------
    ValueError
        Where it cannot be read.
    """
    if ORIGIN not in saved:
        return None
    try:
        told = json.loads(str(saved[ORIGIN]))
        if isinstance(told["class"], str) and all(
            isinstance(told[part], dict) for part in ("parameters", "left_out")
        ):
            return dict(told)
    except (ValueError, TypeError, KeyError):
        pass
    raise ValueError(
        f"saved state {ORIGIN!r} must hold a class and its parameters, got {saved[ORIGIN]!s:.100}"
    )


def check_origin(saved: Arrays, ranker: Constructed) -> None:
    """Refuse the state of a ranker of another class or with other arguments.

    Parameters
    ----------
    saved : mapping of str to numpy.ndarray
        What was saved. Nothing is refused where an older version saved only the state.
    ranker : Constructed
        The ranker that is to take it over.

    Raises
    ------
    ValueError
        Naming the class, or the parameter and both values.
    """
    told = read_origin(saved)
    if told is None:
        return
    here = json.loads(str(origin(ranker)))
    mine, theirs = (path.rpartition(":")[2] for path in (here["class"], told["class"]))
    if mine != theirs:
        raise ValueError(f"saved state is of {theirs}, this ranker is {mine}")
    for name, value in told["parameters"].items():
        if name in here["left_out"]:
            continue
        if name not in here["parameters"]:
            raise ValueError(
                f"saved state is of {mine} with {name}={value!r}, which {mine} here does not have"
            )
        if here["parameters"][name] != value:
            raise ValueError(
                f"saved state is of {mine} with {name}={value!r}, this ranker has {name}={here['parameters'][name]!r}"
            )


def write(path: str | os.PathLike[str], arrays: Arrays) -> None:
    """Write arrays to a file in NumPy's npz format, whole or not at all.

    Parameters
    ----------
    path : str or os.PathLike
        The file, under exactly this name; one that is there is replaced.
    arrays : mapping of str to numpy.ndarray
        What to write.
    """
    path = Path(path)
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        Path(draft).chmod(0o666 & ~umask)  # as any new file; mkstemp makes it private
        Path(draft).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(draft).unlink()
        raise


def read(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """The arrays that `write` wrote.

    Parameters
    ----------
    path : str or os.PathLike
        The file.

    Returns
    -------
    dict of str to numpy.ndarray
        Every array by name.

    Raises
    ------
    ValueError
        Where it is no such file.
    """
    try:
        with np.load(path, allow_pickle=False) as saved:
            return {name: saved[name] for name in saved.files}
    except (ValueError, EOFError, zipfile.BadZipFile, TypeError) as error:
        # NumPy takes any other file for a pickle, and tells how to load it all the same.
        why = "it is no .npz file" if "allow_pickle" in str(error) else str(error)
        raise ValueError(f"{os.fspath(path)}: not a saved ranker: {why}") from error
