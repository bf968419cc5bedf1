"""The optional parts of the installation: what each extra brings, and the one sentence when it is not there."""

from __future__ import annotations

import importlib.util
import sys


class MissingExtra(ImportError):
    """Something optional is used that is not installed; the message is one sentence that says how to install it."""


def require(*modules: str, extra: str, for_: str) -> None:
    """Raise the sentence unless all `modules` can be imported.

    Call it where the optional part is first used, before the import itself, so that a plain installation can do
    everything that it has the libraries for.

    Parameters
    ----------
    *modules : str
        Top-level modules, such as ``"matplotlib"``.
    extra : str
        The extra or extras that bring them, as written in brackets: ``"plot"`` or ``"data,plot"``.
    for_ : str
        What needs them, as the subject of the sentence: ``"drawing a figure"``.

    Raises
    ------
    MissingExtra
        If one of them is not installed.

    Examples
    --------
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
