"""The runs of `pbm-2022-bounds`: along FTRL-PBM, in the world of the lower bound, and through all lists of a lemma."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rankloop import environments
from rankloop.environments.click_worlds import ClickWorlds
from rankloop.experiments.experiment import Job
from rankloop.experiments.pbm_2022.gaps import gaps, lemma_2
from rankloop.experiments.pbm_2022.rankers.bound_sums import SummedFTRLPBM
from rankloop.experiments.pbm_2022.setting import STOCHASTIC, played_in
from rankloop.kernels.lists import best_list
from rankloop.rankers import FTRLPBM
from rankloop.simulation import play

UPPER, LOWER, LEMMA = "upper", "lower", "lemma 2"
_COLUMNS: dict[str, pl.DataType] = {
    "part": pl.String(),
    "source": pl.String(),
    "kind": pl.String(),
    "n": pl.Int64(),
    "m": pl.Int64(),
    "round": pl.Int64(),
    "regret": pl.Float64(),
    "of bound": pl.Float64(),  # the most that regret was of the closed form, over all rounds so far
    "closed": pl.Float64(),  # Theorem 1, closed form
    "sum": pl.Float64(),  # Theorem 1, with the sum over x_t as it was
    "pseudo": pl.Float64(),  # regret of x_t
    "gaps": pl.Float64(),  # right side of Lemma 1
    "least": pl.Float64(),  # Theorem 3
    "chance": pl.Float64(),  # regret of a random list
    "ratio": pl.Float64(),  # Lemma 2: least regret over the sum of the gaps
    "lists": pl.Int64(),
}
Rows = dict[str, object]


def run(job: Job) -> pl.DataFrame:
    """The rows of any part; columns that do not apply are null."""
    rows = {UPPER: _upper, LOWER: _lower, LEMMA: _lemma}[job.settings["part"]](job)
    told = pl.DataFrame({name: value for name, value in rows.items() if value is not None})
    return told.select(
        (pl.col(name) if name in told.columns else pl.lit(None)).cast(kind).alias(name)
        for name, kind in _COLUMNS.items()
    )


def _upper(job: Job) -> Rows:
    world, people = played_in(job)
    T, phase = job.settings["rounds"], job.settings["phase"]
    n, m = people.n_items, people.n_positions
    marks = np.unique(np.geomspace(1, T, 80).round().astype(np.int64))
    ranker = SummedFTRLPBM(n_items=n, n_positions=m, marks=marks)
    trace = play(ranker, people, rounds=T, seed=job.seed, points=T, progress=False)  # every round counts
    t = trace.rounds.astype(np.float64)
    closed = 3 * m + 2 * m * np.log(t) + 6 * m * np.sqrt(n * t)  # as FTRLPBM.regret_bound
    of_bound = np.maximum.accumulate(trace.regret / closed)
    still = world.still()
    delta = gaps(still.attraction, still.examination).T
    x_sum, root_sum = ranker.kept[:, 0], ranker.kept[:, 1]
    best = [best_so_far(people, int(mark), phase=phase) for mark in marks]
    off = np.ones((len(marks), m, n))
    for place, items in enumerate(best):
        off[place, np.arange(m), items] = 0.0
    lower_terms = 3 * m + 2 * m * np.log(marks)
    is_still = world.kind == STOCHASTIC
    top = still.clicks[0][np.arange(m), np.arange(m)].sum()
    return {
        "part": UPPER,
        "source": world.source,
        "kind": world.kind,
        "n": n,
        "m": m,
        "round": marks,
        "regret": trace.regret[marks - 1],
        "of bound": of_bound[marks - 1],
        "closed": closed[marks - 1],
        "chance": world.levels().lost() * marks,
        "sum": lower_terms + 3 * (root_sum * off).sum(axis=(1, 2)),
        "pseudo": top * marks - (x_sum * still.clicks[0]).sum(axis=(1, 2)) if is_still else None,
        "gaps": 0.5 * (x_sum * delta).sum(axis=(1, 2)) if is_still else None,
    }


def best_so_far(people: ClickWorlds, rounds: int, *, phase: int) -> NDArray[np.int64]:
    """The best fixed list of the first `rounds` rounds, in a world that stays or takes turns."""
    worlds = len(people.clicks)
    done = np.arange(worlds) * phase
    counts = np.zeros(worlds)
    for start in range(0, rounds, worlds * phase):
        counts += np.clip(rounds - start - done, 0, phase)
    items = np.empty(people.n_positions, np.int64)
    best_list(np.tensordot(counts, people.clicks, axes=1), items)
    return items


def _lower(job: Job) -> Rows:
    n, m, T = (job.settings[key] for key in ("n", "m", "rounds"))
    people = environments.LowerBound(n_items=n, n_positions=m, horizon=T)
    ranker = FTRLPBM(n_items=n, n_positions=m)
    trace = play(ranker, people, rounds=T, seed=job.seed, points=1, progress=False)
    return {
        "part": LOWER,
        "n": n,
        "m": m,
        "round": T,
        "regret": trace.total_regret,
        "closed": ranker.regret_bound(T),
        "least": people.least_regret,
        "chance": T
        * m
        * people.delta
        * (1 - 1 / n),  # the one better item is missed with probability 1 - 1/n
    }


def _lemma(job: Job) -> Rows:
    n, m = (job.settings[key] for key in ("n", "m"))
    rng = np.random.default_rng([n, m])
    found = []
    for _ in range(job.settings["instances"]):
        alpha, beta = np.sort(rng.random(n))[::-1], np.sort(rng.random(m))[::-1]
        found.append(lemma_2(alpha, beta))
    return {
        "part": LEMMA,
        "n": n,
        "m": m,
        "round": len(found),
        "ratio": min(one.least_ratio for one in found),
        "lists": sum(one.lists for one in found),
    }
