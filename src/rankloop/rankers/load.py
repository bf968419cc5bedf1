"""A saved ranker back from its file, whatever its class."""

from __future__ import annotations

import inspect
import os
from typing import Any

from rankloop import state_file
from rankloop.base import Ranker
from rankloop.rankers import registry


def load(path: str | os.PathLike[str]) -> Ranker:
    """The ranker that `ranker.save(path)` wrote: same class, same arguments, same state.

    The file names the class, and its module is imported; what is not a subclass of `Ranker` is refused. The file
    itself holds arrays and JSON, nothing that could run.

    Parameters
    ----------
    path : str or os.PathLike
        The file.

    Returns
    -------
    Ranker
        One that goes on where the saved one stood.

    Raises
    ------
    ValueError
        Where the file is no saved ranker, or does not say of which class.
    FileNotFoundError
        Where there is no such file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankloop import rankers
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rankers.RTop1F(n_items=5, horizon=100).save(Path(folder) / "ranker.npz")
    ...     load(Path(folder) / "ranker.npz")
    RTop1F(n_items=5, horizon=100)
    """
    saved = state_file.read(path)
    told = state_file.read_origin(saved)
    if told is None:
        raise ValueError(
            f"{os.fspath(path)}: does not say which ranker it is; build one with the same arguments and call its load"
        )
    if told["left_out"]:
        names = ", ".join(f"{name} ({kind})" for name, kind in told["left_out"].items())
        raise ValueError(
            f"{os.fspath(path)}: arguments that a file cannot hold are missing: {names}; build the ranker with them "
            "and call its load"
        )
    try:
        ranker = _built(told)
        ranker.load(saved)
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)}: {error}") from error
    return ranker


def _built(told: dict[str, Any]) -> Ranker:
    kind = registry.find(told["class"])
    known = inspect.signature(kind).parameters
    # Defaults are left out, so that `repr` shows what was chosen.
    given = {
        name: value
        for name, value in told["parameters"].items()
        if name not in known or known[name].default != value
    }
    try:
        return kind(**given)
    except TypeError as error:
        raise ValueError(f"{told['class']} cannot be built: {error}") from error
