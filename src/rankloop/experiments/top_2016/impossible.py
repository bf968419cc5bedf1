"""Theorem 5.2 of the 2016 paper: surrogates calibrated for NDCG cannot be learnt from the top (erratum B17).

A world is a distribution over the labels of a few documents. In both worlds of a pair the first k labels, wherever they
are looked at, come out alike; but different orders are best for NDCG, and different scores for every surrogate that is
calibrated for it. The documents' features are unit vectors, so a linear ranker can show any order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from numpy.typing import NDArray

from rankloop import measures, plotting, surrogates
from rankloop.base import Ranker
from rankloop.data import Dataset
from rankloop.environments import QueryStream
from rankloop.experiments import runs
from rankloop.experiments.experiment import Claim, Experiment, Job, seeded
from rankloop.experiments.mutations import instead
from rankloop.experiments.top_2016.setting import PAPER
from rankloop.experiments.words import points
from rankloop.rankers import CalibratedSquared, RTopKF, Uniform
from rankloop.simulation import play

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Pair:
    """Two worlds over the same label vectors; `weights[world]` are whole numbers, out of their sum."""

    name: str
    k: int
    labels: NDArray[np.int64]
    weights: NDArray[np.int64]

    @property
    def n_items(self) -> int:
        """How many documents there are."""
        return int(self.labels.shape[1])

    def chances(self, world: int) -> Floats:
        """The probability of each label vector."""
        chances: Floats = self.weights[world] / self.weights[world].sum()
        return chances

    def expected_relevance(self, world: int) -> Floats:
        """E[R]."""
        return np.asarray(self.chances(world) @ self.labels)

    def expected_share(self, world: int) -> Floats:
        """E[G(R) / Z(R)]: what NDCG, and every surrogate calibrated for it, sorts by."""
        targets = np.array([surrogates.CalibratedSquared().target(R) for R in self.labels])
        return np.asarray(self.chances(world) @ targets)

    def top_moments(self, world: int) -> Floats:
        """E of the product of every set of up to k labels: all that top-k feedback can reveal of binary labels."""
        sets = [c for size in range(1, self.k + 1) for c in combinations(range(self.n_items), size)]
        return np.array([self.chances(world) @ self.labels[:, list(c)].prod(axis=1) for c in sets])

    def ndcg(self, world: int) -> Floats:
        """The expected NDCG of every order."""
        orders = np.array(list(permutations(range(self.n_items))))
        return np.asarray(measures.ndcg(orders[:, None, :], self.labels[None, :, :]) @ self.chances(world))

    def forced_ndcg(self) -> float:
        """NDCG that the best single mix of orders loses per round, averaged over both worlds."""
        values = [self.ndcg(world) for world in (0, 1)]
        return float(np.mean([v.max() for v in values]) - np.mean(values, axis=0).max())

    def forced_squared(self) -> float:
        """Calibrated squared loss per round of the best single score vector, averaged over both worlds (B16)."""
        apart = self.expected_share(0) - self.expected_share(1)
        return float(apart @ apart / 4)

    def stream(self, world: int) -> QueryStream:
        """Users who bring a label vector each; every label vector stands as often as its weight says."""
        often = np.repeat(self.labels, self.weights[world], axis=0)
        m = self.n_items
        queries = Dataset(
            features=np.tile(np.eye(m), (len(often), 1)),
            relevance=often.astype(np.float64).ravel(),
            offsets=np.arange(0, m * len(often) + 1, m),
            query_ids=tuple(map(str, range(len(often)))),
            name=f"{self.name}, world {world}",
            max_grade=1,
        )
        return QueryStream(queries, measure="ndcg", order="drawn")


def _pair(name: str, k: int, labels: str, weights: list[list[int]]) -> Pair:
    digits = [[int(digit) for digit in word] for word in labels.split()]
    return Pair(name, k, np.array(digits), np.array(weights))


PAIRS = {
    # Table 1 of the paper and the two distributions of its proof, in twentieths.
    "top-1": _pair("top-1", 1, "110 101 011 100 010 001", [[2, 3, 1, 4, 6, 4], [6, 0, 0, 3, 3, 8]]),
    # Ours: even and odd, so that any two labels are distributed alike.
    "top-2": _pair(
        "top-2", 2, "0101 0110 1000 1011 0100 0111 1001 1010", [[1] * 4 + [0] * 4, [0] * 4 + [1] * 4]
    ),
}


FULL, RANDOM = "calibrated, full information", "random order"
_LEARNERS = {
    "squared": plotting.ORANGE,
    "kl": plotting.BLUE,
    "ranksvm": plotting.PURPLE,
    "smooth_dcg": plotting.GOLD,
    RANDOM: plotting.MUTED,
    FULL: plotting.GREEN,
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
    departures = points("""
        - The proof says that a learner plays the best scores of one world or of the other. It may also play a
          compromise; what is forced is the loss of the best compromise (erratum B16).
        - The paper leaves k of 2 and more open. For k up to m - 2 it is as hopeless: the second pair (erratum B17).
    """)

    def jobs(self, *, quick: bool) -> list[Job]:
        def job(pair: str, learner: str, world: int, T: int, seed: int) -> Job:
            settings = {"pair": pair, "world": world, "learner": learner, "rounds": T}
            return seeded(f"{learner}, {pair}, world {world}, T={T}", seed=seed, cost=T, **settings)

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
        ranker, aim = _make(job.settings["learner"], made.n_items, made.k), made.expected_share(world)
        environment, played, value, losses = made.stream(world), [0], 0.0, [_excess(ranker, aim)]
        stops = np.unique(np.geomspace(1, T, _LOOKS).round().astype(int))
        for piece, stop in enumerate(stops):
            rounds, seed = int(stop) - played[-1], job.seed * 1_000 + piece
            trace = play(ranker, environment, rounds=rounds, seed=seed, points=1, progress=False)
            value += rounds * trace.mean_value
            played.append(int(stop))
            losses.append(_excess(ranker, aim))
        surrogate = None if losses[0] is None else float(np.trapezoid(losses, played) / T)  # type: ignore[arg-type]
        measured = {"regret": float(made.ndcg(world).max() - value / T), "surrogate": surrogate}
        return pl.DataFrame([dict(job.settings) | measured], schema_overrides={"surrogate": pl.Float64})

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
                    mutation=instead("squared", FULL, pair=pair),
                )

    def figures(self, results: pl.DataFrame, *, quick: bool) -> dict[str, Figure]:
        last, sentences = max(results["rounds"].to_list()), []
        for pair, made in PAIRS.items():
            ends = {name: level for name, (level, _) in _levels(results, pair, last, "regret").items()}
            full, least = ends.pop(FULL), min(ends.values())
            top, every = (round(level / made.forced_ndcg(), 2) + 0.0 for level in (least, full))
            sentences.append(f"{top:.2f} and {every:.2f} in the {pair} worlds")
        figure, panels = plotting.canvas(
            title="Two worlds that the top cannot tell apart",
            subtitle="NDCG regret per round at T, averaged over the two worlds and all runs",
            caption="Dotted: what the best compromise between the two worlds loses, however long it learns. What the "
            "best learner that observes only the top loses after "
            f"{last:,} rounds, and the same linear ranker with every label revealed (green), as multiples of that: "
            f"{'; '.join(sentences)}.",
            height=8.6,
            rows=2,
        )
        T = sorted(results["rounds"].unique().to_list())
        for axes, (pair, made) in zip(panels, PAIRS.items(), strict=True):
            for learner in _levels(results, pair, T[0], "regret"):
                levels = [max(runs.level(results, pair=pair, learner=learner, rounds=t)[0], 1e-5) for t in T]
                plotting.curve(axes, T, levels, label=learner, colour=_LEARNERS[learner], points=True)
            plotting.log_axis(axes, y=False)
            axes.set_ylim(0, None)
            plotting.guide(axes, made.forced_ndcg(), f"forced: {made.forced_ndcg():.4f}")
            count = "three documents, the top label" if made.k == 1 else "four documents, the top two labels"
            plotting.name_axes(axes, x="rounds T", y=f"{count}: NDCG regret per round")
        return {"impossible": plotting.finish(figure)}

    def summary(self, results: pl.DataFrame) -> pl.DataFrame:
        return runs.pivot(results, index=["pair", "learner"])


def _levels(results: pl.DataFrame, pair: str, rounds: int, column: str) -> dict[str, tuple[float, float]]:
    """By learner, what it loses a round at `rounds`, and the standard error; without those who have no scores."""
    rows = runs.chosen(results, pair=pair, rounds=rounds).filter(pl.col(column).is_not_null())
    return {
        name: runs.level(rows, column, learner=name) for name in _LEARNERS if name in set(rows["learner"])
    }


def _excess(ranker: Ranker, aim: Floats) -> float | None:
    """Calibrated squared loss of the ranker's scores above the least, at `aim`; features are unit vectors."""
    if isinstance(ranker, Uniform):
        return None
    apart = ranker.state.w - aim
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
