"""Runs that are drawn anew: what is compared run by run stays together, and what one draw made breaks in others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from rankloop.experiments.experiment import Claim, Experiment, Job
from rankloop.experiments.mutations import times
from tests.redrawn import failures, redrawn

ROWS = pl.DataFrame(
    [
        {"job": f"{who}, seed {seed}", "seed": seed, "who": who, "round": t, "regret": 10.0 * seed + lead + t}
        for who, lead in (("A", 0.0), ("B", 1.0))
        for seed in range(1, 9)
        for t in (1, 2)
    ]
)


class Pairs(Experiment):
    """Two claims on `ROWS`: B loses more than A on the same users, and all users lose 47 together."""

    name, title, paper, caption = "pairs", "Pairs", "None", "None."

    def jobs(self, *, quick: bool) -> list[Job]:
        return []

    def run(self, job: Job) -> pl.DataFrame:
        raise NotImplementedError

    def claims(self, results: pl.DataFrame, *, quick: bool) -> Iterator[Claim]:
        by_seed = {who: rows.sort("seed", "round")["regret"] for (who,), rows in results.group_by("who")}
        ahead = bool((by_seed["B"] - by_seed["A"] == 1).all())
        mean = float(results["regret"].mean())  # type: ignore[arg-type]
        for name, holds in (("ahead", ahead), ("mean", mean == 47.0)):
            yield Claim(name=name, text=name, holds=holds, measured="", source="", mutation=times(2))

    def figures(self, results: pl.DataFrame, *, quick: bool) -> dict[str, Figure]:
        return {}


def test_runs_are_drawn_whole_and_paired() -> None:
    drawn = redrawn(ROWS, np.random.default_rng(3))
    assert drawn.select("job", "seed", "who", "round").equals(ROWS.select("job", "seed", "who", "round"))
    regrets = drawn["regret"].to_numpy().reshape(2, 8, 2)
    assert (regrets[..., 1] - regrets[..., 0] == 1).all()
    assert (regrets[1] - regrets[0] == 1).all()
    assert set(regrets[0, :, 0]) < set(ROWS["regret"])


def test_what_one_draw_made_breaks_in_others() -> None:
    shares = {claim.name: (claim.holds, share) for claim, share in failures(Pairs(), ROWS, draws=50)}
    assert shares["ahead"] == (True, 0.0)
    assert shares["mean"][0]
    assert shares["mean"][1] > 0.5
