"""The chart of a setting: a column of bars for each capability, a row for each ranker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from rankloop import plotting
from rankloop.suite.world import SETTINGS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LEAST, _MOST = -0.5, 1.08  # of the axis; scores below are drawn at its end


def board(scores: pl.DataFrame, setting: str) -> pl.DataFrame:
    """The rankers of a setting: those that play the most capabilities first, by their mean score.

    Only capabilities of which all worlds were played count.

    >>> rows = {"ranker": ["A", "B", "C"], "setting": ["clicks"] * 3, "capability": ["noise"] * 3}
    >>> rows |= {"score": [0.4, 0.6, 0.9], "worlds": [2, 2, 1], "of": [2, 2, 2]}
    >>> board(pl.DataFrame(rows), "clicks").rows()
    [('B', 1, 0.6), ('A', 1, 0.4), ('C', 0, None)]
    """
    whole = pl.col("worlds") == pl.col("of")
    return (
        scores.filter(pl.col("setting") == setting)
        .group_by("ranker", maintain_order=True)
        .agg(
            whole.sum().cast(pl.Int64).alias("capabilities"),
            pl.col("score").filter(whole).mean().alias("mean"),
        )
        .sort(["capabilities", "mean", "ranker"], descending=[True, True, False], nulls_last=True)
    )


def columns(scores: pl.DataFrame, setting: str) -> list[str]:
    """The capabilities that somebody plays in a setting, in the order of the suite."""
    return list(dict.fromkeys(scores.filter(pl.col("setting") == setting)["capability"]))


def draw(scores: pl.DataFrame, setting: str, *, subtitle: str) -> Figure:
    """Bars for every ranker and capability of a setting, with their intervals."""
    names, capabilities = board(scores, setting)["ranker"].to_list(), columns(scores, setting)
    named = max(len(name) for name in names)
    left, panel, gap = 0.3 + 0.088 * named, 1.02, 0.14
    width = max(6.4, left + len(capabilities) * (panel + gap) + 0.2)
    figure, (whole,) = plotting.canvas(
        title=f"What rankers can do: {SETTINGS[setting]}",
        subtitle=subtitle,
        caption=(
            "Bars: share of the way from random lists (0) to the best in hindsight (1), interquartile mean over seeds "
            "and worlds. Lines: 95% bootstrap intervals. Orange is worse than random; pale: some of the worlds could "
            "not be played; n/a: none could."
        ),
        width=width,
        height=1.9 + 0.24 * len(names),
    )
    slot = whole.get_position()
    whole.set_visible(False)
    own = {
        (row["ranker"], row["capability"]): row
        for row in scores.filter(pl.col("setting") == setting).iter_rows(named=True)
    }
    for place, capability in enumerate(capabilities):
        start = left + place * (panel + gap)
        axes = figure.add_axes((start / width, slot.y0, panel / width, slot.height))
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        axes.spines["bottom"].set_color(plotting.MUTED)
        axes.set_xlim(_LEAST, _MOST)
        axes.set_ylim(-0.6, len(names) - 0.4)
        axes.set_xticks([0.0, 1.0], ["0", "1"])
        axes.set_yticks(range(len(names)), names[::-1] if place == 0 else [])
        axes.tick_params(labelsize=8.5, color=plotting.MUTED, labelcolor=plotting.INK, left=False)
        axes.grid(True, axis="x", color=plotting.GRID, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.set_facecolor("none")
        axes.set_title(_in_two_lines(capability), loc="left", size=9, color=plotting.INK, pad=5)
        for row, name in enumerate(names[::-1]):
            found = own.get((name, capability))
            if found is None:
                axes.text(0.02, row, "n/a", size=7.5, color=plotting.MUTED, va="center")
                continue
            colour = plotting.BLUE if found["score"] >= 0.0 else plotting.ORANGE
            faded = 0.4 if found["worlds"] < found["of"] else 1.0
            axes.barh(row, max(found["score"], _LEAST), height=0.66, color=colour, alpha=faded)
            ends = [min(max(found[end], _LEAST), _MOST) for end in ("low", "high")]
            axes.plot(ends, [row, row], color=plotting.INK, linewidth=1.1)
    return figure


def _in_two_lines(text: str) -> str:
    head, _, rest = text.rpartition(" ")
    return f"{head}\n{rest}" if head else f"\n{text}"
