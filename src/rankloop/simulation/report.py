"""Reports: pages of one file that need nothing else, and the tables and figures of comparisons and searches.

The suite and the experiments make their pages from the same parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from html import escape
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.arguments import number, one_of, whole
from rankloop.extras import counted, require, write_text, write_whole
from rankloop.simulation.compare import mean_interval, paired_differences, smaller_is_better
from rankloop.simulation.trace import Trace, provenance, read_frame, write_frame
from rankloop.simulation.tune import FINAL

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rankloop.simulation.compare import Comparison
    from rankloop.simulation.tune import Tuning

_LATEX = {sign: f"\\{sign}" for sign in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}
_MARKDOWN = {sign: f"\\{sign}" for sign in "\\|*_`<"}
_LONG = 1_000  # rounds from which on a logarithmic axis shows the beginning
_APART = 5.0  # times that the largest regret is above the smallest, from which on logarithms show both
_RUNS = "runs.parquet"

# A label, then per point: mean, lower and upper end.
Line = tuple[str, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


def page(title: str, heading: str, body: str) -> str:
    """A page in our style, with what is in its body."""
    from rankloop.plotting import STYLE

    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<main>
<h1>{escape(heading)}</h1>
{body}
</main>
</body>
</html>
"""


def facts(rows: Mapping[str, str]) -> str:
    """Names and texts as an HTML list of definitions."""
    items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in rows.items())
    return f"<dl>{items}</dl>"


def table(head: str, rows: Iterable[str]) -> str:
    """A table that scrolls where the page is narrow, from cells that are HTML already."""
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def save_figure(
    figure: Figure, stem: Path, *, endings: Sequence[str] = ("png", "svg"), titles: bool = True
) -> tuple[str, float]:
    """Write a figure with each ending; its caption, and the share of its height that the caption takes."""
    from rankloop import plotting

    for ending in endings:
        save = partial(plotting.save, figure, ending=ending, titles=titles)
        write_whole(stem.parent / f"{stem.name}.{ending}", save)
    caption, share = plotting.caption_of(figure)
    return caption, share if titles else 0.0


def shown_figure(svg: Path, *, prefix: str, caption: str, share: float, style: str = "") -> str:
    """A stored figure, for a page; the caption in the picture is left out of view and set as text."""
    from rankloop.plotting import inline

    text = svg.read_text(encoding="utf-8")
    drawn = inline(text, prefix=prefix, description=caption, caption_share=share)
    wide = f'<div class="scroll wide"{style}>{drawn}</div>'
    return f"<figure>{wide}<figcaption>{escape(caption)}</figcaption></figure>"


def write_comparison(comparison: Comparison, folder: Path, *, titles: bool) -> Path:
    """Write runs, summary and differences as Parquet, the figure, and last the page, of which it returns the path."""
    require("polars", "matplotlib", extra="data,plot", for_="saving a comparison")
    from rankloop import plotting

    if folder.exists() and not folder.is_dir():
        raise ValueError(f"folder must be a folder, got the file {folder}")
    figure = comparison.plot(titles=titles)
    made = provenance({})
    runs = [
        {"world": world, "ranker": ranker}
        | trace.facts()
        | {"provenance": provenance(trace.provenance) if trace.provenance else {}}
        for (world, ranker), traces in comparison.traces.items()
        for trace in traces
    ]
    of_all: dict[str, Any] = {"rankers": dict(comparison.rankers), "worlds": dict(comparison.worlds)}
    of_all |= {"measure": comparison.measure, "level": comparison.level, "kind": "comparison", "runs": runs}
    write_frame(folder / _RUNS, comparison.to_polars().drop("mean_value"), of_all)
    write_whole(folder / "summary.parquet", comparison.summary().write_parquet)
    write_whole(folder / "differences.parquet", comparison.differences().write_parquet)
    caption, share = save_figure(figure, folder / "comparison", endings=plotting.ENDINGS)
    drawn = shown_figure(
        folder / "comparison.svg", prefix="comparison", caption=caption or "A comparison.", share=share
    )
    written = folder / "report.html"
    write_text(written, _comparison_page(comparison, drawn, made))
    return written


