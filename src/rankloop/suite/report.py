"""Scores of submissions, robustly averaged, with intervals, and the page that shows them: charts and leaderboards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import number, numbers, whole
from rankloop.extras import write_text
from rankloop.simulation.report import facts, page, save_figure, shown_figure, table
from rankloop.suite.worlds import SETTINGS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rankloop.suite.submission import Submission

RESAMPLES = 2_000
CONFIDENCE = 0.95
SEED = 16  # of the bootstrap: the same results give the same intervals
_LEAST, _MOST = -0.5, 1.08  # of the axis; scores below are drawn at its end
_EXPLAINED = """<p class="quiet">{subtitle}</p>
<p>A score is the share of the way from random lists, 0, to the best in hindsight, 1, for one capability: the
interquartile mean over seeds and worlds. Scores of one setting can be compared with each other,
those of different settings cannot. A fraction beside a score says how many of the worlds could be played; the mean
is over capabilities with all of them, and those who play the most capabilities come first. Small differences are
often chance: a cell shows its interval under the pointer.</p>
{sections}
<section><h2>Not applicable</h2>{refusals}</section>
<section><h2>What made it</h2>{provenance}</section>"""


class Score(NamedTuple):
    """An interquartile mean with its interval.

    Parameters
    ----------
    value : float
        The interquartile mean.
    low : float
        Where the interval begins.
    high : float
        Where it ends.
    """

    value: float
    low: float
    high: float


def share_of_way(value: ArrayLike, random: ArrayLike, best: ArrayLike) -> NDArray[np.float64]:
    """How far from random lists (0) to the best in hindsight (1); negative where worse than random.

    >>> share_of_way([0.5, 0.8, 0.4], 0.5, 0.8).round(3)
    array([ 0.   ,  1.   , -0.333])
    """
    below, above = np.asarray(random, np.float64), np.asarray(best, np.float64)
    if (above <= below).any():
        raise ValueError("best must be above random in every run: otherwise there is nothing to learn")
    share: NDArray[np.float64] = (np.asarray(value, np.float64) - below) / (above - below)
    return share


def interquartile_mean(values: ArrayLike) -> float:
    """The mean without the lowest and the highest quarter of the `values`, each rounded down.

    Examples
    --------
    >>> interquartile_mean([0.0, 0.9, 1.0, 8.0])
    0.95
    >>> interquartile_mean([1.0, 2.0, 6.0])
    3.0
    """
    array = numbers("values", values)
    if array.ndim != 1 or len(array) == 0:
        raise ValueError(f"values must be a list of at least one number, got shape {array.shape}")
    return float(_middle(array[None])[0])


def _middle(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    cut = rows.shape[1] // 4
    kept = np.sort(rows, axis=1)[:, cut : rows.shape[1] - cut]
    means: NDArray[np.float64] = kept.mean(axis=1)
    return means


def score(
    by_world: Mapping[str, Sequence[float]],
    *,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = SEED,
) -> Score:
    """The interquartile mean over all runs in some worlds, with a bootstrap interval.

    Seeds are drawn again within each world, so that every resample has as many runs of each world as there were.

    >>> score({"a": [0.5, 0.5], "b": [0.7, 0.7]})
    Score(value=0.6, low=0.6, high=0.6)
    """
    if not by_world:
        raise ValueError("by_world must have at least one world, got none")
    resamples = whole("resamples", resamples, at_least=1)
    level = number("confidence", confidence, above=0, below=1)
    strata = [numbers(f"by_world[{name!r}]", values) for name, values in by_world.items()]
    rng = np.random.default_rng(seed)
    drawn = [values[rng.integers(0, len(values), (resamples, len(values)))] for values in strata]
    means = _middle(np.concatenate(drawn, axis=1))
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    value = interquartile_mean(np.concatenate(strata))
    return Score(round(value, 12), round(float(low), 12), round(float(high), 12))


def capability_scores(results: pl.DataFrame) -> pl.DataFrame:
    """The score of every ranker for every capability, from `results`, the rows of one or more submissions.

    A row for each ranker, setting and capability: `score`, `low`, `high`, the `worlds` that it played `of` so many, and
    `runs`; none where nothing could be played.
    """
    played = results.filter(pl.col("score").is_not_null())
    rows = []
    offered = {key: part["world"].n_unique() for key, part in results.group_by(["setting", "capability"])}
    keys = ["ranker", "setting", "capability"]
    for (ranker, setting, capability), part in played.group_by(keys, maintain_order=True):
        by_world = {
            str(name): runs["score"].to_list()
            for (name,), runs in part.sort("world", "seed").group_by("world", maintain_order=True)
        }
        scored = score(by_world)
        rows.append(
            {
                "ranker": ranker,
                "setting": setting,
                "capability": capability,
                "score": scored.value,
                "low": scored.low,
                "high": scored.high,
                "worlds": len(by_world),
                "of": offered[setting, capability],
                "runs": part.height,
            }
        )
    floats = dict.fromkeys(("score", "low", "high"), pl.Float64)
    return pl.DataFrame(
        rows,
        schema=dict.fromkeys(keys, pl.String) | floats | dict.fromkeys(("worlds", "of", "runs"), pl.Int64),
    )


def ranked(scores: pl.DataFrame, setting: str) -> pl.DataFrame:
    """The rankers of a setting: those that play the most capabilities first, by their mean score.

    Only capabilities of which all worlds were played count.

    >>> rows = {"ranker": ["A", "B", "C"], "setting": ["clicks"] * 3, "capability": ["noise"] * 3}
    >>> rows |= {"score": [0.4, 0.6, 0.9], "worlds": [2, 2, 1], "of": [2, 2, 2]}
    >>> ranked(pl.DataFrame(rows), "clicks").rows()
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


