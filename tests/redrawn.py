"""How often each claim of a full run would fail if its runs were drawn anew: `python -m tests.redrawn results`.

Runs are drawn with replacement from those that were played, the same places in every group of them, so that what is
compared run by run stays together, and the claims are judged again. What holds in one draw alone shows here. A claim
that was worded after a run, holds, and fails in more than one draw of a hundred, has too few runs or says too much; the
exit code is then 1. Theorems and references are told, too: their draws are centred where this one happens to lie.
Bounds that every single run must keep cannot fail here: nothing beyond the runs that were played is drawn. The shares
are kept beside the results, as redrawn.json.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from rankloop import experiments
from rankloop.experiments.experiment import Claim, Experiment

DRAWS, RARE = 200, 0.01
_RUN = re.compile(r"\b(seed|part) \d+\b")


def redrawn(results: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """The rows of as many runs, drawn with replacement within each group of jobs that differ in their seed alone."""
    played = results.select("job", "seed").unique(maintain_order=True)
    groups: dict[str, list[tuple[str, int]]] = {}
    for job, seed in played.rows():
        groups.setdefault(_RUN.sub("", job), []).append((job, seed))
    places = rng.random(max(map(len, groups.values())))
    named = [
        (own[int(place * len(own))][0], *name)
        for own in groups.values()
        for name, place in zip(own, places, strict=False)
    ]
    drawn = pl.DataFrame(named, schema=["job", "as job", "as seed"], orient="row")
    rows = drawn.join(results.drop("seed"), on="job", maintain_order="left")
    return rows.drop("job").rename({"as job": "job", "as seed": "seed"}).select(results.columns)


def failures(
    experiment: Experiment, results: pl.DataFrame, *, draws: int = DRAWS
) -> Iterator[tuple[Claim, float]]:
    """Each claim, and the share of draws in which it fails."""
    rng = np.random.default_rng(1)
    played = {claim.name: claim for claim in experiment.claims(results, quick=False)}
    failed = dict.fromkeys(played, 0)
    for _ in range(draws):
        for claim in experiment.claims(redrawn(results, rng), quick=False):
            failed[claim.name] += not claim.holds
    yield from ((claim, failed[name] / draws) for name, claim in played.items())


def main(folder: str, *names: str) -> int:
    """Judge all experiments in `folder`, or those of these names."""
    weak = 0
    for name in names or experiments.names():
        results = Path(folder, name, "results.parquet")
        if not results.exists() or json.loads(results.with_name("claims.json").read_text())["quick"]:
            print(f"{name}: not there in full")
            continue
        shares = {}
        for claim, share in failures(experiments.get(name), pl.read_parquet(results)):
            shares[claim.name] = share
            weak += claim.broken or (share > RARE and not claim.fixed)
            print(f"{claim.verdict:<14}{share:7.1%}  {name}:{claim.name}, {claim.worded}", flush=True)
        results.with_name("redrawn.json").write_text(json.dumps(shares, indent=2) + "\n")
    return int(weak > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
