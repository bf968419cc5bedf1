"""The table of rates as a picture."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from rankloop.cli.games import rate_marks
from rankloop.games.rates import LATER, OURS, PAPER, SOURCES, Row
from rankloop.plotting import figures

_COLOURS = {"trivial": figures.GRID, "easy": "#cdeadf", "hard": "#f6e3b4", "hopeless": "#f3c7b5"}
_WRITTEN = {"trivial": "0", "easy": "√T", "hard": "$T^{2/3}$", "hopeless": "T"}


def draw_rates(rows: list[Row]) -> Figure:
    """The figure."""
    m = len(rows[0].classes)
    marks = rate_marks()
    figure, (axes,) = figures.canvas(
        title=f"What can be learnt about {m} items from the top k",
        subtitle="smallest possible regret after T rounds, in the worst case",
        caption="Each row is a measure, each column a number k of items, from the top, that reveal their relevance. "
        f"No mark: {SOURCES[PAPER]}. Prime: {SOURCES[LATER]}. Star: {SOURCES[OURS]}.",
        width=max(6.4, 3.0 + 0.75 * m),
        height=1.9 + 0.36 * len(rows),
    )
    left = 1.75 / figure.get_figwidth()
    place = axes.get_position()
    axes.set_position((left, place.y0 - 0.02, 1 - left - 0.25 / figure.get_figwidth(), place.height + 0.02))
    for y, row in enumerate(rows):
        for x, (class_, source) in enumerate(zip(row.classes, row.sources, strict=True)):
            axes.add_patch(Rectangle((x - 0.47, y - 0.45), 0.94, 0.9, color=_COLOURS[class_], linewidth=0))
            word = _WRITTEN[class_] + marks[source]
            axes.text(x, y, word, ha="center", va="center", size=figures.TICK_SIZE, color=figures.INK)
    axes.set_xlim(-0.5, m - 0.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xticks(
        range(m), [f"k = {k}" for k in range(1, m + 1)] if m <= 8 else [str(k) for k in range(1, m + 1)]
    )
    axes.set_yticks(range(len(rows)), [row.measure for row in rows])
    axes.tick_params(length=0)
    axes.grid(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    return figure


def save_rates(rows: list[Row], path: Path) -> None:
    """Write the picture; the ending of the name, png or svg, says which kind."""
    ending = path.suffix.removeprefix(".").lower()
    if ending not in ("png", "svg"):
        raise ValueError(f"the picture must end in .png or .svg, got {str(path)!r}")
    figures.save(draw_rates(rows), path, ending=ending)
