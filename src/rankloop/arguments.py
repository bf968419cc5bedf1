"""Reading arguments: a value of the right kind, or an error that names the argument and the value.

Every function takes the argument's name, for the error, and then what was given, which it returns as the right type.
"""

from __future__ import annotations

import difflib
import math
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SHAPES = {0: "one number", 1: "a list of numbers", 2: "a matrix of numbers"}


class ArgumentError(ValueError):
    """An argument is wrong.

    Parameters
    ----------
    argument : str
        Its name, for whoever calls it something else, such as a command line.
    words : str
        What is wrong: a sentence that begins with the name, and the message of the error.

    Examples
    --------
    >>> error = ArgumentError("top", "top must be a whole number, got 'x'")
    >>> error.argument, str(error)
    ('top', "top must be a whole number, got 'x'")
    """

    def __init__(self, argument: str, words: str) -> None:
        super().__init__(argument, words)  # both, so that it can be pickled
        self.argument = argument

    def __str__(self) -> str:
        return str(self.args[1])


def whole(name: str, value: Any, *, at_least: int, at_most: int | None = None) -> int:
    """Read the argument `name`: a `value` that is a whole number from `at_least` to `at_most`, perhaps as a float.

    Examples
    --------
    >>> whole("n_items", 1e3, at_least=1)
    1000
    """
    try:
        number = int(value) if isinstance(value, float | np.floating) else operator.index(value)
        exact = bool(number == value) and not isinstance(value, bool)
    except (TypeError, ValueError, OverflowError):
        exact = False
    if not exact or number < at_least or (at_most is not None and number > at_most):
        bounds = f"of at least {at_least}" if at_most is None else f"from {at_least} to {at_most}"
        raise ArgumentError(name, f"{name} must be a whole number {bounds}, got {value!r}")
    return number


def number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
) -> float:
    """Read the argument `name`: a finite `value`, and its bounds `above`, `at_least`, `below` and `at_most`.

    Examples
    --------
    >>> number("radius", 10, above=0)
    10.0
    """
    array = _array(value)
    good = array.ndim == 0 and array.dtype.kind in "iuf" and math.isfinite(array)
    rules = (
        ("above", above, operator.gt),
        ("at least", at_least, operator.ge),
        ("below", below, operator.lt),
        ("at most", at_most, operator.le),
    )
    wanted = [(words, bound, holds) for words, bound, holds in rules if bound is not None]
    if not (good and all(holds(array, bound) for _, bound, holds in wanted)):
        bounds = " and ".join(f"{words} {bound:g}" for words, bound, _ in wanted)
        raise ArgumentError(
            name, f"{name} must be a finite number{f' {bounds}' if bounds else ''}, got {value!r}"
        )
    return float(array)


def numbers(name: str, values: Any) -> NDArray[np.float64]:
    """Read the argument `name`: `values` of any shape, as float64; the array itself where it is one already.

    Examples
    --------
    >>> numbers("weights", [1, 2])
    array([1., 2.])
    """
    array = _array(values)
    if array.dtype.kind not in "biuf":
        rows = " in rows of one length" if isinstance(values, list | tuple) and array.dtype == object else ""
        raise ArgumentError(name, f"{name} must be numbers{rows}, got {values!r}")
    return array.astype(np.float64, copy=False)


def share(name: str, value: Any) -> float:
    """Read the argument `name`: a `value` above 0 and at most 1.

    Examples
    --------
    >>> share("gamma", 0.5)
    0.5
    """
    return number(name, value, above=0, at_most=1)


def shares(
    name: str, values: Any, *, n_axes: int = 1, length: int | None = None, positive: bool = False
) -> NDArray[np.float64]:
    """Read probabilities: numbers from 0 to 1, as a copy in C order that the caller may keep.

    Parameters
    ----------
    name : str
        The argument's name.
    values : array_like
        The probabilities, at least one.
    n_axes : int, optional
        0 for one number, 1 for a list, 2 for a matrix.
    length : int, optional
        How many numbers a list must have.
    positive : bool, optional
        Whether 0 is refused.

    Examples
    --------
    >>> shares("examination", [1, 0.5])
    array([1. , 0.5])
    """
    array = numbers(name, values)
    if array.ndim != n_axes or array.size == 0 or length not in (None, array.size):
        wanted = _SHAPES[n_axes] if length is None else f"{length} numbers"
        raise ArgumentError(name, f"{name} must be {wanted} from 0 to 1, got shape {array.shape}")
    # Written so that NaN, which compares false with everything, is refused too.
    good = ((array > 0.0) if positive else (array >= 0.0)) & (array <= 1.0)
    if not good.all():
        bounds = "be above 0 and at most 1" if positive else "lie between 0 and 1"
        raise ArgumentError(name, f"{name} must {bounds}, got {array[~good][0]:g}")
    return np.array(array, order="C")


def epsilon(name: str, value: Any) -> float:
    """Read the argument `name`: a small `value`, above 1e-300, that something is divided by.

    Examples
    --------
    >>> epsilon("epsilon", 0.01)
    0.01
    """
    small = number(name, value, above=0)
    if small <= 1e-300:
        raise ArgumentError(name, f"{name} must be above 1e-300, or 1/{name} overflows, got {value!r}")
    return small


def one_of(name: str, value: str, known: Iterable[str]) -> str:
    """Read the argument `name`: a `value` that is one of the `known` words; the error lists them.

    Examples
    --------
    >>> one_of("order", "given", ("given", "shuffled"))
    'given'
    """
    words = tuple(known)
    if value not in words:
        wanted = f"{name} must be one of {', '.join(map(repr, words))}, got {value!r}"
        raise ArgumentError(name, wanted + nearest(value, words))
    return value


def nearest(value: Any, known: Iterable[str]) -> str:
    """The end of an error about `value`: which of the `known` words may be meant, or nothing.

    Examples
    --------
    >>> nearest("topftrl", ["TopFTRL", "RTop1F"]), nearest("x", ["TopFTRL"])
    ("; did you mean 'TopFTRL'?", '')
    """
    words = {word.lower(): word for word in known}
    found = difflib.get_close_matches(str(value).lower(), words, n=1, cutoff=0.7)
    return f"; did you mean {words[found[0]]!r}?" if found else ""


def _array(values: Any) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError:  # rows of different lengths
        return np.asarray(None)
