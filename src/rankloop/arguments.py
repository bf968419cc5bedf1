"""Reading arguments: a value of the right kind, or a ValueError that names the argument and the value."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SHAPES = {0: "one number", 1: "a list of numbers", 2: "a matrix of numbers"}


def whole(name: str, value: Any, *, at_least: int, at_most: int | None = None) -> int:
    """Read a whole number.

    Parameters
    ----------
    name : str
        The argument's name, for the error.
    value : int or float
        What was given; a float only where it is whole.
    at_least : int
        The smallest number allowed.
    at_most : int, optional
        The largest number allowed.

    Returns
    -------
    int
        `value`.

    Raises
    ------
    ValueError
        Where it is anything else.

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
        raise ValueError(f"{name} must be a whole number {bounds}, got {value!r}")
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
    """Read one finite number.

    Parameters
    ----------
    name : str
        The argument's name, for the error.
    value : float
        What was given.
    above : float, optional
        Bounds, the first and the third excluded.
    at_least : float, optional
        Bounds, the first and the third excluded.
    below : float, optional
        Bounds, the first and the third excluded.
    at_most : float, optional
        Bounds, the first and the third excluded.

    Returns
    -------
    float
        `value`.

    Raises
    ------
    ValueError
        Where it is anything else.

    Examples
    --------
    >>> number("radius", 10, above=0)
    10.0
    """
    given = _array(value)
    good = given.ndim == 0 and given.dtype.kind in "iuf" and math.isfinite(given)
    rules = (
        ("above", above, operator.gt),
        ("at least", at_least, operator.ge),
        ("below", below, operator.lt),
        ("at most", at_most, operator.le),
    )
    wanted = [(words, bound, holds) for words, bound, holds in rules if bound is not None]
    if not (good and all(holds(given, bound) for _, bound, holds in wanted)):
        bounds = " and ".join(f"{words} {bound:g}" for words, bound, _ in wanted)
        raise ValueError(f"{name} must be a finite number{f' {bounds}' if bounds else ''}, got {value!r}")
    return float(given)


def numbers(name: str, values: Any) -> NDArray[np.float64]:
    """Read numbers of any shape.

    Parameters
    ----------
    name : str
        The argument's name, for the error.
    values : array_like
        What was given.

    Returns
    -------
    numpy.ndarray
        `values` as float64; the array itself where it is one already.

    Raises
    ------
    ValueError
        Where something is not a number, or rows differ in length.

    Examples
    --------
    >>> numbers("weights", [1, 2])
    array([1., 2.])
    """
    array = _array(values)
    if array.dtype.kind not in "biuf":
        rows = " in rows of one length" if isinstance(values, list | tuple) and array.dtype == object else ""
        raise ValueError(f"{name} must be numbers{rows}, got {values!r}")
    return array.astype(np.float64, copy=False)


def share(name: str, value: Any) -> float:
    """Read one number above 0 and at most 1.

    Parameters
    ----------
    name : str
        The argument's name, for the error.
    value : float
        What was given.

    Returns
    -------
    float
        `value`.

    Raises
    ------
    ValueError
        Where it is anything else.

    Examples
    --------
    >>> share("gamma", 0.5)
    0.5
    """
    return number(name, value, above=0, at_most=1)


def shares(
    name: str, values: Any, *, n_axes: int = 1, length: int | None = None, positive: bool = False
) -> NDArray[np.float64]:
    """Read probabilities: numbers from 0 to 1.

    Parameters
    ----------
    name : str
        The argument's name, for the error.
    values : array_like
        What was given, not empty.
    n_axes : int, optional
        0 for one number, 1 for a list, 2 for a matrix.
    length : int, optional
        How many numbers a list must have.
    positive : bool, optional
        Whether 0 is refused.

    Returns
    -------
    numpy.ndarray
        A copy of `values` in C order, which the caller may keep.

    Raises
    ------
    ValueError
        Where they have another shape, or one does not lie between 0 and 1.

    Examples
    --------
    >>> shares("examination", [1, 0.5])
    array([1. , 0.5])
    """
    given = numbers(name, values)
    if given.ndim != n_axes or given.size == 0 or length not in (None, given.size):
        wanted = _SHAPES[n_axes] if length is None else f"{length} numbers"
        raise ValueError(f"{name} must be {wanted} from 0 to 1, got shape {given.shape}")
    # Written so that NaN, which compares false with everything, is refused too.
    good = ((given > 0.0) if positive else (given >= 0.0)) & (given <= 1.0)
    if not good.all():
        bounds = "be above 0 and at most 1" if positive else "lie between 0 and 1"
        raise ValueError(f"{name} must {bounds}, got {given[~good][0]:g}")
    return np.array(given, order="C")


def epsilon(name: str, value: Any) -> float:
    """Read a small positive number that something is divided by, so that the inverse is finite.

    Parameters
    ----------
    name : str
        The argument's name, for the error.
    value : float
        What was given.

    Returns
    -------
    float
        `value`.

    Raises
    ------
    ValueError
        Where it is not finite or not above 1e-300.

    Examples
    --------
    >>> epsilon("epsilon", 0.01)
    0.01
    """
    given = number(name, value, above=0)
    if given <= 1e-300:
        raise ValueError(f"{name} must be above 1e-300, or 1/{name} overflows, got {value!r}")
    return given


def one_of(name: str, value: str, known: Iterable[str]) -> str:
    """Read one of a few words.

    Parameters
    ----------
    name : str
        The argument's name, for the error.
    value : str
        What was given.
    known : iterable of str
        The words to choose from.

    Returns
    -------
    str
        `value`.

    Raises
    ------
    ValueError
        Where it is another; the message lists the known ones.

    Examples
    --------
    >>> one_of("order", "given", ("given", "shuffled"))
    'given'
    """
    words = tuple(known)
    if value not in words:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, words))}, got {value!r}")
    return value


def _array(values: Any) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError:  # rows of different lengths
        return np.asarray(None)
