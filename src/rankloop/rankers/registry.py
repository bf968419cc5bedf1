"""Rankers by name: those of the package, `package.module:Class`, and those that other packages register.

`load` gives a saved ranker back from its file, whatever its class.

A package registers a ranker in its `pyproject.toml`, and `find("mine")` then finds it wherever a name is taken:

    [project.entry-points."rankloop.rankers"]
    mine = "mypackage.rankers:Mine"
"""

from __future__ import annotations

import importlib
import inspect
import os
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from rankloop import base, rankers
from rankloop.arguments import nearest
from rankloop.base import Ranker

GROUP = "rankloop.rankers"


def names() -> list[str]:
    """Every name that `find` knows: the package's own rankers, then those registered by other packages.

    Returns
    -------
    list of str
        Names without the form `package.module:Class`, which needs no registration.

    Examples
    --------
    >>> "FTRLPBM" in names()
    True
    """
    return [*_packaged(), *sorted(_registered())]


def find(name: str) -> type[Ranker]:
    """The ranker class that a name stands for.

    Parameters
    ----------
    name : str
        A ranker of the package, the name under which another package registers one in the entry-point group
        `rankloop.rankers`, or `package.module:Class`. A name of the package wins over a registered one.

    Raises
    ------
    ValueError
        Where the name is unknown, cannot be imported, or is not a ranker.

    Examples
    --------
    >>> find("FTRLPBM") is find("rankloop.rankers:FTRLPBM")
    True
    """
    if not isinstance(name, str):
        raise ValueError(f"ranker must be a name or 'package.module:Class', got {name!r}")
    if name in _packaged():
        return _packaged()[name]
    if ":" in name:
        return _ranker(name, _imported(name))
    registered = _registered()
    if name in registered:
        return _ranker(name, _imported(registered[name].value, registered_as=name))
    wanted = f"ranker must be one of {', '.join(names())}, or 'package.module:Class', got {name!r}"
    raise ValueError(wanted + nearest(name, names()))


def _packaged() -> dict[str, type[Ranker]]:
    found = {name: getattr(rankers, name) for name in rankers.__all__}
    return {name: kind for name, kind in found.items() if inspect.isclass(kind) and issubclass(kind, Ranker)}


def _registered() -> dict[str, EntryPoint]:
    own = _packaged()
    return {point.name: point for point in entry_points(group=GROUP) if point.name not in own}


def _imported(path: str, *, registered_as: str | None = None) -> Any:
    label = repr(path) if registered_as is None else f"{registered_as!r} (registered as {path!r})"
    module, _, attribute = path.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), *attribute.split("."))):
        raise ValueError(f"ranker must be given as 'package.module:Class', got {label}")
    try:
        found: Any = importlib.import_module(module)
    except Exception as error:  # whatever the other module raises; the cause stays attached
        raise ValueError(f"ranker {label} cannot be imported: {type(error).__name__}: {error}") from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise ValueError(f"ranker {label} cannot be found: {module!r} has no {attribute!r}")
        found = getattr(found, part)
    return found


def _ranker(name: str, found: Any) -> type[Ranker]:
    if not (inspect.isclass(found) and issubclass(found, Ranker)):
        raise ValueError(f"ranker {name!r} must be a subclass of rankloop.base.Ranker, got {found!r}")
    if inspect.isabstract(found):
        missing = ", ".join(sorted(found.__abstractmethods__))
        raise ValueError(f"ranker {name!r} is abstract: it does not define {missing}")
    return found


def load(path: str | os.PathLike[str]) -> Ranker:
    """The ranker that `ranker.save` wrote to `path`: same class, same arguments, same state.

    The file names the class, and its module is imported; what is not a subclass of `Ranker` is refused. The file
    itself holds arrays and JSON, nothing that could run.

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
    saved = base.read_state(path)
    origin = base.read_origin(saved)
    if origin is None:
        raise ValueError(
            f"{os.fspath(path)}: does not say which ranker it is; build one with the same arguments and call its load"
        )
    if origin["left_out"]:
        names = ", ".join(f"{name} ({kind})" for name, kind in origin["left_out"].items())
        raise ValueError(
            f"{os.fspath(path)}: arguments that a file cannot hold are missing: {names}; build the ranker with them "
            "and call its load"
        )
    try:
        ranker = _built(origin)
        ranker.load(saved)
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)}: {error}") from error
    return ranker


def _built(origin: dict[str, Any]) -> Ranker:
    kind = find(origin["class"])
    known = inspect.signature(kind).parameters
    # Defaults are left out, so that `repr` shows what was chosen.
    given = {
        name: value
        for name, value in origin["parameters"].items()
        if name not in known or known[name].default != value
    }
    try:
        return kind(**given)
    except TypeError as error:
        raise ValueError(f"{origin['class']} cannot be built: {error}") from error