def read_comparison(folder: Path) -> dict[str, Any]:
    """The arguments of the comparison that was saved there."""
    frame, of_all = read_frame(folder / _RUNS, kind="comparison")
    traces: dict[tuple[str, str], list[Trace]] = {}
    n = len(frame) // len(of_all["runs"])
    for i, run in enumerate(of_all["runs"]):
        key = (run["world"], run["ranker"])
        traces.setdefault(key, []).append(Trace.of(frame[i * n : (i + 1) * n], run))
    return {name: of_all[name] for name in ("rankers", "worlds", "measure", "level")} | {
        "traces": {key: tuple(runs) for key, runs in traces.items()}
    }


def _comparison_page(comparison: Comparison, drawn: str, made: dict[str, Any]) -> str:
    from rankloop.plotting import table_of

    differences = [
        row | {name: _chance(row[name]) for name in ("p", "p_holm")}
        for row in comparison.differences().rows(named=True)
    ]
    tested = f"<h2>Differences on common seeds</h2>{table_of(differences)}" if differences else ""
    making = {
        "Seeds": ", ".join(map(str, comparison.seeds)),
        "Software": ", ".join(f"{name} {version}" for name, version in made["versions"].items()),
        "Machine": made["machine"],
        "Code": made["code"],
        "Made": made["made"],
    }
    title = f"Comparison of {size(comparison)}"
    body = f"""<section>
{drawn}
{comparison.table(form="html")}
{tested}
<h2>Rankers</h2>
{facts(comparison.rankers)}
<h2>Worlds</h2>
{facts(comparison.worlds)}
<h2>How this was made</h2>
{facts(making)}
</section>"""
    return page(title, title, body)


def _chance(p: float | None) -> str:
    return "" if p is None else "below 0.0001" if p < 1e-4 else f"{p:.4f}"


class Cell(NamedTuple):
    """A mean, half the width of its interval (empty for a single seed), and how it stands to the best."""

    mean: str
    reach: str
    best: bool
    like_best: bool


class Table(NamedTuple):
    """A row for each ranker, a column for each world."""

    measure: str
    rankers: list[str]
    worlds: list[str]
    rows: list[list[Cell]]
    note: str


def size(comparison: Comparison) -> str:
    """How much was played, in words."""
    parts = ((len(comparison.rankers), "ranker"), (len(comparison.worlds), "world"))
    who = " in ".join(counted(n, thing) for n, thing in parts)
    return f"{who}: {counted(int(comparison.rounds[-1]), 'round')}, {counted(len(comparison.seeds), 'seed')}"


def cells(comparison: Comparison, measure: str, at: int | None) -> Table:
    """The table, ready to be written."""
    place = comparison.place(at)
    pairs = paired_differences(comparison, measure, against=None, test="t", place=place)
    apart = {(each.world, frozenset((each.ranker, each.other))) for each in pairs if each.better}
    columns = []
    for world in comparison.worlds:
        ends = [
            mean_interval(comparison.values(world, name, measure)[:, place], level=comparison.level)
            for name in comparison.rankers
        ]
        means = [float(mean) for mean, _, _ in ends]
        best = (min if smaller_is_better(comparison, world, measure) else max)(means)
        leader = list(comparison.rankers)[means.index(best)]
        largest = max(map(abs, means))
        column = []
        for name, (mean, low, high) in zip(comparison.rankers, ends, strict=True):
            near = (
                len(comparison.seeds) > 1
                and name != leader
                and (world, frozenset((name, leader))) not in apart
            )
            column.append(Cell(*_rounded(float(mean), float(high - low) / 2, largest), name == leader, near))
        columns.append(column)
    rows = [list(row) for row in zip(*columns, strict=True)]
    when = int(comparison.rounds[place])
    return Table(
        measure, list(comparison.rankers), list(comparison.worlds), rows, _note(comparison, measure, when)
    )


