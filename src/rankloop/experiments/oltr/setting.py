"""Queries, users and learners of `oltr-comparison`, and one run of it.

The setting is that of Oosterhuis and de Rijke (2018), section 5: queries come one by one, ten documents are shown, and
a simulated user clicks. Queries without a relevant document are left out: whatever is shown, their NDCG is the same.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl

from rankloop.data import Dataset
from rankloop.environments import ClickedQueries, QueryStream
from rankloop.experiments.experiment import Job, seeded
from rankloop.experiments.top_2016 import setting as letor
from rankloop.rankers import DBGD, MGD, PDGD, ListNet, PLRank, RTopKF, Uniform
from rankloop.simulation import play

PAPER = (
    "H. Oosterhuis and M. de Rijke, Differentiable unbiased online learning to rank, CIKM 2018, section 6; "
    "A. Schuth and others, Multileave gradient descent for fast online learning to rank, WSDM 2016"
)
KINDS = ("perfect", "navigational", "informational")
RANDOM, LISTNET, PL_RANK = "Random order", "ListNet, all labels", "PL-Rank, all labels"
FROM_LABELS = (LISTNET, PL_RANK)
FROM_CLICKS = ("PDGD", "MGD", "DBGD", "RTop-1F")
ROUNDS = {"mq2008": 200_000, "yahoo": 50_000, "mslr": 50_000, "synthetic": 200_000}
OWN_ROUNDS = 50_000
QUICK_ROUNDS = 5_000
_WORK = {"MGD": 10.0, PL_RANK: 7.0, "DBGD": 2.5, RANDOM: 0.2}  # time of a round, beside PDGD's
_CHECKPOINTS = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 200_000)


def make(learner: str, n_features: int) -> Any:
    """A fresh learner, each with its defaults.

    >>> make("PDGD", 3).feedback
    TopClicks(k=10)
    """
    if learner == RANDOM:
        return Uniform()
    if learner == "RTop-1F":  # the first position is looked at by everybody
        return RTopKF(n_features=n_features, k=1, examination=1.0)
    kinds: dict[str, Any] = {"PDGD": PDGD, "MGD": MGD, "DBGD": DBGD, LISTNET: ListNet, PL_RANK: PLRank}
    return kinds[learner](n_features=n_features)


@lru_cache(maxsize=20)
def parts(name: str, seed: int) -> tuple[Dataset, Dataset]:
    """What run `seed` learns on and what it is evaluated on, without queries that have no relevant document."""
    train, held_out = (_relevant(part) for part in letor.parts(name, seed))
    return train, held_out


def _relevant(queries: Dataset) -> Dataset:
    best = np.maximum.reduceat(queries.relevance, queries.offsets[:-1])
    return queries.select(np.flatnonzero(best > 0))


def job(dataset: str, kind: str, learner: str, *, rounds: int, seed: int) -> Job:
    """One run of one learner with one kind of users."""
    told = {"set": dataset, "kind": kind, "learner": learner, "rounds": rounds}
    cost = rounds * _WORK.get(learner, 1.0) * {"yahoo": 3.5, "mslr": 4.0}.get(dataset, 1.0)
    return seeded(f"{letor.label_of(dataset)}, {learner}, {kind}", seed=seed, cost=cost, **told)


def run(job: Job) -> pl.DataFrame:
    """Play a job: at every checkpoint the value of the lists shown so far, the regret, and the value held out."""
    name, learner, rounds = (job.settings[key] for key in ("set", "learner", "rounds"))
    train, held_out = parts(name, job.seed)
    ranker = make(learner, train.n_features)
    users = (
        QueryStream(train, measure="ndcg@10")
        if learner in FROM_LABELS
        else ClickedQueries(train, clicks=job.settings["kind"])
    )
    judge = QueryStream(held_out, measure="ndcg@10")
    rows, played, total, regret = [], 0, 0.0, 0.0
    for i, end in enumerate([*(t for t in _CHECKPOINTS if t < rounds), rounds]):
        trace = play(ranker, users, rounds=end - played, seed=100 * job.seed + i, points=1, progress=False)
        played, total, regret = end, total + trace.total_value, regret + trace.total_regret
        unseen = (
            letor.random_values(judge) if learner == RANDOM else judge.greedy_values(ranker.state.w)
        ).mean()
        rows.append({"round": end, "online": total / end, "regret": regret, "held out": float(unseen)})
    told = {key: [job.settings[key]] * len(rows) for key in ("set", "kind", "learner")}
    return pl.DataFrame(told).hstack(pl.DataFrame(rows))
