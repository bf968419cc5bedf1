"""What QueryMemory and PDGD learn where queries repeat: by frequency of the query, and for queries never seen.

`.venv/bin/python docs/images/query_memory.py` plays all runs, keeps them in query_memory.json, prints the table of the
page and says which claims hold; `docs/images/make.py query-memory.png` draws them. Claims were fixed before the run.
"""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from rankloop import plotting
from rankloop.data import Dataset
from rankloop.environments import ClickedQueries, QueryStream
from rankloop.experiments.oltr_comparison import parts
from rankloop.experiments.top_2016.setting import label_of
from rankloop.features import QueryRows
from rankloop.rankers import PDGD, QueryMemory
from rankloop.simulation import play

PLAYED = Path(__file__).with_suffix(".json")
SETS = ("mq2008", "yahoo")
# The constants of QueryMemory were chosen on other frequencies and users of the same queries.
SEEDS = range(11, 21)
CHECKPOINTS = (300, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000)
HEAD, TORSO, TAIL, UNSEEN, SHOWN = "head", "torso", "tail", "unseen", "shown"
PARTS = {
    HEAD: "most frequent tenth",
    TORSO: "the next four tenths",
    TAIL: "the less frequent half",
    UNSEEN: "never seen",
}
RANKERS = ("QueryMemory", "PDGD")
COLOURS = dict(zip(RANKERS, (plotting.BLUE, plotting.ORANGE), strict=True))

Runs = dict[
    str, dict[str, list[dict[str, list[float]]]]
]  # by set and ranker: of each run, by part, at checkpoints


def by_frequency(name: str, seed: int) -> tuple[Dataset, Dataset]:
    """What run `seed` learns on, the most frequent query first, and what it is evaluated on as never seen."""
    train, held_out = parts(name, seed)
    return train.select(np.random.default_rng([7, seed]).permutation(train.n_queries)), held_out


def values(ranker: Any, queries: QueryStream, *, known: bool) -> NDArray[np.float64]:
    """NDCG@10 of the order that the ranker holds best, for each query."""
    if not (known and ranker.takes_queries):
        return queries.greedy_values(ranker.state.w)
    offsets, found = queries.params.offsets, []
    for query, (start, stop) in enumerate(itertools.pairwise(offsets)):
        request = QueryRows(queries.params.features[start:stop], np.arange(start, stop), query)
        order = ranker.current(request)[: queries.params.cutoff]
        gains = queries.params.gains[start + order]
        found.append(float(gains @ queries.params.discount[: len(gains)]))
    return np.array(found)


