"""Who wins where: rankers that learn from clicks, over a grid of gaps, phases, numbers of items and of positions.

Neighbouring items are a gap apart, around one half; position k is examined with probability 1 / k; after each phase
the order of the items is reversed. All rankers play the same seeds. A cell is decided where the 95% interval of the
lead of the best ranker over the second, run by run, is above 0.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from rankloop.arguments import whole
from rankloop.environments import Periodic, PositionBased
from rankloop.extras import counted, local_folder, write_text
from rankloop.simulation.compare import mean_interval
from rankloop.simulation.executors import Executor
from rankloop.simulation.play import Run, begin
from rankloop.simulation.report import facts, page, save_figure, shown_figure
from rankloop.simulation.runs import Job, Kept, Plays, run_jobs
from rankloop.simulation.trace import Trace, provenance, read_frame, write_frame
from rankloop.suite.submission import Entry, NotApplicable
from rankloop.suite.worlds import World

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ENTRIES = ("ClickMix", "FTRLPBM", "PBMTS", "PBMPIE", "TopRank", "GRAB", "MW", "CascadeKLUCB")


class Grid(NamedTuple):
    """The cells of an atlas, and how each is played. A phase as long as the run never ends."""

    gaps: tuple[float, ...]
    phases: tuple[int, ...]
    sizes: tuple[tuple[int, int], ...]  # items and positions
    rounds: int
    seeds: int

    def cells(self) -> Iterator[Cell]:
        """All of them, but for gaps that so many items leave no room for."""
        phases = sorted({min(phase, self.rounds) for phase in self.phases})
        for (n_items, n_positions), phase, gap in itertools.product(self.sizes, phases, self.gaps):
            if gap * (n_items - 1) <= _WIDEST:
                yield Cell(n_items, n_positions, phase, gap)


class Cell(NamedTuple):
    """A place on the maps."""

    n_items: int
    n_positions: int
    phase: int
    gap: float

    def make(self) -> Periodic:
        """Its users. Items are numbered so that nobody wins by showing the first."""
        attraction = 0.5 + self.gap * (np.arange(self.n_items)[::-1] - (self.n_items - 1) / 2)
        attraction = attraction[np.random.default_rng(self.n_items).permutation(self.n_items)]
        examination = 1 / np.arange(1, self.n_positions + 1)
        turned = [
            PositionBased(attraction=each, examination=examination) for each in (attraction, 1 - attraction)
        ]
        return Periodic(turned, phase=self.phase)


_WIDEST = 0.9  # between the best item and the worst
COARSE = Grid((0.01, 0.02, 0.04, 0.08), (1_000, 5_000, 20_000), ((5, 3), (10, 5)), 20_000, 8)
FULL = Grid(
    tuple(round(float(gap), 5) for gap in np.geomspace(0.002, 0.2, 16)),
    tuple(int(phase) for phase in np.geomspace(500, 100_000, 12).round(-2)),
    ((5, 3), (10, 3), (10, 5), (20, 5)),
    100_000,
    24,
)


class _Part(NamedTuple):
    entry: Entry
    cell: Cell
    rounds: int
    seeds: int

    def runs(self) -> list[Run]:
        world = World("", "", "", lambda rounds: self.cell.make())
        ranker, users = self.entry.make(world, rounds=self.rounds), self.cell.make()
        return [
            begin(ranker.clone(), users.clone(), self.rounds, seed, 1, None) for seed in range(self.seeds)
        ]

    def rows(self, traces: list[Trace]) -> pl.DataFrame:
        return pl.DataFrame({"value": [trace.mean_value for trace in traces]})


_PLAYS = Plays(_Part.runs, _Part.rows)


class Atlas(NamedTuple):
    """The maps: a row for each cell and ranker, and what made them.

    Columns: the cell; `rounds`, `seeds`, `ranker` and the `version` of its algorithm; `value`, the mean clicks of a
    round, and its `standard_error`; those of `random` lists and of the `best` list of each phase; `regret` against the
    latter; `lead` over the best of the others, run by run, and its `lead_error`; whether it `won`, and whether the cell
    is `decided`.
    """

    rows: pl.DataFrame
    provenance: dict[str, Any]


def draw_atlas(
    entries: Sequence[Entry],
    grid: Grid = COARSE,
    *,
    folder: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    executor: str | Executor = "threads",
    progress: bool | None = None,
) -> Atlas:
    """Play every ranker in every cell of a `grid`.

    `workers`, `executor` and `progress` are as for `simulation.play_many`; `folder` keeps the runs that have ended, and
    the same call goes on from there. ValueError where a ranker cannot play in a cell.
    """
    labels = [entry.label for entry in entries]
    if len(labels) < 2 or len(set(labels)) < len(labels):
        raise ValueError(f"entries must be at least two rankers, and none twice, got {labels}")
    grid = grid._replace(
        rounds=whole("rounds", grid.rounds, at_least=1), seeds=whole("seeds", grid.seeds, at_least=2)
    )
    cells = list(grid.cells())
    parts = [_Part(entry, cell, grid.rounds, grid.seeds) for cell in cells for entry in entries]
    versions: dict[str, int] = {}
    for part in parts[: len(entries)]:
        try:
            (run,) = part._replace(seeds=1).runs()
        except NotApplicable as reason:
            raise ValueError(f"{part.entry.label} cannot play: {reason}") from None
        versions[part.entry.label] = getattr(run.ranker, "algorithm_version", 1)
    kept = Kept(None if folder is None else local_folder(folder) / "runs")
    jobs = [_job(part, versions[part.entry.label]) for part in parts]
    finished = run_jobs(
        _PLAYS, jobs, kept=kept, executor=executor, workers=workers, progress=progress, label="atlas"
    )
    values = np.array([each.rows["value"].to_numpy() for each in finished]).reshape(
        len(cells), len(entries), -1
    )
    rows = [
        row
        for cell, played in zip(cells, values, strict=True)
        for row in _judged(cell, grid, versions, played)
    ]
    made = {"rankers": {entry.label: entry.described() for entry in entries}, "grid": grid._asdict()}
    return Atlas(pl.DataFrame(rows), provenance(made))


def _job(part: _Part, version: int) -> Job:
    text = repr((part.entry.described(), version, part.cell, part.rounds, part.seeds))
    name = f"{part.entry.label} in {part.cell}"
    return Job(name, hashlib.sha256(text.encode()).hexdigest()[:16], part, float(part.rounds * part.seeds))


def _judged(cell: Cell, grid: Grid, versions: dict[str, int], played: Any) -> Iterator[dict[str, Any]]:
    """The rows of a cell, from the rankers with their versions and the values of their runs: rankers x seeds."""
    world, n = cell.make(), played.shape[1]
    best = float(world.ideal(grid.rounds)) / grid.rounds
    random = float(world.clicks[0].mean(axis=1).sum() + world.clicks[1].mean(axis=1).sum()) / 2
    means = played.mean(axis=1)
    first, second = np.argsort(-means, kind="stable")[:2]
    decided = float(mean_interval(played[first] - played[second])[1]) > 0.0
    for number, (label, version) in enumerate(versions.items()):
        lead = played[number] - played[second if number == first else first]
        yield cell._asdict() | {
            "rounds": grid.rounds,
            "seeds": n,
            "ranker": label,
            "version": version,
            "value": float(means[number]),
            "standard_error": float(played[number].std(ddof=1)) / n**0.5,
            "random": random,
            "best": best,
            "regret": (best - float(means[number])) * grid.rounds,
            "lead": float(lead.mean()),
            "lead_error": float(lead.std(ddof=1)) / n**0.5,
            "won": number == int(first),
            "decided": decided,
        }


def write_atlas(atlas: Atlas, out: Path) -> Path:
    """Write ``atlas.parquet``, a PNG of each map and ``atlas.html`` into `out`; the path of the page."""
    write_frame(out / "atlas.parquet", atlas.rows, {"kind": "atlas"} | atlas.provenance)
    sections = []
    for (n_items, n_positions), rows in atlas.rows.group_by("n_items", "n_positions", maintain_order=True):
        stem = out / f"atlas-{n_items}-{n_positions}"
        caption, share = save_figure(maps(rows), stem)
        shown = shown_figure(stem.with_suffix(".svg"), prefix=stem.name, caption=caption, share=share)
        stem.with_suffix(".svg").unlink()  # it is in the page
        sections.append(f"<section><h2>{_size(rows)}</h2>{shown}</section>")
    won = atlas.rows.filter("won")
    undecided = len(won) - int(won["decided"].sum())
    grid = atlas.provenance["grid"]
    told = {
        "Cells": f"{len(won):,}, {undecided:,} of them not decided",
        "A cell": f"{counted(grid['seeds'], 'seed')} of {counted(grid['rounds'], 'round')} for each ranker",
        "Rankers": ", ".join(atlas.provenance["rankers"]),
        "Machine": str(atlas.provenance["machine"]),
        "Versions": str(atlas.provenance["versions"]),
    }
    body = f"<p>{escape((__doc__ or '').strip())}</p>{facts(told)}{''.join(sections)}"
    path = out / "atlas.html"
    write_text(path, page("rankloop: the atlas", "Who wins where", body))
    return path


def read_atlas(path: str | os.PathLike[str]) -> Atlas:
    """The atlas in the Parquet file at `path`; ValueError where it is none."""
    return Atlas(*read_frame(path, kind="atlas"))


def maps(rows: pl.DataFrame) -> Figure:
    """One number of items and positions: who wins, and how much of the way from random lists each ranker goes."""
    from rankloop import plotting

    labels = rows["ranker"].unique(maintain_order=True).to_list()
    columns = 3
    lines = -(-(len(labels) + 1) // columns)
    figure, panels = plotting.canvas(
        title=f"Who wins where: {_size(rows)}",
        subtitle=f"{rows['rounds'][0]:,} rounds, {rows['seeds'][0]} seeds; never: the order stays",
        caption=(
            "First map: the ranker with the most clicks; pale and dotted where its lead is within what chance does. "
            "Others: the share of the way from random lists (white) to the best list of each phase (dark)."
        ),
        width=12.0,
        height=0.9 + 3.6 * lines,
        rows=lines,
        columns=columns,
        named_panels=True,
    )
    won = rows.filter("won").with_columns(
        share=pl.Series([labels.index(one) for one in rows.filter("won")["ranker"]])
    )
    _winners(panels[0], won, labels)
    for axes, label in zip(panels[1:], labels, strict=False):
        share = (pl.col("value") - pl.col("random")) / (pl.col("best") - pl.col("random"))
        own = rows.filter(pl.col("ranker") == label).with_columns(share=share)
        axes.imshow(_on_grid(own), origin="lower", aspect="auto", cmap="Blues", vmin=0.0, vmax=1.0)
        _name(axes, rows, label)
    for axes in panels[len(labels) + 1 :]:
        axes.set_visible(False)
    return figure


def _winners(axes: Axes, won: pl.DataFrame, labels: list[str]) -> None:
    from matplotlib.colors import ListedColormap

    from rankloop import plotting

    colours = [plotting.BLUE, plotting.SKY, plotting.GREEN, plotting.PURPLE, plotting.GOLD, plotting.ORANGE]
    colours = [*colours, plotting.INK, plotting.MUTED] * -(-len(labels) // 8)
    decided = _on_grid(won.with_columns(share=pl.col("decided").cast(pl.Float64)))
    axes.imshow(
        _on_grid(won),
        origin="lower",
        aspect="auto",
        cmap=ListedColormap(colours[: len(labels)]),
        vmin=-0.5,
        vmax=len(labels) - 0.5,
        alpha=np.where(decided > 0, 1.0, 0.35),
    )
    y, x = np.nonzero(decided == 0)
    axes.plot(x, y, ".", color=plotting.INK, markersize=3)
    for number, label in enumerate(labels):
        if label in set(won["ranker"]):
            axes.plot([], [], "s", color=colours[number], label=label)
    figure = axes.figure
    figure.legend(loc="upper right", ncols=len(labels), fontsize=10, frameon=False)
    _name(axes, won, "Most clicks")


def _on_grid(rows: pl.DataFrame) -> Any:
    """The column `share` as phases x gaps; NaN where there is no cell."""
    gaps, phases = (sorted(set(rows[name])) for name in ("gap", "phase"))
    grid = np.full((len(phases), len(gaps)), np.nan)
    for gap, phase, share in rows.select("gap", "phase", "share").rows():
        grid[phases.index(phase), gaps.index(gap)] = share
    return grid


def _name(axes: Axes, rows: pl.DataFrame, title: str) -> None:
    from rankloop import plotting

    gaps, phases = (sorted(set(rows[name])) for name in ("gap", "phase"))
    every = [-(-len(one) // 5) for one in (gaps, phases)]
    never = rows["rounds"][0]
    axes.set_xticks(range(0, len(gaps), every[0]), [f"{gap:.2g}" for gap in gaps[:: every[0]]])
    names = ["never" if phase >= never else f"{phase:,}" for phase in phases]
    places = sorted({*range(0, len(phases) - 1, every[1]), len(phases) - 1})
    axes.set_yticks(places, [names[place] for place in places])
    axes.tick_params(labelsize=9)
    axes.grid(False)
    plotting.name_axes(axes, x="gap between neighbours", y="rounds until the order is reversed", title=title)


def _size(rows: pl.DataFrame) -> str:
    return f"{rows['n_items'][0]} items, {counted(rows['n_positions'][0], 'position')}"
