"""A small experiment whose jobs can be made to fail, for the tests of the framework."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from rankloop import plotting
from rankloop.experiments.experiment import Claim, Experiment, Job
from rankloop.experiments.mutations import times


class Toy(Experiment):
    name = "toy"
    title = "A curve <that> falls & settles"
    paper = "Nobody, 2015"
    caption = "Nothing is learnt here."
    departures = ("There is no paper.",)

    def __init__(
        self, *, before: Callable[[Job], None] = lambda job: None, truth: bool = True, lack: str | None = None
    ) -> None:
        self.before = before
        self.truth = truth
        self.lack = lack
        self.ran: list[str] = []
        self._lock = threading.Lock()

    def missing(self) -> str | None:
        return self.lack

    def jobs(self, *, quick: bool) -> list[Job]:
        seeds = range(1, 4 if quick else 7)
        return [Job(name=f"seed {seed}", seed=seed, settings={"rounds": 50}, cost=seed) for seed in seeds]

    def run(self, job: Job) -> pl.DataFrame:
        with self._lock:
            self.ran.append(job.name)
        self.before(job)
        rounds = np.arange(1, 51)
        noise = np.random.default_rng(job.seed).normal(size=50)
        return pl.DataFrame({"round": rounds, "regret": 1 / np.sqrt(rounds) + 0.01 * noise})

    def claims(self, results: pl.DataFrame, *, quick: bool) -> list[Claim]:
        last = results.filter(pl.col("round") == 50)["regret"].mean()
        small, holds = times(10), bool(last < 0.2)
        told = {"measured": f"{last:.3f}", "source": "here", "mutation": small}
        return [
            Claim(name="falls", text="it falls", holds=holds, fixed=True, **told),
            Claim(
                name="true", text="it is <true>", holds=self.truth, fixed=False, **told | {"measured": "1"}
            ),
        ]

    def figures(self, results: pl.DataFrame, *, quick: bool) -> dict[str, Figure]:
        figure, (axes,) = plotting.canvas(title="It falls", caption="The line goes down. " * 8)
        mean = results.group_by("round").agg(pl.col("regret").mean()).sort("round")
        x, y = mean["round"].to_numpy(), mean["regret"].to_numpy()
        plotting.curve(axes, x, y, band=(y - 0.05, y + 0.05), label="falling\nline", colour=plotting.BLUE)
        plotting.curve(axes, x, y + 0.02, label="another", colour=plotting.ORANGE)
        plotting.guide(axes, 0.3, "the price")
        plotting.log_axis(axes)
        plotting.name_axes(axes, x="round", y="regret")
        return {"falling": plotting.finish(figure)}

    def summary(self, results: pl.DataFrame) -> pl.DataFrame:
        return results.group_by("seed").agg(pl.col("regret").mean()).sort("seed")
