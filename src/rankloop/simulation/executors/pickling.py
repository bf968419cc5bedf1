"""Jobs and results as bytes. Kernels travel by name, so that whoever receives them uses its own compiled ones."""

from __future__ import annotations

import importlib
import io
import pickle
import sys
from typing import Any

from numba import cloudpickle
from numba.core.dispatcher import Dispatcher


class NotSendable(ValueError):
    """Something of a job cannot be sent to another process."""


def dumps(value: Any, *, what: str = "this") -> bytes:
    """Write `value` as bytes.

    Functions and classes of a notebook or a script are written by value, so nobody needs to import them.

    Parameters
    ----------
    value : Any
        What to send.
    what : str, optional
        What it is, for the error.

    Returns
    -------
    bytes
        What `loads` reads.

    Raises
    ------
    NotSendable
        Where something in it cannot be sent, such as an open file.
    """
    file = io.BytesIO()
    try:
        _PICKLER(file, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
    except RecursionError as error:
        raise NotSendable(f"{what} cannot be sent to another process: it is nested too deeply") from error
    except Exception as error:  # whatever a __reduce__ of somebody raises
        raise NotSendable(
            f"{what} cannot be sent to another process: {type(error).__name__}: {error}; "
            'executor="threads" sends nothing'
        ) from error
    return file.getvalue()


def loads(data: bytes) -> Any:
    """The value that `dumps` wrote.

    Parameters
    ----------
    data : bytes
        What it wrote.

    Returns
    -------
    Any
        A copy of the value.
    """
    return pickle.loads(data)


class _Pickler(cloudpickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, Dispatcher):
            function: Any = value.py_func
            module = sys.modules.get(function.__module__)
            if function.__module__ != "__main__" and getattr(module, function.__name__, None) is value:
                return _kernel, (function.__module__, function.__name__)
        parent: Any = super()
        return parent.reducer_override(value)


_PICKLER: Any = _Pickler  # numba brings it along without annotations


def _kernel(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)
