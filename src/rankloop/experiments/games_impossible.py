"""Hopeless verdicts, played: two worlds that look alike, and every ranker that accepts the feedback."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple, cast

import polars as pl
from matplotlib.figure import Figure

from rankloop import games, plotting, rankers
from rankloop.base import Ranker
from rankloop.environments import Indistinguishable
from rankloop.experiments import runs
from rankloop.experiments.experiment import Claim, Experiment, Job, seeded
from rankloop.experiments.mutations import altered, instead
from rankloop.experiments.words import points
from rankloop.feedback import Nothing, TopK
from rankloop.simulation import play


class Case(NamedTuple):
    """A measure, how many items, how many are seen, and how many would be enough."""

    measure: str
    n_items: int
    k: int
    enough: int


CASES = {
    "NDCG": Case("ndcg", 3, 1, 2),
    "MAP": Case("average_precision", 3, 1, 2),
    "AUC": Case("auc", 4, 1, 3),
    "ERR": Case("err", 3, 1, 2),
    "NDCG, top 2": Case("ndcg", 4, 2, 3),
}
_SLACK = 0.02  # for the luck of the users, which the standard error of few runs may miss
ENOUGH = "FeedExp3, enough labels"
_ROUNDS = (1_000, 10_000, 100_000, 1_000_000)
_AIMS = ("dcg", "precision@2")  # the objective of a ranker that refuses the measure itself


class GamesImpossible(Experiment):
    """Hopeless verdicts: no ranker's regret per round falls below what the two worlds force."""

    name = "games-impossible"
    title = "Hopeless games, played by every ranker that accepts the feedback"
    paper = "Chaudhuri and Tewari 2015, Lemma 11 and Theorem 12; ERR and top-2 feedback are ours"
    caption = (
        "For each measure the analyser finds two worlds that no feedback tells apart, and the regret per round "
        "that every learner must suffer on average over the two. All rankers of the package that learn from the "
        "top, or from nothing, play in both worlds. One more sees as many labels as the verdict requires, in the "
        "same worlds."
    )
    departures = points("""
        - The paper shows that a difference of losses is not in a span; the worlds and what they cost come from a
          linear programme, and are checked exactly.
    """)

    def jobs(self, *, quick: bool) -> list[Job]:
        def job(case: str, learner: str, world: int, T: int, seed: int) -> Job:
            settings = {"case": case, "learner": learner, "world": world, "rounds": T}
            return seeded(f"{learner}, {case}, world {world}, T={T}", seed=seed, cost=T, **settings)

        return [
            job(case, learner, world, T, seed)
            for case in CASES
            for learner in (*learners(case), ENOUGH)
            for world in (0, 1)
            for T in (_ROUNDS[1:3] if quick else _ROUNDS)
            for seed in range(1, 7)
        ]

    def run(self, job: Job) -> pl.DataFrame:
        case, T = job.settings["case"], job.settings["rounds"]
        environment = Indistinguishable(verdict(case), world=job.settings["world"])
        ranker = make(job.settings["learner"], case, T)
        trace = play(ranker, environment, rounds=T, seed=job.seed, points=1, progress=False)
        return pl.DataFrame([dict(job.settings) | {"regret": trace.total_regret / T}])

    def claims(self, results: pl.DataFrame, *, quick: bool) -> Iterator[Claim]:
        T = max(results["rounds"].to_list())
        for case, of in CASES.items():
            forced = _forced(case)
            levels = {name: runs.level(results, case=case, learner=name, rounds=T) for name in learners(case)}
            least = min(levels, key=lambda learner: levels[learner][0])
            (mean, error), named = levels[least], case.replace(", ", "-").replace(" ", "-").lower()
            below = {name: forced - level for name, (level, _) in levels.items()}
            yield Claim(
                name=f"forced-{named}",
                text=f"{case}: all {len(levels)} rankers that accept the feedback lose at least the forced "
                f"{forced:.4f} a round, on average over the two worlds, less three standard errors and {_SLACK:.0%} "
                "of it",
                holds=all(below[name] <= 3 * error + _SLACK * forced for name, (_, error) in levels.items()),
                measured=f"least: {least}, {mean:.4f} ± {error:.4f}, allowed "
                f"{forced - 3 * error - _SLACK * forced:.4f}",
                source="2015, Theorem 12" if case in ("NDCG", "MAP", "AUC") else "Ours",
                mutation=altered(
                    f"a learner that knows the world ({case})",
                    where={"case": case, "learner": "Uniform"},
                    regret=0.0,
                ),
            )
            earlier, enough = (
                runs.level(results, case=case, learner=ENOUGH, rounds=t)[0] for t in (_ROUNDS[1], T)
            )
            yield Claim(
                name=f"enough-{named}",
                text=f"{case}: with {of.enough} labels instead of {of.k} regret per round keeps falling, by at least "
                f"5 % from T = {_ROUNDS[1]:,} to {T:,}" + ("" if quick else ", to less than what is forced"),
                holds=enough < 0.95 * earlier and (quick or enough < forced),
                measured=f"{earlier:.4f} a round after {_ROUNDS[1]:,}, {enough:.4f} after {T:,}",
                source="The verdict at that k: hard or easy",
                mutation=instead("Uniform", ENOUGH, case=case),
            )

    def figures(self, results: pl.DataFrame, *, quick: bool) -> dict[str, Figure]:
        last, multiples = max(results["rounds"].to_list()), []
        for case in CASES:
            ends = [runs.level(results, case=case, learner=name, rounds=last)[0] for name in learners(case)]
            multiples.append(f"{case} {min(ends) / _forced(case):.2f}")
        figure, panels = plotting.canvas(
            title="Hopeless games, played",
            subtitle="regret per round at T, averaged over the two worlds and all runs",
            caption="Dotted: the regret that the two worlds force on every learner. At the longest T the best of "
            f"the rankers that observe too little has {', '.join(multiples)} times that. Green: FeedExp3 with as many "
            "labels as the analyser requires, in the same worlds.",
            width=9.4,
            height=3.4 * len(CASES) + 0.8,
            rows=len(CASES),
        )
        T = sorted(results["rounds"].unique().to_list())
        for axes, (case, of) in zip(panels, CASES.items(), strict=True):
            look = [(name, name, colour) for name, colour in zip(learners(case), _COLOURS, strict=False)]
            for learner, label, colour in (*look, (ENOUGH, f"FeedExp3, {of.enough} labels", plotting.GREEN)):
                levels = [runs.level(results, case=case, learner=learner, rounds=t)[0] for t in T]
                plotting.curve(axes, T, levels, label=label, colour=colour, points=True)
            plotting.log_axis(axes, y=False)
            axes.set_ylim(0, None)
            plotting.guide(axes, _forced(case), f"forced: {_forced(case):.4f}")
            plotting.name_axes(axes, x="rounds T", y=f"{case}, {of.n_items} items: regret per round")
        return {"impossible": plotting.finish(figure)}

    def summary(self, results: pl.DataFrame) -> pl.DataFrame:
        return runs.pivot(results, index=["case", "learner"])