def run(name: str, kind: str, seed: int) -> dict[str, list[float]]:
    """One run: at each checkpoint what was shown since the one before, and what is held best."""
    train, held_out = by_frequency(name, seed)
    ranker: Any = {"QueryMemory": QueryMemory, "PDGD": PDGD}[kind](n_features=train.n_features)
    users = ClickedQueries(train, clicks="navigational", frequency="zipf", named=ranker.takes_queries)
    judge, n = QueryStream(held_out, measure="ndcg@10"), train.n_queries
    ends = {HEAD: slice(0, n // 10), TORSO: slice(n // 10, n // 2), TAIL: slice(n // 2, n)}
    found: dict[str, list[float]] = {part: [] for part in (*PARTS, SHOWN)}
    played = 0
    for i, end in enumerate(CHECKPOINTS):
        trace = play(ranker, users, rounds=end - played, seed=100 * seed + i, points=1, progress=False)
        found[SHOWN].append(trace.total_value / (end - played))
        of_queries = values(ranker, users, known=True)
        for part, which in ends.items():
            found[part].append(float(of_queries[which].mean()))
        found[UNSEEN].append(float(values(ranker, judge, known=False).mean()))
        played = end
    return found


def read() -> Runs:
    """What was played."""
    runs: Runs = json.loads(PLAYED.read_text())
    return runs


def means(runs: Runs, name: str, kind: str, part: str) -> NDArray[np.float64]:
    """Over runs, at each checkpoint."""
    return np.mean([one[part] for one in runs[name][kind]], axis=0)


def claims(runs: Runs) -> list[tuple[str, bool, str]]:
    """What was claimed before the run: in words, whether it holds, and what was measured."""
    found = []
    for name in SETS:
        head = means(runs, name, "QueryMemory", HEAD)[-1]
        text = "the most frequent tenth of the queries has .95 of the best order's NDCG@10 at least"
        found.append((f"{label_of(name)}: {text}", bool(head >= 0.95), f"{head:.3f}"))
        mine, theirs = (means(runs, name, kind, UNSEEN)[-1] for kind in RANKERS)
        text = "for queries never seen it is not below PDGD by more than .01"
        found.append(
            (f"{label_of(name)}: {text}", bool(mine >= theirs - 0.01), f"{mine:.3f} against {theirs:.3f}")
        )
        late = [i for i, end in enumerate(CHECKPOINTS) if end > 5_000]
        leads = (means(runs, name, "QueryMemory", SHOWN) - means(runs, name, "PDGD", SHOWN))[late]
        text = "from 5,000 impressions on, lists as shown are never below PDGD's in the mean"
        found.append(
            (f"{label_of(name)}: {text}", bool((leads >= 0).all()), f"by {leads.min():+.3f} at the least")
        )
    return found


def table(runs: Runs) -> str:
    """NDCG@10 after all impressions, mean and standard error over runs."""
    lines = [
        f"| data set | ranker | {' | '.join(PARTS.values())} | lists as shown, first 1,000 | last 100,000 |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name in SETS:
        for kind in RANKERS:
            cells = []
            for part, at in [*((part, -1) for part in PARTS), (SHOWN, 1), (SHOWN, -1)]:
                ends = np.array([one[part] for one in runs[name][kind]])
                if at == 1:  # the first two checkpoints together
                    ends = (ends[:, :2] @ np.diff([0, *CHECKPOINTS[:2]]) / CHECKPOINTS[1])[:, None]
                cells.append(f"{ends[:, -1].mean():.3f} ± {ends[:, -1].std(ddof=1) / len(ends) ** 0.5:.3f}")
            lines.append(f"| {label_of(name)} | {kind} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw() -> Figure:
    """A row for each data set, a panel for each part of the queries."""
    runs = read()
    figure, panels = plotting.canvas(
        title="Frequent queries by their own clicks, new ones by features",
        subtitle="NDCG@10 of the order that is held best, by how frequent the query is. Mean and range of "
        f"{len(SEEDS)} runs.",
        caption="Queries come with a frequency in proportion to 1 / rank, ten documents are shown, and navigational "
        "users click. Never seen: the fifth of the queries that was held out.",
        width=16.0,
        height=7.6,
        rows=len(SETS),
        columns=len(PARTS),
    )
    places = ((name, part) for name in SETS for part in PARTS)
    for axes, (name, part) in zip(panels, places, strict=True):
        _draw_panel(axes, runs, name, part)
    return plotting.finish(figure)


def _draw_panel(axes: Axes, runs: Runs, name: str, part: str) -> None:
    for kind in RANKERS:
        ends = np.array([one[part] for one in runs[name][kind]])
        band = ends.min(axis=0), ends.max(axis=0)
        plotting.curve(axes, CHECKPOINTS, ends.mean(axis=0), label=kind, colour=COLOURS[kind], band=band)
    axes.set_ylim(0.5, 1.0)
    plotting.log_axis(axes)
    axes.set_xticks([1_000, 100_000])
    plotting.name_axes(axes, x="impressions", y=f"{label_of(name)}, {PARTS[part]}")


if __name__ == "__main__":
    PLAYED.write_text(
        json.dumps(
            {name: {kind: [run(name, kind, seed) for seed in SEEDS] for kind in RANKERS} for name in SETS},
            indent=1,
        )
    )
    print(table(read()))
    for words, holds, measured in claims(read()):
        print(f"{'holds' if holds else 'DOES NOT HOLD'}: {words} ({measured})")