def played_capabilities(scores: pl.DataFrame, setting: str) -> list[str]:
    """The capabilities that somebody plays in a setting, in the order of the suite."""
    return list(dict.fromkeys(scores.filter(pl.col("setting") == setting)["capability"]))


def _own_rows(part: pl.DataFrame) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["ranker"], row["capability"]): row for row in part.iter_rows(named=True)}


def draw(scores: pl.DataFrame, setting: str, *, subtitle: str) -> Figure:
    """Bars for every ranker and capability of a setting, with their intervals."""
    from rankloop import plotting

    names, capabilities = ranked(scores, setting)["ranker"].to_list(), played_capabilities(scores, setting)
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
    own = _own_rows(scores.filter(pl.col("setting") == setting))
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
            scored = own.get((name, capability))
            if scored is None:
                axes.text(0.02, row, "n/a", size=7.5, color=plotting.MUTED, va="center")
                continue
            colour = plotting.BLUE if scored["score"] >= 0.0 else plotting.ORANGE
            faded = 0.4 if scored["worlds"] < scored["of"] else 1.0
            axes.barh(row, max(scored["score"], _LEAST), height=0.66, color=colour, alpha=faded)
            ends = [min(max(scored[end], _LEAST), _MOST) for end in ("low", "high")]
            axes.plot(ends, [row, row], color=plotting.INK, linewidth=1.1)
    return figure


def _in_two_lines(text: str) -> str:
    head, _, rest = text.rpartition(" ")
    return f"{head}\n{rest}" if head else f"\n{text}"


def write_report(submissions: Sequence[Submission], out: Path) -> Path:
    """Write ``suite.html`` and a PNG of each chart into `out`, each whole or not at all.

    The same submissions give the same bytes. A ranker that is in two submissions is taken from the first that has it.
    """
    results = merged(submissions)
    scores = capability_scores(results)
    first = submissions[0].provenance
    subtitle = f"{first['version']} version of suite {first['suite']}, {first['seeds']} seeds"
    sections = []
    for setting in [one for one in SETTINGS if one in set(scores["setting"])]:
        figure = draw(scores, setting, subtitle=subtitle)
        caption, share = save_figure(figure, out / f"suite-{setting}")
        svg = out / f"suite-{setting}.svg"
        style = f' style="max-width:{80 * figure.get_figwidth():.0f}px"'
        shown = shown_figure(svg, prefix=setting, caption=caption, share=share, style=style)
        svg.unlink()  # it is in the page
        sections.append(
            f"<section><h2>{escape(SETTINGS[setting].capitalize())}</h2>{shown}"
            f"<h3>Leaderboard</h3>{leaderboard(scores, setting)}</section>"
        )
    body = _EXPLAINED.format(
        subtitle=escape(subtitle),
        sections="".join(sections),
        refusals=_refusals(results),
        provenance=_provenance(submissions),
    )
    path = out / "suite.html"
    write_text(path, page("rankloop: the suite", "What rankers can do", body))
    return path