def _note(comparison: Comparison, measure: str, when: int) -> str:
    what = {
        "regret": "Regret",
        "mean_value": "Mean value of a round",
        "value": "Value of a round since the point before",
    }[measure]
    after = f"{what} after {counted(when, 'round')}"
    if len(comparison.seeds) == 1:
        return f"{after}. One seed: no intervals and no test. Bold: the best."
    return (
        f"{after}: mean over {len(comparison.seeds)} seeds ± half of its {comparison.level:.0%} interval. "
        "Bold: the best. ≈: not significantly worse than it (paired t test, Holm's correction over all pairs of all "
        "worlds)."
    )


def _rounded(mean: float, reach: float, largest: float) -> tuple[str, str]:
    # Two figures of the uncertainty and as many decimals of the mean, but no more than six figures of the largest.
    scale = reach if math.isfinite(reach) and reach > 0.0 else abs(mean) / 100.0
    most = 5 - math.floor(math.log10(largest)) if largest > 0.0 else 0
    decimals = 0 if scale == 0.0 else max(0, min(most, 1 - math.floor(math.log10(scale))))
    shown = round(mean, decimals) + 0.0  # never -0
    return f"{shown:,.{decimals}f}", "" if math.isnan(reach) else f"{reach:,.{decimals}f}"


def markdown(table: Table) -> str:
    """The table in Markdown, with columns that align as plain text too."""
    rows = [["", *(_changed(world, _MARKDOWN) for world in table.worlds)]]
    for name, row in zip(table.rankers, table.rows, strict=True):
        rows.append([_changed(name, _MARKDOWN), *(_plain(cell, "**{}**", "±", "≈") for cell in row)])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    rows.insert(1, ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])])
    lines = [
        "| " + " | ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) + " |"
        for row in rows
    ]
    return "\n".join([*lines, "", table.note])


def latex(table: Table) -> str:
    """The table in LaTeX, for the package booktabs."""
    head = " & ".join(["", *(_changed(world, _LATEX) for world in table.worlds)])
    body = "\n".join(
        " & ".join(
            [
                _changed(name, _LATEX),
                *(_plain(cell, r"\textbf{{{}}}", r"$\pm$", r"$\approx$") for cell in row),
            ]
        )
        + r" \\"
        for name, row in zip(table.rankers, table.rows, strict=True)
    )
    note = _changed(table.note, _LATEX).replace("±", r"$\pm$").replace("≈", r"$\approx$")
    return (
        f"% {note}\n\\begin{{tabular}}{{l{'r' * len(table.worlds)}}}\n\\toprule\n{head} \\\\\n\\midrule\n"
        f"{body}\n\\bottomrule\n\\end{{tabular}}"
    )


def html(means: Table) -> str:
    """The table in HTML."""
    number = ' class="number" style="text-align:right"'
    head = "".join(f"<th{number}>{escape(world)}</th>" for world in means.worlds)
    rows = (
        f'<th style="text-align:left">{escape(name)}</th>'
        + "".join(f"<td{number}>{_plain(cell, '<b>{}</b>', '±', '≈')}</td>" for cell in row)
        for name, row in zip(means.rankers, means.rows, strict=True)
    )
    return f"{table(f'<th></th>{head}', rows)}<p>{escape(means.note)}</p>"


FORMS = {"markdown": markdown, "latex": latex, "html": html}


def fragment(comparison: Comparison) -> str:
    """What a notebook shows of a comparison."""
    head = f"<p><b>Comparison</b> of {escape(size(comparison))}</p>"
    try:
        return head + comparison.table(form="html")
    except ValueError as error:  # the regret is not known, and was asked for
        return f"{head}<p>{escape(str(error))}</p>"


def _plain(cell: Cell, bold: str, between: str, like: str) -> str:
    text = f"{cell.mean} {between} {cell.reach}" if cell.reach else cell.mean
    return bold.format(text) if cell.best else f"{like} {text}" if cell.like_best else text


def _changed(text: str, signs: dict[str, str]) -> str:
    return "".join(signs.get(letter, letter) for letter in text)


