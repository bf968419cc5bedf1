"""A line chart for the terminal: each character cell holds two by four dots, drawn in braille."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from rankloop.plotting.line_labels import spread

# The bit of each dot in a braille cell, by row and column (Unicode's numbering of the dots).
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_BLANK = 0x2800


@dataclass(frozen=True, slots=True)
class Line:
    """What to draw: a name and a colour rich knows, and points with x rising."""

    label: str
    colour: str
    x: Sequence[float]
    y: Sequence[float]


def live_view(first: RenderableType, *, console: Console, transient: bool = False) -> Live:
    """A part of the terminal to draw on again and again.

    Standard streams are left alone: compilers imported meanwhile take hold of them and should find the real ones.
    """
    return Live(
        first,
        console=console,
        transient=transient,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
    )


def line_chart(
    lines: Sequence[Line],
    *,
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    width: int = 60,
    height: int = 12,
) -> Text:
    """The lines over a logarithmic x axis, each one's label at its end; later lines are drawn over earlier ones.

    `width` and `height` are the characters of the plot itself; tick labels and line labels come on top of it.

    >>> text = line_chart([Line("a", "red", [1, 10], [0, 1])], x_range=(1, 10), y_range=(0, 1), width=4, height=2)
    >>> print(text.plain)
      1.00 ┤⠀⠀⡠⠊ a
      0.00 ┤⡠⠊⠀⠀
           └┬──┬
            1 10
    """
    if width < 2 or height < 2:
        raise ValueError(f"width and height must be at least 2, got {width} and {height}")
    left, right = (math.log(edge) for edge in x_range)
    low, high = y_range
    cells = [[_BLANK] * width for _ in range(height)]
    colours = [[""] * width for _ in range(height)]
    ends: list[float] = []
    for line in lines:
        dots = [
            (
                (math.log(x) - left) / (right - left) * (2 * width - 1),
                (high - min(max(y, low), high)) / (high - low) * (4 * height - 1),
            )
            for x, y in zip(line.x, line.y, strict=True)
            if x_range[0] <= x <= x_range[1] and math.isfinite(y)
        ]
        for column, row in _connect(dots):
            cells[row // 4][column // 2] |= _DOTS[row % 4][column % 2]
            colours[row // 4][column // 2] = line.colour
        ends.append(dots[-1][1] / 4 if dots else math.nan)
    labels = _label_rows(lines, ends, height)
    middle = (height - 1) // 2
    ticks = {middle: high - (high - low) * (middle + 0.5) / height, 0: high, height - 1: low}
    text = Text()
    for row in range(height):
        text.append(f"{ticks[row]:6.2f} ┤" if row in ticks else "       │", style="dim")
        for colour, run in itertools.groupby(
            zip(cells[row], colours[row], strict=True), key=lambda cell: cell[1]
        ):
            text.append("".join(chr(cell) for cell, _ in run), style=colour or None)
        if row in labels:
            text.append(f" {labels[row].label}", style=f"bold {labels[row].colour}")
        text.append("\n")
    text.append(_x_axis(x_range, width), style="dim")
    return text


def _x_axis(x_range: tuple[float, float], width: int) -> str:
    """Two lines below the plot: a mark at every power of ten, and its number where there is room."""
    left, right = (math.log10(edge) for edge in x_range)
    marks, numbers = ["─"] * width, ""
    for power in range(math.ceil(left), math.floor(right) + 1):
        column = round((power - left) / (right - left) * (width - 1))
        marks[column] = "┬"
        number = f"{10**power:,}"
        start = max(0, min(column - len(number) // 2, width - len(number)))
        if start > len(numbers) or not numbers:
            numbers = numbers.ljust(start) + number
    return "       └" + "".join(marks) + "\n        " + numbers


def _connect(dots: Sequence[tuple[float, float]]) -> set[tuple[int, int]]:
    if len(dots) == 1:
        return {(round(dots[0][0]), round(dots[0][1]))}
    drawn: set[tuple[int, int]] = set()
    for (x0, y0), (x1, y1) in itertools.pairwise(dots):
        steps = max(1, math.ceil(max(abs(x1 - x0), abs(y1 - y0))))
        drawn.update(
            (round(x0 + (x1 - x0) * i / steps), round(y0 + (y1 - y0) * i / steps)) for i in range(steps + 1)
        )
    return drawn


def _label_rows(lines: Sequence[Line], ends: Sequence[float], height: int) -> dict[int, Line]:
    named = [i for i, end in enumerate(ends) if math.isfinite(end)]
    places = spread([ends[i] for i in named], gaps=[1.0] * len(named), low=0.0, high=float(height))
    return {min(height - 1, int(place)): lines[i] for i, place in zip(named, places, strict=True)}
