"""Objects that remember the arguments of their constructor: `repr`, `get_params` and `clone`, once for all."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from rankloop.notebook import card

_LONGEST = 100  # numbers of an array that are written out


class Constructed:
    """Remembers what it was constructed with; `Ranker` and `Environment` inherit it, and so does every subclass."""

    _given: dict[str, Any]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = _remembering(cls.__init__)  # type: ignore[method-assign]

    def get_params(self) -> dict[str, Any]:
        """The arguments of the constructor.

        Returns
        -------
        dict
            A value for each parameter of the constructor: the one that was given, or the default.

        Examples
        --------
        >>> from rankloop.rankers import Uniform
        >>> Uniform(n_items=4).get_params()
        {'n_items': 4, 'n_positions': None}
        """
        known = inspect.signature(type(self)).parameters
        given = vars(self).get("_given", {})
        params = {}
        for name, parameter in known.items():
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                params.update(given.get(name, {}))
            elif name in given:
                params[name] = given[name]
            elif parameter.default is not inspect.Parameter.empty:
                params[name] = parameter.default
        return params

    def clone(self) -> Self:
        """A fresh one with the same arguments, in its initial state.

        Returns
        -------
        Self
            Another object of the same class.

        Examples
        --------
        >>> from rankloop.rankers import Uniform
        >>> Uniform(n_items=4).clone()
        Uniform(n_items=4)
        """
        given = {name: _kept(value) for name, value in vars(self).get("_given", {}).items()}
        positional, named = [], {}
        for name, parameter in inspect.signature(type(self)).parameters.items():
            if name not in given:
                continue
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                positional.extend(given[name])
            elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
                named.update(given[name])
            elif parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
                positional.append(given[name])
            else:
                named[name] = given[name]
        return type(self)(*positional, **named)

    def __repr__(self) -> str:
        given = vars(self).get("_given", {})
        shown = ", ".join(f"{name}={_written(value)}" for name, value in given.items())
        return f"{type(self).__name__}({shown})"

    def _facts(self) -> dict[str, object]:
        given = vars(self).get("_given", {})
        return {name: _written(value) for name, value in given.items()}

    def _repr_html_(self) -> str:
        return card(type(self).__name__, self._facts())


def plain(value: Any) -> Any:
    """Write an argument as JSON can hold it.

    Parameters
    ----------
    value : Any
        An argument: None, a string, numbers, lists and arrays of them, or something with a method `as_argument`
        that returns one of these.

    Returns
    -------
    Any
        The same of None, bool, int, float, str, list and dict.

    Raises
    ------
    TypeError
        Where it is something else.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic | np.ndarray) and value.dtype.kind in "biufU":
        return value.tolist()
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return {name: plain(part) for name, part in value.items()}
    if hasattr(value, "as_argument"):
        return plain(value.as_argument())
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def import_path(kind: type) -> str:
    """Where a class is found: `package.module:Class`, by the shortest package that exports it.

    Parameters
    ----------
    kind : type
        A class.

    Returns
    -------
    str
        As `rankloop.rankers.registry.find` takes it.

    Examples
    --------
    >>> from rankloop.rankers.ftrl_pbm import FTRLPBM
    >>> import_path(FTRLPBM)
    'rankloop.rankers:FTRLPBM'
    """
    parts = kind.__module__.split(".")
    for n in range(1, len(parts)):
        package = ".".join(parts[:n])
        if vars(sys.modules.get(package, object)).get(kind.__qualname__) is kind:
            return f"{package}:{kind.__qualname__}"
    return f"{kind.__module__}:{kind.__qualname__}"


def _remembering(init: Callable[..., None]) -> Callable[..., None]:
    signature = inspect.signature(init)

    @functools.wraps(init)
    def remember(self: Any, *args: Any, **kwargs: Any) -> None:
        # A constructor that calls its parent's comes here first, and its own arguments are the ones that count.
        if "_given" not in vars(self):
            try:
                given = signature.bind(self, *args, **kwargs).arguments
            except TypeError:
                given = {}  # the call below says what is wrong with them
            self._given = {name: _kept(value) for name, value in list(given.items())[1:]}
        init(self, *args, **kwargs)

    return remember


def _kept(value: Any) -> Any:
    # A copy of what the caller might change later.
    if isinstance(value, np.ndarray):
        return value.copy() if value.flags.writeable else value
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return type(value)(_kept(part) for part in value)
    if type(value) is dict:
        return {name: _kept(part) for name, part in value.items()}
    return value


def _written(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        if value.size <= _LONGEST:
            return repr(value.tolist())
        return f"<{'x'.join(map(str, value.shape))} {value.dtype}>"
    if isinstance(value, np.generic):
        return repr(value.item())
    if type(value) in (list, tuple) and len(value) > _LONGEST:
        return f"<{type(value).__name__} of {len(value):,}>"
    if type(value) in (list, tuple) and any(isinstance(part, np.ndarray | np.generic) for part in value):
        inside = ", ".join(map(_written, value)) + ("," if type(value) is tuple and len(value) == 1 else "")
        return f"[{inside}]" if type(value) is list else f"({inside})"
    if hasattr(value, "as_argument"):
        return repr(value.as_argument())
    return " ".join(repr(value).split())