def draw_comparison(
    comparison: Comparison,
    measure: str,
    *,
    log: bool | None,
    titles: bool,
    columns: int | None,
    width: float | str | None,
) -> Figure:
    """A panel for each world, a line with its band for each ranker."""
    require("matplotlib", extra="plot", for_="drawing a comparison")
    from rankloop import plotting

    n, narrow = len(comparison.worlds), plotting.WIDTHS["page"]
    inches = _inches(width)
    usual = 1 if inches is not None and inches < narrow else 2
    wide = min(n, usual if columns is None else whole("columns", columns, at_least=1))
    lines = {
        world: [
            (name, *mean_interval(comparison.values(world, name, measure), level=comparison.level))
            for name in comparison.rankers
        ]
        for world in comparison.worlds
    }
    if len(comparison.seeds) == 1:
        band = "One seed, so without intervals."
    else:
        band = f"Lines are means over {len(comparison.seeds)} seeds, bands their {comparison.level:.0%} intervals."
    tall = math.ceil(n / wide)
    across, down, factor = _fitted(8.6 if wide == 1 else 6.4 * wide, 4.9 if tall == 1 else 4.1 * tall, inches)
    figure, panels = plotting.canvas(
        title=size(comparison).capitalize() if titles else "",
        caption=band if titles else "",
        width=across,
        height=down,
        rows=tall,
        columns=wide,
        named_panels=n > 1,
    )
    for world, axes in zip(comparison.worlds, panels, strict=False):
        trace = comparison.traces[world, next(iter(comparison.rankers))][0]
        label = _label(measure, trace)
        _fill(axes, comparison.rounds, lines[world], measure, log=log)
        plotting.name_axes(axes, x="round", y=label, title=world if n > 1 else "")
    plotting.finish(figure)
    for axes in panels[n:]:  # after the others have found their width beside them
        axes.remove()
    plotting.shrink(figure, factor)
    return figure


def _inches(width: float | str | None) -> float | None:
    from rankloop import plotting

    if isinstance(width, str):
        return plotting.WIDTHS[one_of("width", width, tuple(plotting.WIDTHS))]
    return None if width is None else number("width", width, above=1.0)


def _fitted(width: float, height: float, inches: float | None) -> tuple[float, float, float]:
    """The size to draw in and the factor to shrink by, so that the result is so many `inches` wide."""
    from rankloop import plotting

    if inches is None:
        return width, height, 1.0
    factor = min(1.0, max(plotting.SMALLEST, inches / width))
    drawn = inches / factor
    return drawn, height * min(1.0, max(0.8, drawn / width)), factor


def draw_trace(
    trace: Trace, measure: str | None, *, log: bool | None, titles: bool, width: float | str | None
) -> Figure:
    """One run."""
    require("matplotlib", extra="plot", for_="drawing a trace")
    from rankloop import plotting

    if not len(trace.rounds):
        raise ValueError("a trace must have a recorded round to be drawn, got one without")
    known = not np.isnan(trace.regret).any()
    if measure is None:
        measure = "regret" if known else "mean_value"
    one_of("measure", measure, ("regret", "value", "mean_value"))
    if measure == "regret" and not known:
        raise ValueError("regret is not known of this trace: take measure='mean_value'")
    across, down, factor = _fitted(8.6, 4.9, _inches(width))
    figure, (axes,) = plotting.canvas(
        title=(trace.who or "A run") if titles else "",
        caption=f"{trace.n_rounds:,} rounds, seed {trace.seed}." if titles else "",
        width=across,
        height=down,
    )
    y = np.asarray(trace.columns()[measure], dtype=np.float64)
    unknown = np.full_like(y, np.nan)
    _fill(axes, trace.rounds, [("_run", y, unknown, unknown)], measure, log=log)
    plotting.name_axes(axes, x="round", y=_label(measure, trace))
    slot = axes.get_position()
    axes.set_position((slot.x0, slot.y0, slot.width - 0.04, slot.height))  # the last number on the axis
    plotting.shrink(figure, factor)
    return figure


