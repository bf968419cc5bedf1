"""A click model from a log: in words, as a picture, and as a file of parameters."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import MaxNLocator
from rich import box
from rich.console import Console
from rich.table import Table

from rankloop import data, logs
from rankloop.data.clicks.rows import TOO_MANY_CLICKS
from rankloop.plotting import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_ROWS = 20  # of items in words and in the picture


def fit_clicks(
    files: Sequence[str | Path],
    *,
    query: str | None,
    top: int | None,
    positions: int | None,
    smoothing: float,
    **reading: Any,
) -> logs.FittedPBM:
    """Read the files and fit; `warnings` of the result says what the log cannot determine."""
    log = data.read_clicks(files, **reading).select(query=query, top=top, positions=positions)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", logs.ClickModelWarning)
        return logs.fit_pbm(log, smoothing=smoothing)


def write(found: logs.FittedPBM, out: Path) -> tuple[Path, Path]:
    """Write the parameters and the picture to the folder `out`."""
    out.mkdir(parents=True, exist_ok=True)
    queries = found.log.query_ids
    name = found.log.name if len(queries) > 1 or queries == ("",) else f"{found.log.name}-{queries[0]}"
    stem = re.sub(r"[^\w.-]+", "-", name)
    parameters, picture = out / f"{stem}.json", out / f"{stem}.png"
    found.save(parameters)
    figures.save(draw(found), picture, ending="png")
    return parameters, picture


def tell(found: logs.FittedPBM, console: Console) -> None:
    """The estimates as two tables, after a summary of the log and its warnings."""
    console.print(str(found.log), soft_wrap=True, markup=False)
    lost = found.log.bad_clicks
    clicks = int(found.log.clicked.sum()) + sum(lost.values())
    for reason, count in found.log.bad_rows.items():
        told = f"left out of the file: {count:,} rows with {reason}"
        if reason in lost:
            told += f", and {lost[reason]:,} clicks on them ({lost[reason] / clicks:.1%} of all)"
        if reason == TOO_MANY_CLICKS:
            told += "; --clip counts them as clicked every time"
        console.print(told, soft_wrap=True, markup=False)
    for sentence in found.warnings:
        console.print(f"warning: {sentence}", soft_wrap=True, markup=False)
    settled = "converged" if found.converged else "was stopped, not converged,"
    console.print(f"The fit {settled} after {len(found.trace)} steps, log likelihood {found.trace[-1]:,.2f}")
    interval = f"{found.confidence:.0%} interval"
    items = _table("item", "attraction", interval, "shown", "clicked")
    for i in range(min(len(found.items), _MOST_ROWS)):
        ends = found.attraction_interval[i]
        items.add_row(
            found.names[i],
            f"{found.attraction[i]:.4f}",
            f"{ends[0]:.4f} to {ends[1]:.4f}",
            f"{found.shown[i]:,}",
            f"{found.clicked[i]:,}",
        )
    console.print(items)
    if len(found.items) > _MOST_ROWS:
        console.print(f"and {len(found.items) - _MOST_ROWS:,} items more")
    places = _table("position", "examination", interval, "click rate")
    for j, rate in enumerate(_click_rates(found)):
        ends = found.examination_interval[j]
        places.add_row(
            f"{j + 1}", f"{found.examination[j]:.4f}", f"{ends[0]:.4f} to {ends[1]:.4f}", f"{rate:.4f}"
        )
    console.print(places)


def plain(found: logs.FittedPBM) -> dict[str, Any]:
    """The parameters and their origin, for programs."""
    told = found.parameters()
    return {
        "items": list(told.items),
        "attraction": told.attraction.tolist(),
        "examination": told.examination.tolist(),
        **told.provenance,
    }


def draw(found: logs.FittedPBM) -> Figure:
    """Attraction of the items and examination of the positions, with their intervals."""
    queries = found.log.query_ids
    of = f"query {queries[0]}" if len(queries) == 1 and queries[0] else f"{len(queries):,} queries"
    of = found.log.name if queries == ("",) else f"{found.log.name}, {of}"
    figure, (left, right) = figures.canvas(
        title="What users like, and where they look",
        subtitle=f"{of}: {found.shown.sum():,} impressions, {found.clicked.sum():,} clicks",
        caption=(
            f"A position-based model of maximum likelihood; bars are {found.confidence:.0%} intervals. Examination is"
            f" relative to position {found.reference + 1}. The raw click rate of a position, drawn with its largest"
            " value at 1, mixes where users look with what was shown there."
        ),
        width=10.5,
        columns=2,
    )
    count = min(len(found.items), _MOST_ROWS)
    _bars(
        left,
        np.arange(1, count + 1),
        found.attraction[:count],
        found.attraction_interval[:count],
        figures.BLUE,
    )
    figures.name_axes(left, x="item, best first", y="attraction")
    places = np.arange(1, len(found.examination) + 1)
    _bars(right, places, found.examination, found.examination_interval, figures.ORANGE)
    rates = _click_rates(found)
    figures.curve(
        right,
        places,
        rates / rates.max(),
        label="click rate",
        colour=figures.MUTED,
        dashed=True,
    )
    figures.name_axes(right, x="position", y="examination")
    for axes in (left, right):
        axes.set_ylim(bottom=0.0)
        axes.xaxis.set_major_locator(MaxNLocator(10, integer=True))
    return figures.finish(figure)


def _bars(axes: Any, x: Any, y: Any, ends: Any, colour: str) -> None:
    known = np.isfinite(y)
    x, y, ends = x[known], y[known], ends[known]
    away = np.abs(ends - y[:, None]).T
    axes.errorbar(
        x, y, yerr=away, fmt="o", color=colour, markersize=6, capsize=3, linewidth=1.6, label="_fit"
    )


def _click_rates(found: logs.FittedPBM) -> Any:
    shown, clicked = found.log.matrices()
    return clicked.sum(axis=0) / np.maximum(shown.sum(axis=0), 1)


def _table(*headings: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place == 0 else "right")
    return table