def merged(submissions: Sequence[Submission]) -> pl.DataFrame:
    """The rows of all submissions, of each ranker from the first that has it; ValueError where they differ in kind."""
    if not submissions:
        raise ValueError("submissions must be at least one, got none")
    kinds = {tuple(str(one.provenance[key]) for key in ("suite", "version", "seeds")) for one in submissions}
    if len(kinds) > 1:
        words = "; ".join(
            f"suite {suite}, {version}, {seeds} seeds" for suite, version, seeds in sorted(kinds)
        )
        raise ValueError(f"submissions must be of one kind, got {words}")
    frames: list[pl.DataFrame] = []
    known: set[str] = set()
    for one in submissions:
        new = one.results.filter(~pl.col("ranker").is_in(list(known)))
        known |= set(new["ranker"])
        frames.append(new)
    return pl.concat(frames)


def leaderboard(scores: pl.DataFrame, setting: str) -> str:
    """A table: a row for each ranker, a column for each capability, the best of each column in bold."""
    board, capabilities = ranked(scores, setting), played_capabilities(scores, setting)
    part = scores.filter(pl.col("setting") == setting)
    own = _own_rows(part)
    whole = part.filter(pl.col("worlds") == pl.col("of"))  # who left worlds out is not the best
    best = {
        capability: whole.filter(pl.col("capability") == capability)["score"].max()
        for capability in capabilities
    }
    head = "".join(
        f'<th class="number" style="white-space:normal">{escape(name)}</th>'
        for name in ("mean", *capabilities)
    )
    lines = []
    for row in board.iter_rows(named=True):
        cells = [f"<td>{escape(row['ranker'])}</td>", f'<td class="number">{_rounded(row["mean"])}</td>']
        for capability in capabilities:
            scored = own.get((row["ranker"], capability))
            if scored is None:
                cells.append('<td class="number quiet">n/a</td>')
                continue
            text = _rounded(scored["score"])
            text = f"<b>{text}</b>" if scored["score"] == best[capability] else text
            text += f"<sup>{scored['worlds']}/{scored['of']}</sup>" if scored["worlds"] < scored["of"] else ""
            title = f"{scored['low']:.3f} to {scored['high']:.3f}, {scored['runs']} runs"
            cells.append(f'<td class="number" title="{title}">{text}</td>')
        lines.append("".join(cells))
    return table(f"<th>ranker</th>{head}", lines)


def _rounded(value: float | None) -> str:
    return "n/a" if value is None else f"{round(value, 2) + 0.0:.2f}"  # never -0.00


def _refusals(results: pl.DataFrame) -> str:
    refused = results.filter(pl.col("not_applicable").is_not_null())
    lines = []
    for (ranker, reason), part in refused.group_by(["ranker", "not_applicable"], maintain_order=True):
        cells = (str(ranker), str(reason), ", ".join(part["world"]))
        lines.append("".join(f"<td>{escape(cell)}</td>" for cell in cells))
    if not lines:
        return "<p>Every ranker played in every world.</p>"
    return table("<th>ranker</th><th>why</th><th>worlds</th>", lines)


def _provenance(submissions: Sequence[Submission]) -> str:
    parts = []
    for place, one in enumerate(submissions, start=1):
        made = one.provenance
        rows = {
            "rankers": ", ".join(made["rankers"]),
            "versions": ", ".join(f"{name} {version}" for name, version in made["versions"].items()),
            "machine": made["machine"],
            "code": made["code"],
        }
        parts.append(f"<h3>Submission {place}</h3>{facts(rows)}")
    return "".join(parts)
