"""Theorem 5.2 of the 2016 paper: surrogates calibrated for NDCG cannot be learnt from the top."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from rankloop.base import Ranker
from rankloop.experiments import runs
from rankloop.experiments.experiment import Claim, Experiment, Job, seeded
from rankloop.experiments.mutations import instead
from rankloop.experiments.top_2016.setting import PAPER
from rankloop.experiments.top_2016.worlds import PAIRS, Pair
from rankloop.plotting import figures
from rankloop.rankers import CalibratedSquared, RTopKF, Uniform
from rankloop.simulation import play

FULL, RANDOM = "calibrated, full information", "random order"
_LEARNERS = {
    "squared": figures.ORANGE,
    "kl": figures.BLUE,
    "ranksvm": figures.PURPLE,
    "smooth_dcg": figures.GOLD,
    RANDOM: figures.MUTED,
    FULL: figures.GREEN,
}
_LOOKS = 25
_ROUNDS = (1_000, 10_000, 100_000, 1_000_000)


class TopImpossible(Experiment):
    """Two pairs of worlds, every learner of the package that observes the top, and one with full information."""

    name = "top-2016-impossible"
    title = "NDCG cannot be learnt from the top by any algorithm"
    version = 2
    paper = PAPER + ", Theorem 5.2 and Table 1"
    caption = (
        "Two worlds whose top labels are distributed alike, but whose best orders differ. A learner that observes "
        "the top behaves alike in both and loses in at least one of them in every round. The first pair is the "
        "paper's (three documents, the top label); the second is ours (four documents, the top two labels)."
    )
    departures = (
        (
            "The proof says that a learner plays the best scores of one world or of the other. It may also play a "
            "compromise; what is forced is the loss of the best compromise (erratum B16)."
        ),
        "The paper leaves k of 2 and more open. For k up to m - 2 it is as hopeless: the second pair (erratum B17).",
    )

    def jobs(self, *, quick: bool) -> list[Job]:
        def job(pair: str, learner: str, world: int, T: int, seed: int) -> Job:
            told = {"pair": pair, "world": world, "learner": learner, "rounds": T}
            return seeded(f"{learner}, {pair}, world {world}, T={T}", seed=seed, cost=T, **told)

        return [
            job(pair, learner, world, T, seed)
            for pair, made in PAIRS.items()
            for learner in _LEARNERS
            if learner != "ranksvm" or made.k >= 2
            for world in (0, 1)
            for T in (_ROUNDS[:3] if quick else _ROUNDS)
            for seed in range(1, 4 if quick else 6)
        ]

    def run(self, job: Job) -> pl.DataFrame:
        made, world, T = PAIRS[job.settings["pair"]], job.settings["world"], job.settings["rounds"]
        ranker = _make(job.settings["learner"], made.n_items, made.k)
        people, played, value, losses = made.stream(world), [0], 0.0, [_excess(ranker, made, world)]
        stops = np.unique(np.geomspace(1, T, _LOOKS).round().astype(int))
        for piece, stop in enumerate(stops):
            rounds, seed = int(stop) - played[-1], job.seed * 1_000 + piece
            value += (
                rounds * play(ranker, people, rounds=rounds, seed=seed, points=1, progress=False).mean_value
            )
            played.append(int(stop))
            losses.append(_excess(ranker, made, world))
        surrogate = None if losses[0] is None else float(np.trapezoid(losses, played) / T)  # type: ignore[arg-type]
        told = {"regret": float(made.ndcg(world).max() - value / T), "surrogate": surrogate}
        return pl.DataFrame([dict(job.settings) | told], schema_overrides={"surrogate": pl.Float64})

    def claims(self, results: pl.DataFrame, *, quick: bool) -> Iterator[Claim]:
        T = max(results["rounds"].to_list())
        for pair, made in PAIRS.items():
            for column, forced, loss in (
                ("surrogate", made.forced_squared(), "calibrated squared loss"),
                ("regret", made.forced_ndcg(), "NDCG"),
            ):
                levels = _levels(results, pair, T, column)
                full, _ = levels.pop(FULL)
                least = min(levels, key=lambda learner: levels[learner][0])
                paper = column == "surrogate" and pair == "top-1"
                yield Claim(
                    name=f"forced-{loss.split()[0].lower()}-{pair}",
                    text=f"{pair} feedback: every learner that observes the top loses at least what is forced, "
                    f"{forced:.5f} of {loss} a round on average over the two worlds, less three standard errors for "
                    "chance",
                    holds=all(mean >= forced - 3 * error for mean, error in levels.values()),
                    measured=f"least after {T:,} rounds: {least}, {levels[least][0]:.5f} ± {levels[least][1]:.5f}",
                    source="Theorem 5.2; erratum B16" if paper else "Ours; erratum B17",
                    fixed=True,
                    mutation=instead(FULL, "squared", pair=pair),
                )
                start, _ = _levels(results, pair, _ROUNDS[0], column)[FULL]
                yield Claim(
                    name=f"full-{loss.split()[0].lower()}-{pair}",
                    text=f"{pair} worlds, full information: {loss} a round falls below half of what it was at T = "
                    f"{_ROUNDS[0]:,}, and below what the top forces",
                    holds=full < min(0.5 * start, forced),
                    measured=f"{start:.5f} a round at T = {_ROUNDS[0]:,}, {full:.5f} at {T:,}",
                    source="Section 5",
                    fixed=False,
                    mutation=instead("squared", FULL, pair=pair),
                )

    def figures(self, results: pl.DataFrame, *, quick: bool) -> dict[str, Figure]:
        last, told = max(results["rounds"].to_list()), []
        for pair, made in PAIRS.items():
            ends = {name: level for name, (level, _) in _levels(results, pair, last, "regret").items()}
            full, least = ends.pop(FULL), min(ends.values())
            top, every = (round(level / made.forced_ndcg(), 2) + 0.0 for level in (least, full))
            told.append(f"{top:.2f} and {every:.2f} in the {pair} worlds")
        figure, panels = figures.canvas(
            title="Two worlds that the top cannot tell apart",
            subtitle="NDCG regret per round at T, averaged over the two worlds and all runs",
            caption="Dotted: what the best compromise between the two worlds loses, however long it learns. What the "
            "best learner that observes only the top loses after "
            f"{last:,} rounds, and the same linear ranker with every label revealed (green), as multiples of that: "
            f"{'; '.join(told)}.",
            height=8.6,
            rows=2,
        )
        T = sorted(results["rounds"].unique().to_list())
        for axes, (pair, made) in zip(panels, PAIRS.items(), strict=True):
            for learner in _levels(results, pair, T[0], "regret"):
                levels = [max(runs.level(results, pair=pair, learner=learner, rounds=t)[0], 1e-5) for t in T]
                figures.curve(axes, T, levels, label=learner, colour=_LEARNERS[learner], points=True)
            figures.log_axis(axes, y=False)
            axes.set_ylim(0, None)
            figures.guide(axes, made.forced_ndcg(), f"forced: {made.forced_ndcg():.4f}")
            count = "three documents, the top label" if made.k == 1 else "four documents, the top two labels"
            figures.name_axes(axes, x="rounds T", y=f"{count}: NDCG regret per round")
        return {"impossible": figures.finish(figure)}

    def summary(self, results: pl.DataFrame) -> pl.DataFrame:
        return runs.pivot(results, index=["pair", "learner"])


def _levels(results: pl.DataFrame, pair: str, rounds: int, column: str) -> dict[str, tuple[float, float]]:
    """By learner, what it loses a round at `rounds`, and the standard error; without those who have no scores."""
    rows = runs.chosen(results, pair=pair, rounds=rounds).filter(pl.col(column).is_not_null())
    return {
        name: runs.level(rows, column, learner=name) for name in _LEARNERS if name in set(rows["learner"])
    }


def _excess(ranker: Ranker, made: Pair, world: int) -> float | None:
    """Calibrated squared loss of the ranker's scores above the least in this world; features are unit vectors."""
    if isinstance(ranker, Uniform):
        return None
    apart = ranker.state.w - made.expected_share(world)
    return float(apart @ apart)


def _make(learner: str, n_items: int, k: int) -> Ranker:
    if learner == RANDOM:
        return Uniform()
    if learner == FULL:
        return CalibratedSquared(n_features=n_items, learning_rate=(0.1, 0.5))
    return RTopKF(
        n_features=n_items,
        surrogate=learner,
        k=k,
        estimator="horvitz-thompson",
        max_grade=1,
        learning_rate=(0.5, 2 / 3),
        exploration=(1.0, 1 / 3),
    )