def _fill(
    axes: Axes, rounds: NDArray[np.int64], lines: Sequence[Line], measure: str, *, log: bool | None
) -> None:
    from rankloop import plotting
    from rankloop.spacing import thin

    colours = (plotting.BLUE, plotting.ORANGE, plotting.GREEN, plotting.PURPLE, plotting.GOLD, plotting.SKY)
    log_x = rounds[-1] >= _LONG if log is None else log
    ends = [float(mean[-1]) for _, mean, _, _ in lines]
    positive = measure == "regret" and all(float(mean.min()) > 0.0 for _, mean, _, _ in lines)
    log_y = positive and (max(ends) > _APART * min(ends) if log is None else log)
    shown = thin(len(rounds), logarithmic=bool(log_x))
    for i, (name, mean, low, high) in enumerate(lines):
        band = None
        if not np.isnan(low).any():
            if log_y:  # the interval of the logarithm, by the delta method: it never reaches 0
                wide = np.exp(np.minimum((high - mean) / mean, 50.0))
                low, high = mean / wide, mean * wide
            band = (low[shown], high[shown])
        plotting.curve(
            axes,
            rounds[shown],
            mean[shown],
            label=name,
            colour=colours[i % len(colours)],
            band=band,
            dashed=i // len(colours) % 2 == 1,
            style=plotting.STYLES[i % len(plotting.STYLES)],
        )
    plotting.log_axis(axes, x=bool(log_x), y=bool(log_y))
    if not log_x:
        plotting.count_axis(axes)
    axes.set_xlim(float(rounds[shown[0]]) if log_x else 0.0, float(rounds[-1]))


def _label(measure: str, trace: Trace) -> str:
    if measure == "regret":
        return f"cumulative regret ({trace.measure})"
    return f"{trace.measure} a round" + (", mean of all so far" if measure == "mean_value" else "")


def write_tuning_report(tuning: Tuning, out: Path) -> Path:
    """Write ``runs.parquet`` and ``report.html`` into `out`, each whole or not at all.

    The same search gives the same bytes; `out` may be the folder of the search. The path of the page is returned.
    """
    write_whole(out / _RUNS, tuning_rows(tuning).write_parquet)
    written = out / "report.html"
    write_text(written, _tuning_page(tuning))
    return written


def tuning_rows(tuning: Tuning) -> pl.DataFrame:
    """A row for every run; arguments are written as Python writes them."""
    import polars as pl

    arguments = tuning.ranker.get_params()
    rows = []
    for run in tuning.runs:
        used = arguments | tuning.tried[run.setting]
        rows.append(
            {
                "setting": run.setting,
                "phase": "evaluation" if run.rung == FINAL else "search",
                "rung": None if run.rung == FINAL else run.rung,
                "seed": run.seed,
                **{name: repr(used[name]) for name in tuning.ranges},
                "value": run.value,
                "regret": None if math.isnan(run.regret) else run.regret,
                "explored": run.explored,
            }
        )
    return pl.DataFrame(rows, schema_overrides={"rung": pl.Int64, "regret": pl.Float64})


def _tuning_page(tuning: Tuning) -> str:
    from rankloop.plotting import table_of

    kind = type(tuning.ranker).__name__
    arguments = tuning.ranker.get_params()
    order = sorted(
        range(len(tuning.tried)),
        key=lambda setting: (setting != tuning.chosen, -len(tuning.values(setting)), setting),
    )
    called = {0: "as given", tuning.chosen: "chosen"}
    settings = table_of(
        [
            {
                "setting": called.get(setting, str(setting)),
                **{name: repr((arguments | tuning.tried[setting])[name]) for name in tuning.ranges},
                "runs": len(tuning.values(setting)),
                tuning.measure: fmean(tuning.values(setting)),
            }
            for setting in order
        ]
    )
    words = "".join(f"<p>{escape(line)}</p>" for line in str(tuning).splitlines())
    searched = {name: repr(each) for name, each in tuning.ranges.items()} | {"given": repr(tuning.ranker)}
    items = "".join(
        f"<dt>{escape(name)}</dt><dd><code>{escape(text)}</code></dd>" for name, text in searched.items()
    )
    body = f"""<section>
<h2>What was found</h2>
{words}
<p><code>{escape(repr(tuning.best()))}</code></p>
<h3>Settings</h3>
<p>Means over the runs of the search. They were used to choose, so the best of them is too good; the figures above are
from runs that the search had not met.</p>
{settings}
<h3>What was searched</h3>
<dl>{items}</dl>
</section>"""
    return page(f"rankloop: arguments for {kind}", f"Arguments for {kind}", body)
