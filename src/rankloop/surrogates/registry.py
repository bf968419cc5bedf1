"""Surrogates by name, and whether the feedback is enough for one."""

from __future__ import annotations

import dataclasses

from rankloop.arguments import whole
from rankloop.surrogates.calibrated_squared import CalibratedSquared
from rankloop.surrogates.centred_squared import CentredSquared
from rankloop.surrogates.kl import KL
from rankloop.surrogates.listnet import ListNet
from rankloop.surrogates.ranksvm import RankSVM
from rankloop.surrogates.smooth_dcg import SmoothDCG
from rankloop.surrogates.squared import Squared
from rankloop.surrogates.surrogate import Surrogate

_SURROGATES: dict[str, type[Surrogate]] = {
    kind.name: kind for kind in (Squared, CentredSquared, RankSVM, KL, SmoothDCG, ListNet, CalibratedSquared)
}


def names() -> list[str]:
    """Every surrogate.

    Returns
    -------
    list of str
        The names, sorted.
    """
    return list(_SURROGATES)


def get(name: str | Surrogate, **parameters: float) -> Surrogate:
    """The surrogate called `name`; a surrogate is returned as it is.

    Parameters
    ----------
    name : str or Surrogate
        A name such as "squared", or a surrogate.
    **parameters : float
        Parameters of the surrogate, such as `epsilon` of "smooth_dcg".

    Returns
    -------
    Surrogate
        The surrogate.

    Examples
    --------
    >>> get("squared")
    Squared()
    >>> get("smooth_dcg", epsilon=0.1)
    SmoothDCG(epsilon=0.1)
    """
    if isinstance(name, Surrogate):
        if parameters:
            raise ValueError(f"{name!r} is already made; it takes no further parameters, got {parameters}")
        return name
    kind = _SURROGATES.get(name)
    if kind is None:
        raise ValueError(f"surrogate {name!r} is not known; known are {', '.join(_SURROGATES)}")
    known = [field.name for field in dataclasses.fields(kind)]
    unknown = [parameter for parameter in parameters if parameter not in known]
    if unknown:
        raise ValueError(f"{name} has no parameter {unknown[0]!r}; it has {', '.join(known) or 'none'}")
    return kind(**parameters)


def require(surrogate: str | Surrogate, k: int | None) -> Surrogate:
    """The surrogate, if the labels of the top k are enough for it; otherwise a ValueError that says why not.

    `k=None` stands for the labels of the whole list.

    Parameters
    ----------
    surrogate : str or Surrogate
        A name, or a surrogate.
    k : int or None
        How many labels are seen.

    Returns
    -------
    Surrogate
        The surrogate.

    Examples
    --------
    >>> require("ranksvm", 2)
    RankSVM()
    >>> require("ranksvm", 1)
    Traceback (most recent call last):
    ValueError: ranksvm needs k >= 2, got k=1: whether a pair counts depends on both of its labels, ...
    """
    wanted = get(surrogate)
    if k is None:
        return wanted
    k = whole("k", k, at_least=1)
    if wanted.level is None:
        raise ValueError(f"{wanted.name} needs the labels of the whole list, got k={k}: {wanted.reason}")
    if k < wanted.level:
        raise ValueError(f"{wanted.name} needs k >= {wanted.level}, got k={k}: {wanted.reason}")
    return wanted
