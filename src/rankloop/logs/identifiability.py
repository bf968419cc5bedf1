"""What a log identifies: two positions can be compared if some item that was clicked was shown at both."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from rankloop.logs.em import Cells


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
    cells: Cells, group: NDArray[np.int64], reference: int, beta_error: NDArray[np.float64]
) -> tuple[str, ...]:
    """Warnings, as sentences; positions count from 1 there."""
    seen = cells.by_position(cells.shown) > 0
    sentences = []
    if not seen.all():
        sentences.append(f"nothing was shown at {_listed(~seen)}: how often users look there is unknown")
    apart = seen & (group != group[reference])
    if apart.any():
        sentences.append(
            f"examination of {_listed(apart)} cannot be compared with that of position {reference + 1}: no item that"
            " was clicked links them; their numbers, and those of items shown only there, are arbitrary"
        )
    # Twice the error of the logarithm: beyond a factor of 2.7 either way. No click at all says something: few look.
    vague = (cells.by_position(cells.clicked) > 0) & ~apart & (beta_error > 0.5)
    if vague.any():
        sentences.append(
            f"examination of {_listed(vague)} is hardly known: few items were shown both there and at other positions,"
            " or few were clicked"
        )
    return tuple(sentences)


def _listed(which: NDArray[np.bool_]) -> str:
    numbers = [str(j + 1) for j in np.flatnonzero(which)]
    if len(numbers) == 1:
        return f"position {numbers[0]}"
    return f"positions {', '.join(numbers[:-1])} and {numbers[-1]}"