_COLOURS = (plotting.ORANGE, plotting.BLUE, plotting.PURPLE, plotting.GOLD, plotting.MUTED, plotting.SKY)


@cache
def verdict(case: str) -> games.Verdict:
    """The analyser's verdict, with the costliest worlds that it finds."""
    of = CASES[case]
    return games.classify(games.ranking_game(measure=of.measure, n_items=of.n_items, k=of.k), route="cells")


def _forced(case: str) -> float:
    return float(cast(games.Worlds, verdict(case).worlds).forced)


@cache
def learners(case: str) -> tuple[str, ...]:
    """Every ranker of the package that learns from the relevance of the top k, or from nothing."""
    accepting = []
    for name in rankers.__all__:
        ranker = _try(name, case, 1_000)
        if ranker is not None and isinstance(ranker.feedback, TopK | Nothing) and ranker.n_positions:
            accepting.append(name)
    return tuple(accepting)


def make(learner: str, case: str, T: int) -> Ranker:
    """The learner of that name."""
    of = CASES[case]
    if learner == ENOUGH:
        return rankers.FeedExp3(n_items=of.n_items, measure=of.measure, k=of.enough, pooled=True)
    ranker = _try(learner, case, T)
    assert ranker is not None
    return ranker


def _try(name: str, case: str, T: int) -> Ranker | None:
    of = CASES[case]
    kind = getattr(rankers, name)
    accepted = inspect.signature(kind).parameters
    if "n_items" not in accepted and "order" not in accepted:
        return None
    offered: dict[str, Any] = {"n_items": of.n_items, "horizon": T, "k": of.k, "pooled": True}
    if "order" in accepted:
        offered["order"] = list(cast(games.Worlds, verdict(case).worlds).best[0])  # type: ignore[arg-type]
    for aim in _AIMS if "measure" in accepted else ("",):
        arguments = {key: value for key, value in (offered | {"measure": aim}).items() if key in accepted}
        try:
            made: Ranker = kind(**arguments)
        except (ValueError, TypeError):
            continue
        return made
    return None
