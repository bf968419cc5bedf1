"""What a log identifies: two positions can be compared if some item that was clicked was shown at both."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from rankloop.logs.em import Cells

_MOST_NAMES = 3


def groups(cells: Cells) -> NDArray[np.int64]:
    """For each position the number of its group: within a group examinations can be compared, across groups not.

    An item without a click carries no information on examination, so only the others link positions.
    """
    links = cells.by_item(cells.clicked)[cells.items] > 0
    n = cells.n_positions
    edges = coo_array(
        (np.ones(int(links.sum())), (cells.positions[links], n + cells.items[links])),
        shape=(n + cells.n_items, n + cells.n_items),
    )
    labels = connected_components(edges, directed=False)[1]
    return np.asarray(labels[:n], dtype=np.int64)


def told(
    cells: Cells,
    group: NDArray[np.int64],
    reference: int,
    beta_error: NDArray[np.float64],
    name: Callable[[int], str] | None = None,
) -> tuple[str, ...]:
    """Warnings, as sentences; positions count from 1 there, and `name`, if given, names an item."""
    seen = cells.by_position(cells.shown) > 0
    sentences = []
    if not seen.all():
        sentences.append(f"nothing was shown at {listed(~seen)}: how often users look there is unknown")
    apart = seen & (group != group[reference])
    if apart.any():
        sentences.append(
            f"examination of {listed(apart)} cannot be compared with that of position {reference + 1}: no item that"
            " was clicked links them; their numbers, and those of items shown only there, are arbitrary"
            f" (not identified){_ties(cells, ~apart & seen, ~apart & seen, name)}"
        )
    # Twice the error of the logarithm: beyond a factor of 2.7 either way. No click at all says something: few look.
    vague = (cells.by_position(cells.clicked) > 0) & ~apart & (beta_error > 0.5)
    if vague.any():
        sentences.append(
            f"examination of {listed(vague)} is hardly known: few items were shown both there and at other positions,"
            f" or few were clicked{_ties(cells, vague, seen & ~apart, name)}"
        )
    return tuple(sentences)


def _ties(
    cells: Cells, here: NDArray[np.bool_], among: NDArray[np.bool_], name: Callable[[int], str] | None
) -> str:
    """Which clicked items were shown at a position of `here` and at another one of `among`, most clicked first."""
    if name is None:
        return ""
    inside = among[cells.positions]
    places = cells.by_item(inside.astype(np.float64))  # a cell is a position, unless one was split
    clicks = cells.by_item(cells.clicked * inside)
    tie = (cells.by_item(here[cells.positions].astype(np.float64)) > 0) & (places > 1) & (clicks > 0)
    best = sorted(np.flatnonzero(tie).tolist(), key=lambda i: (-clicks[i], i))
    if not best:
        return f"; no item ties {listed(here)} to another position"
    more = f" and {len(best) - _MOST_NAMES:,} more" if len(best) > _MOST_NAMES else ""
    shown = ", ".join(f"{name(i)} ({_clicks(clicks[i])})" for i in best[:_MOST_NAMES])
    tied = "the item that ties" if len(best) == 1 else "the items that tie"
    return f"; {tied} {listed(here)} to the others: {shown}{more}"


def _clicks(count: float) -> str:
    return f"{count:,.0f} click{'' if count == 1 else 's'}"


def listed(which: NDArray[np.bool_]) -> str:
    """Positions in words, counted from 1."""
    numbers = [str(j + 1) for j in np.flatnonzero(which)]
    if len(numbers) == 1:
        return f"position {numbers[0]}"
    return f"positions {', '.join(numbers[:-1])} and {numbers[-1]}"
