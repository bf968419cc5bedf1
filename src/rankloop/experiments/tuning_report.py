"""The report on a search for arguments: its runs as Parquet, a figure, and one HTML page that needs nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from rankloop import plotting
from rankloop.plotting import STYLE, inline, table_of
from rankloop.simulation import Tuning
from rankloop.simulation.tuning_result import FINAL, mean
from rankloop.whole_file import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FIGURE = "search"


def write_tuning_report(found: Tuning, out: Path) -> Path:
    """Write ``runs.parquet``, the figure as PNG and SVG, and ``report.html`` into `out`, each whole or not at all.

    The same search gives the same bytes.

    Parameters
    ----------
    found : Tuning
        What `rankloop.simulation.tune` returned.
    out : Path
        A folder; that of the search will do.

    Returns
    -------
    Path
        The page.
    """
    write_whole(out / "runs.parquet", rows(found).write_parquet)
    figure = draw(found)
    for ending in ("png", "svg"):
        write_whole(
            out / f"{_FIGURE}.{ending}",
            lambda part, ending=ending: plotting.save(figure, part, ending=ending),  # type: ignore[misc]
        )
    caption, share = plotting.caption_of(figure)
    svg = (out / f"{_FIGURE}.svg").read_text(encoding="utf-8")
    drawn = inline(svg, prefix=_FIGURE, description=caption, caption_share=share)
    page = _page(
        found,
        f'<figure><div class="scroll wide">{drawn}</div><figcaption>{escape(caption)}</figcaption></figure>',
    )
    path = out / "report.html"
    write_whole(path, lambda part: part.write_text(page, encoding="utf-8"))
    return path


def rows(found: Tuning) -> pl.DataFrame:
    """A row for every run; arguments are written as Python writes them."""
    given = found.ranker.get_params()
    told = []
    for run in found.runs:
        used = given | found.tried[run.setting]
        told.append(
            {
                "setting": run.setting,
                "phase": "evaluation" if run.rung == FINAL else "search",
                "rung": None if run.rung == FINAL else run.rung,
                "seed": run.seed,
                **{name: repr(used[name]) for name in found.ranges},
                "value": run.value,
                "regret": None if math.isnan(run.regret) else run.regret,
                "explored": run.explored,
            }
        )
    return pl.DataFrame(told, schema_overrides={"rung": pl.Int64, "regret": pl.Float64})


def draw(found: Tuning) -> Figure:
    """A panel for every argument: each setting's mean value in the search, by the value that the argument had."""
    columns = min(2, len(found.ranges))
    lines = math.ceil(len(found.ranges) / columns)
    figure, panels = plotting.canvas(
        title=f"{type(found.ranker).__name__}: {len(found.tried)} settings",
        subtitle=f"{found.rounds:,} rounds a run; {'lower' if found.is_loss else 'higher'} is better",
        caption=(
            "A dot is a setting, at the mean over its runs in the search; larger dots have played more runs. Orange is "
            "the one that was chosen, green the ranker as it was given, blue the others."
        ),
        width=5.4 * columns if columns > 1 else 8.6,
        height=1.4 + 3.4 * lines,
        rows=lines,
        columns=columns,
    )
    given = found.ranker.get_params()
    for axes in panels[len(found.ranges) :]:
        axes.set_visible(False)
    for axes, name in zip(panels, found.ranges, strict=False):
        places = _places(axes, [(given | setting)[name] for setting in found.tried])
        last_drawn = {0: plotting.GREEN} | {found.chosen: plotting.ORANGE}
        for setting in [*(i for i in range(len(places)) if i not in last_drawn), *last_drawn]:
            values, x = found.values(setting), places[setting]
            colour = last_drawn.get(setting, plotting.BLUE)
            size = 30.0 * (1.0 + math.log2(len(values)))
            axes.scatter([x], [mean(values)], s=size, color=colour, alpha=0.85, linewidth=0, label="_setting")
        plotting.name_axes(axes, x=name, y=found.measure)
    return figure


def _places(axes: Any, values: Sequence[Any]) -> list[float]:
    """Places along the x axis: numbers by their logarithm, the scale of a pair; to their left, what is no number."""
    scales = [value[0] if isinstance(value, tuple | list) else value for value in values]
    numbers = [math.log10(each) for each in scales if _is_number(each)]
    words = list(dict.fromkeys(str(each) for each in scales if not _is_number(each)))
    left = min(numbers, default=float(len(words)))
    gap = max(0.5, 0.2 * (max(numbers) - left)) if numbers else 1.0
    at = {word: left - gap * (len(words) - i) for i, word in enumerate(words)}
    ticks = dict(at)
    if numbers:
        first, last = math.floor(left), math.ceil(max(numbers))
        step = max(1, (last - first) // 3)
        for power in range(first, last + 1, step):
            if power >= left - 0.3:
                ticks[plotting.plain_number(10.0**power)] = float(power)
    axes.set_xticks(list(ticks.values()), list(ticks))
    return [math.log10(each) if _is_number(each) else at[str(each)] for each in scales]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _page(found: Tuning, figure: str) -> str:
    kind = type(found.ranker).__name__
    given = found.ranker.get_params()
    order = sorted(
        range(len(found.tried)),
        key=lambda setting: (setting != found.chosen, -len(found.values(setting)), setting),
    )
    table = table_of(
        [
            {
                "setting": "chosen"
                if setting == found.chosen
                else "as given"
                if setting == 0
                else str(setting),
                **{name: repr((given | found.tried[setting])[name]) for name in found.ranges},
                "runs": len(found.values(setting)),
                found.measure: mean(found.values(setting)),
            }
            for setting in order
        ]
    )
    words = "".join(f"<p>{escape(line)}</p>" for line in str(found).splitlines())
    ranges = "".join(
        f"<dt>{escape(name)}</dt><dd><code>{escape(repr(each))}</code></dd>"
        for name, each in found.ranges.items()
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>rankloop: arguments for {escape(kind)}</title>
<style>{STYLE}</style>
</head>
<body>
<main>
<h1>Arguments for {escape(kind)}</h1>
<section>
<h2>What was found</h2>
{words}
<p><code>{escape(repr(found.best()))}</code></p>
{figure}
<h3>Settings</h3>
<p>Means over the runs of the search. They were used to choose, so the best of them is too good; the figures above are
from runs that the search had not met.</p>
{table}
<h3>What was searched</h3>
<dl>{ranges}<dt>given</dt><dd><code>{escape(repr(found.ranker))}</code></dd></dl>
</section>
</main>
</body>
</html>
"""
