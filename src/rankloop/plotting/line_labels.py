"""Names at the ends of lines instead of a legend, moved apart where they would cover each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from numpy.typing import NDArray

_GAP = 0.16  # inches between a line's end and its label


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


def label_line_ends(axes: Axes, *, size: float, right: float) -> None:
    """Write each line's label at its right end, in the line's colour, with a thin leader where it had to move.

    Lines whose label starts with an underscore (matplotlib's own way of saying "none") stay unnamed. The axes are
    made as wide as the labels allow without passing `right`, a share of the figure's width.
    """
    from matplotlib.lines import Line2D

    lines = [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
    if not lines:
        return
    figure = axes.get_figure(root=True)
    assert figure is not None
    texts = [
        figure.text(0, 0, str(line.get_label()), size=size, weight="bold", linespacing=1.15, va="center")
        for line in lines
    ]
    boxes = [text.get_window_extent() for text in texts]
    widest = max(box.width for box in boxes) / figure.bbox.width
    gap = _GAP * figure.dpi / figure.bbox.width
    place = axes.get_position()
    axes.set_position((place.x0, place.y0, max(0.1, right - widest - 1.4 * gap - place.x0), place.height))
    panel = axes.get_position()
    ends = [figure.transFigure.inverted().transform(_end(axes, line)) for line in lines]
    # Half a line between labels tells where one stops.
    air = 0.45 * size * figure.dpi / 72.0
    heights = spread(
        [float(y) for _, y in ends],
        gaps=[(box.height + air) / figure.bbox.height for box in boxes],
        low=panel.y0 - 0.02 * panel.height,
        high=panel.y1 + 0.07 * panel.height,
    )
    for line, text, (x, y), height in zip(lines, texts, ends, heights, strict=True):
        text.set(position=(panel.x1 + gap, height), color=line.get_color())
        if abs(height - y) > 0.01 or panel.x1 - x > 0.01:
            leader = Line2D([x, panel.x1 + 0.8 * gap], [y, height], color=line.get_color(), linewidth=0.8)
            figure.add_artist(leader)


def _end(axes: Axes, line: Line2D) -> NDArray[np.float64]:
    points = np.asarray(line.get_xydata(), dtype=float)
    return np.asarray(axes.transData.transform(points[-1]), dtype=float)
