"""Names at the ends of lines instead of a legend, moved apart where they would cover each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def spread(wanted: Sequence[float], *, gaps: Sequence[float], low: float, high: float) -> list[float]:
    """Positions as near to `wanted` as can be, in the same order, at least half the two neighbours' `gaps` apart.

    The least-squares answer: what collides is pooled and centred on the mean of what was wanted. If everything
    cannot fit between `low` and `high`, the gaps shrink together.

    >>> spread([1.0, 1.0, 5.0], gaps=[1.0, 1.0, 1.0], low=0.0, high=6.0)
    [0.5, 1.5, 5.0]
    """
    if len(wanted) != len(gaps):
        raise ValueError(f"gaps must have one entry for each of the {len(wanted)} positions, got {len(gaps)}")
    if not wanted:
        return []
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    room, needed = high - low, sum(gaps)
    shrink = min(1.0, room / needed) if needed > 0.0 else 1.0
    offsets, offset = [], 0.0
    for before, after in zip([order[0], *order], order, strict=False):
        offset += shrink * (gaps[before] + gaps[after]) / 2 if before != after else 0.0
        offsets.append(offset)
    # With the offsets taken away, "apart enough" becomes "not falling": isotonic regression by pooling.
    pools: list[tuple[float, int]] = []
    for i, offset in zip(order, offsets, strict=True):
        total, count = wanted[i] - offset, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            earlier, members = pools.pop()
            total, count = total + earlier, count + members
        pools.append((total, count))
    levels = [total / count for total, count in pools for _ in range(count)]
    first, last = shrink * gaps[order[0]] / 2, offsets[-1] + shrink * gaps[order[-1]] / 2
    placed = [0.0] * len(wanted)
    for i, offset, level in zip(order, offsets, levels, strict=True):
        placed[i] = min(max(level, low + first), high - last) + offset
    return placed


def label_line_ends(axes: Axes, *, size: float) -> None:
    """Write each line's label at its right end, in the line's colour, with a thin leader where it had to move.

    Lines whose label starts with an underscore (matplotlib's own way of saying "none") stay unnamed.
    """
    lines = [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
    points_high = axes.get_window_extent().height * 72.0 / axes.get_figure(root=True).dpi  # type: ignore[union-attr]
    to_axes = axes.transData + axes.transAxes.inverted()
    ends = [to_axes.transform(np.asarray(line.get_xydata(), dtype=float)[-1]) for line in lines]
    gaps = [(str(line.get_label()).count("\n") + 1) * 1.28 * size / points_high for line in lines]
    places = spread([float(y) for _, y in ends], gaps=gaps, low=-0.06, high=1.06)
    for line, (x, y), place in zip(lines, ends, places, strict=True):
        colour = line.get_color()
        if abs(place - y) > 0.012 or x < 0.99:
            axes.plot(
                [x, 1.022],
                [y, place],
                transform=axes.transAxes,
                clip_on=False,
                color=colour,
                linewidth=0.8,
                alpha=0.7,
                label="_leader",
            )
        axes.text(
            1.03,
            place,
            str(line.get_label()),
            transform=axes.transAxes,
            color=colour,
            size=size,
            weight="bold",
            va="center",
            linespacing=1.15,
        )
