"""What every click model says of a user, in one form: tables that a compiled world draws clicks from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Browsing(NamedTuple):
    """How a user goes down a list: what they look at, what they click on, and when they stop.

    The user is at position j, and looks at it with the chance `examination[j, r]`, where r is 0 before the first click
    and otherwise counts the position of the last click from 1. A user who looks clicks with the chance
    `attraction[i, j]`, where i is the item there. Then they go on to position j + 1 with the chance
    `after_click[i, j]` or `after_none[j]`, or leave.

    Parameters
    ----------
    attraction : ndarray of float
        Items x positions.
    examination : ndarray of float
        Positions x the last click.
    after_click : ndarray of float
        Items x positions.
    after_none : ndarray of float
        By position.
    """

    attraction: NDArray[np.float64]
    examination: NDArray[np.float64]
    after_click: NDArray[np.float64]
    after_none: NDArray[np.float64]


def browsing(
    attraction: NDArray[np.float64],
    n_positions: int,
    *,
    examination: NDArray[np.float64] | float = 1.0,
    after_click: NDArray[np.float64] | float = 1.0,
    after_none: NDArray[np.float64] | float = 1.0,
) -> Browsing:
    """The tables of users who differ from one that reads on to the end in what is given.

    Parameters
    ----------
    attraction : ndarray of float
        By item, or items x positions.
    n_positions : int
        The length of the list.
    examination : ndarray of float or float, optional
        By position, or positions x the last click.
    after_click : ndarray of float or float, optional
        Anything that spreads over items x positions.
    after_none : ndarray of float or float, optional
        By position.

    Returns
    -------
    Browsing
        The tables, each of its own memory.
    """
    m, n = n_positions, len(attraction)
    by_position = attraction if attraction.ndim == 2 else attraction[:, None]
    looks = np.asarray(examination, np.float64)
    wide = looks[:, None] if looks.ndim == 1 else looks
    return Browsing(
        attraction=np.array(np.broadcast_to(by_position, (n, m)), np.float64),
        examination=np.array(np.broadcast_to(wide, (m, m)), np.float64),
        after_click=np.array(np.broadcast_to(after_click, (n, m)), np.float64),
        after_none=np.array(np.broadcast_to(after_none, (m,)), np.float64),
    )
