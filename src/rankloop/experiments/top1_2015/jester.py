"""The learners of the 2015 paper on real users: ten jokes that every user rated, and five films.

Each rater of all the chosen items is one user. They arrive once each, in an order shuffled for each run, or they
are drawn with replacement, as if there were many more of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from numpy.typing import NDArray

from rankloop import data, plotting
from rankloop.base import Ranker
from rankloop.environments import FixedItems, users
from rankloop.experiments import runs
from rankloop.experiments.experiment import Claim, Experiment, Job, seeded
from rankloop.experiments.mutations import instead
from rankloop.experiments.top1_2015 import setting
from rankloop.experiments.top1_2015.setting import ANYTIME, FULL, KEEP_REST, RANDOM, UNIFORM, UNPERTURBED
from rankloop.experiments.words import points
from rankloop.rankers import BestInHindsight
from rankloop.simulation import play

BEST = "BestInHindsight"
ONCE_LEARNERS = (UNIFORM, RANDOM, KEEP_REST, ANYTIME, UNPERTURBED, FULL, BEST)
AGAIN_LEARNERS = (UNIFORM, RANDOM, KEEP_REST, ANYTIME, FULL)


_HORIZONS = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
_QUICK_HORIZONS = (1_000, 10_000, 100_000)
_LATE = 100_000
_LOOK = {
    UNIFORM: ("a random order", plotting.MUTED),
    RANDOM: ("rest at random", plotting.ORANGE),
    KEEP_REST: ("rest as learnt", plotting.BLUE),
    ANYTIME: ("T not known", plotting.PURPLE),
    UNPERTURBED: ("… unperturbed", plotting.SKY),
    FULL: ("FTPL, full information", plotting.GREEN),
    BEST: ("best for all", plotting.INK),
}
_BANDED = (KEEP_REST, ANYTIME, FULL)  # one above the other, more could not be distinguished
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Crowd:
    """A file of ratings, how many of its items are ranked, and the highest grade its ratings are cut into."""

    file: str
    n_items: int
    max_grade: int
    title: str


_JESTER, _MOVIELENS = "ratings/jester_users_0001_2500.csv.gz", "ratings/ml-latest-small"
CROWDS = {
    "jokes": Crowd(_JESTER, 10, 1, "Ten jokes, funny or not"),
    "jokes graded": Crowd(_JESTER, 10, 4, "Ten jokes, in five grades"),
    "films graded": Crowd(_MOVIELENS, 5, 4, "Five films, in five grades"),
}
ONCE = ("jokes", "jokes graded")  # 88 users rated all five films: too few to play once


@lru_cache(maxsize=8)
def ratings(crowd: str) -> data.Ratings:
    """The most-rated items of a data set, with the users who rated all of them."""
    return data.read_ratings(data.find(CROWDS[crowd].file)).most_rated(CROWDS[crowd].n_items)


def jobs(*, horizons: Sequence[int], once_runs: int, again_runs: int) -> list[Job]:
    """Each user once, by learner and seed; and drawn with replacement, all horizons in one job."""
    once = product(["once"], ONCE, ONCE_LEARNERS, range(1, once_runs + 1))
    again = product(["again"], CROWDS, AGAIN_LEARNERS, range(1, again_runs + 1))
    listed = []
    for way, crowd, learner, seed in (*once, *again):
        settings: dict[str, Any] = {"crowd": crowd, "learner": learner, "way": way}
        settings |= {"horizons": list(horizons)} if way == "again" else {}
        cost = sum(horizons) if way == "again" else 2_500
        listed.append(seeded(f"{crowd} {way}, {learner}", seed=seed, cost=cost, **settings))
    return listed


def _make(crowd: str, learner: str, horizon: int) -> Ranker:
    of = CROWDS[crowd]
    if learner == BEST:
        return BestInHindsight(relevance=ratings(crowd).relevance(grades=of.max_grade), measure="dcg")
    return setting.make_learner(learner, n_items=of.n_items, horizon=horizon, max_grade=of.max_grade)


def _played(job: Job, environment: FixedItems, *, rounds: int, points: int) -> pl.DataFrame:
    ranker = _make(job.settings["crowd"], job.settings["learner"], rounds)
    trace = play(ranker, environment, rounds=rounds, seed=job.seed, points=points, progress=False)
    settings = {name: [job.settings[name]] * len(trace.rounds) for name in ("crowd", "way", "learner")}
    columns = {"round": trace.rounds, "regret": trace.regret, "explored": trace.explored}
    return pl.DataFrame(settings | {"horizon": [rounds] * len(trace.rounds)} | columns)


def curve(results: pl.DataFrame, *, crowd: str, way: str, learner: str) -> pl.DataFrame:
    """By round: mean, lowest and highest run. Regret where users arrive once, per round where they are drawn."""
    rows = runs.chosen(results, crowd=crowd, way=way, learner=learner)
    return runs.over_runs(rows, runs.PER_ROUND if way == "again" else "regret")


def per_round(results: pl.DataFrame, *, crowd: str, way: str, learner: str, horizon: int) -> Floats:
    """Regret per round at the end, one number a run, in the order of the seeds."""
    of = {"crowd": crowd, "way": way, "learner": learner, "horizon": horizon, "round": horizon}
    return runs.chosen(results, **of).sort("seed").select(runs.PER_ROUND).to_series().to_numpy()


def smaller(left: Floats, right: Floats) -> bool:
    """Whether left lies below right by more than three standard errors of their paired difference."""
    return runs.ahead(right, left, errors=3.0)


class Top1Jester(Experiment):
    """DCG regret where the users are real raters of jokes and films."""

    name = "top1-2015-jester"
    title = "The same learners on real users"
    paper = setting.PAPER + "; ratings: Jester (Goldberg and others 2001), MovieLens (GroupLens)"
    caption = (
        "The ten jokes that most users of Jester rated; each of the 2,499 who rated all ten is one round, in an "
        "order shuffled for each run. A joke is relevant to users who rated it above the middle of the scale; or "
        "the scale is cut into five grades, with the gain 2^r - 1. Then users are drawn with replacement, as if "
        "there were many more of them, and the five films that most users of MovieLens rated, with the 88 who "
        "rated all five."
    )
    departures = points("""
        - The paper has no experiment on real users; the claims are ours.
        - Only users who rated every chosen item take part, so that each relevance is a real rating: active users, and
          well-known items.
    """)

    def missing(self) -> str | None:
        try:
            for crowd in CROWDS.values():
                data.find(crowd.file)
        except data.DataMissing as lack:
            return str(lack)
        return None

    def jobs(self, *, quick: bool) -> list[Job]:
        if quick:
            return jobs(horizons=_QUICK_HORIZONS, once_runs=10, again_runs=4)
        return jobs(horizons=_HORIZONS, once_runs=50, again_runs=10)

    def run(self, job: Job) -> pl.DataFrame:
        """DCG regret along the run where each user arrives once, at the end of each horizon where they are drawn."""
        crowd, grades = job.settings["crowd"], CROWDS[job.settings["crowd"]].max_grade
        if job.settings["way"] == "once":
            relevance = ratings(crowd).relevance(grades=grades, shuffle_seed=job.seed)
            return _played(job, FixedItems(relevance, measure="dcg"), rounds=len(relevance), points=250)
        everybody = users.listed(ratings(crowd).relevance(grades=grades))
        met = ((FixedItems(everybody, measure="dcg"), T) for T in job.settings["horizons"])
        return pl.concat([_played(job, environment, rounds=T, points=1) for environment, T in met])

    def claims(self, results: pl.DataFrame, *, quick: bool) -> Iterator[Claim]:
        for judge, crowds in ((_of_once, ONCE), (_of_again, CROWDS)):
            # One kind of claim after the other, each for all crowds.
            for kind in zip(*(judge(results, crowd) for crowd in crowds), strict=True):
                yield from kind

    def figures(self, results: pl.DataFrame, *, quick: bool) -> dict[str, Figure]:
        return {"everybody-once": _draw_once(results), "if-more-came": _draw_again(results)}

    def summary(self, results: pl.DataFrame) -> pl.DataFrame:
        return setting.final_table(results, "crowd", "way", "horizon", "learner", named="regret per round")


def _lost(results: pl.DataFrame, crowd: str, way: str, *, horizon: int = _LATE) -> dict[str, Floats]:
    """Regret per round of each run, by learner; where each user arrives once, at the end."""
    T = int(runs.chosen(results, way=way, crowd=crowd)["horizon"][0]) if way == "once" else horizon
    names = ONCE_LEARNERS if way == "once" else AGAIN_LEARNERS
    return {name: per_round(results, crowd=crowd, way=way, learner=name, horizon=T) for name in names}


def _told(lost: dict[str, Floats], *learners: str) -> str:
    return ", ".join(f"{learner} {lost[learner].mean():.4f}" for learner in learners)


def _of_once(results: pl.DataFrame, crowd: str) -> Iterator[Claim]:
    lost = _lost(results, crowd, "once")
    title, called = CROWDS[crowd].title, crowd.replace(" ", "-")
    yield Claim(
        name=f"ladder-once-{called}",
        text=f"{title}, each user once: FTPL loses less than RTop-1F keep-rest, and that less than a "
        "random order, each by more than three standard errors",
        holds=smaller(lost[FULL], lost[KEEP_REST]) and smaller(lost[KEEP_REST], lost[UNIFORM]),
        measured=_told(lost, FULL, KEEP_REST, RANDOM, UNIFORM),
        source="Section 10, on real users",
        mutation=instead(UNIFORM, KEEP_REST),
    )
    saved = 1 - lost[KEEP_REST].mean() / lost[UNIFORM].mean()
    rows = runs.chosen(results, crowd=crowd, way="once", learner=KEEP_REST)
    rows = rows.filter(pl.col("round") == pl.col("horizon"))
    share = (rows["explored"] / rows["round"]).to_numpy().mean()
    theory = (CROWDS[crowd].n_items ** 2 / int(rows["horizon"][0])) ** (1 / 3)
    yield Claim(
        name=f"few-users-{called}",
        text=f"{title}, each user once: that is too few users for RTop-1F; exploration takes "
        f"(m²/T)^(1/3) = {theory:.0%} of the rounds, and less than two fifths of a random order’s regret are saved",
        holds=bool(0 < saved < 0.4 and abs(share - theory) < 0.01),
        measured=f"{saved:.0%} saved, {share:.1%} of the rounds explore",
        source="Erratum A9",
        mutation=instead(FULL, KEEP_REST),
    )
    kept, bare = lost[KEEP_REST].mean(), lost[UNPERTURBED].mean()
    yield Claim(
        name=f"perturbation-{called}",
        text=f"{title}, each user once: the perturbation is more than a fifth of RTop-1F’s regret",
        holds=bool(bare < 0.8 * kept) and smaller(lost[UNPERTURBED], lost[KEEP_REST]),
        measured=f"{bare:.3f} instead of {kept:.3f} without it, {1 - bare / kept:.0%} less",
        source="Algorithm 1, line 18; ours",
        mutation=instead(KEEP_REST, UNPERTURBED),
    )


def _of_again(results: pl.DataFrame, crowd: str) -> Iterator[Claim]:
    lost, ladder = _lost(results, crowd, "again"), (FULL, KEEP_REST, RANDOM, UNIFORM)
    title, called = CROWDS[crowd].title, crowd.replace(" ", "-")
    yield Claim(
        name=f"ladder-{called}",
        text=f"{title}, T = {_LATE:,}: FTPL before RTop-1F keep-rest before random exploration "
        "before a random order, each by more than three standard errors",
        holds=all(smaller(lost[left], lost[right]) for left, right in itertools.pairwise(ladder)),
        measured=_told(lost, *ladder),
        source="Section 10, on real users",
        mutation=instead(RANDOM, KEEP_REST),
    )
    first, second, last = (
        _lost(results, crowd, "again", horizon=T)[KEEP_REST].mean() for T in (1_000, 10_000, _LATE)
    )
    yield Claim(
        name=f"falls-{called}",
        text=f"{title}: the longer RTop-1F runs, the less it loses per round; at T = {_LATE:,} less "
        "than two thirds of what it lost at 1,000",
        holds=bool(first > second > last and last < 2 / 3 * first),
        measured=f"{first:.4f} → {second:.4f} → {last:.4f}",
        source="Theorem 9",
        mutation=instead(UNIFORM, KEEP_REST),
    )
    known, unknown = lost[KEEP_REST].mean(), lost[ANYTIME].mean()
    yield Claim(
        name=f"no-horizon-{called}",
        text=f"{title}, T = {_LATE:,}: not knowing T costs nothing; doubling loses less than three "
        "quarters of what the known horizon does",
        holds=bool(unknown < 0.75 * known),
        measured=f"{unknown:.4f} against {known:.4f}",
        source="Ours",
        mutation=instead(KEEP_REST, ANYTIME),
    )


def _draw_once(results: pl.DataFrame) -> Figure:
    """Cumulative regret while all complete raters of ten jokes arrive once."""
    once = results.filter(pl.col("way") == "once")
    T = int(once["horizon"][0])
    ends = once.filter(pl.col("round") == T)
    explored = ends.filter(pl.col("learner") == KEEP_REST).select((pl.col("explored") / T).mean()).item()
    lost = dict(ends.group_by("learner").agg(pl.col("regret").sum()).iter_rows())
    shares = {name: lost[name] / lost[UNIFORM] for name in (RANDOM, KEEP_REST, UNPERTURBED, FULL)}
    figure, panels = plotting.canvas(
        title=f"What RTop-1F learns from {T:,} users",
        subtitle=f"real ratings of ten jokes, {once['seed'].n_unique()} shuffles; band: all of them (blue, green)",
        caption=f"Of what a random order loses RTop-1F loses {shares[RANDOM]:.0%}, exploring with the rest of the "
        f"order at random (orange), or {shares[KEEP_REST]:.0%} with the rest as learnt (blue): {explored:.0%} of its "
        "rounds explore, and it is perturbed to guard against an adversary. Without perturbation (light blue) it "
        f"loses {shares[UNPERTURBED]:.0%}, full information (green) {shares[FULL]:.0%}; of both panels together.",
        height=9.2,
        rows=len(ONCE),
    )
    for axes, crowd in zip(panels, ONCE, strict=True):
        for learner in (UNIFORM, RANDOM, KEEP_REST, UNPERTURBED, FULL, BEST):
            label, colour = _LOOK[learner]
            means = curve(results, crowd=crowd, way="once", learner=learner)
            look = {"banded": learner in _BANDED, "dashed": learner in (UNIFORM, BEST)}
            plotting.mean_curve(
                axes, means, label=f"{label}: {means['mean'][-1]:,.0f}", colour=colour, **look
            )
        axes.set_xlim(0, T)
        axes.set_ylim(0, None)
        plotting.count_axis(axes)
        axes.yaxis.set_major_formatter(lambda value, _: plotting.plain_number(value))
        plotting.name_axes(axes, x="users so far", y=f"{CROWDS[crowd].title}: DCG regret so far")
    return plotting.finish(figure)


def _draw_again(results: pl.DataFrame) -> Figure:
    """Regret per round at T as a share of what a random order loses, for users drawn with replacement."""
    again = results.filter(pl.col("way") == "again")
    longest = max(again["horizon"].to_list())

    def lost(crowd: str, learner: str) -> float:
        return float(per_round(results, crowd=crowd, way="again", learner=learner, horizon=longest).mean())

    # What is left of a random order's regret at the longest horizon, over the crowds.
    left = {
        learner: plotting.span(lost(crowd, learner) / lost(crowd, UNIFORM) for crowd in CROWDS)
        for learner in (KEEP_REST, ANYTIME, FULL)
    }
    figure, panels = plotting.canvas(
        title="What more users of the same kind bring",
        subtitle=f"drawn with replacement, {again['seed'].n_unique()} runs for each horizon; band: all (not orange)",
        caption="Regret per round at T, as a share of what a random order loses. At the longest horizon RTop-1F "
        f"with the rest as learnt (blue) is left with {left[KEEP_REST]}, without a horizon (purple), which "
        f"perturbs by what it has seen so far and not by what may yet come, with {left[ANYTIME]}, and full "
        f"information (green) with {left[FULL]}.",
        height=12.0,
        rows=len(CROWDS),
    )
    for axes, (crowd, chosen) in zip(panels, CROWDS.items(), strict=True):
        price = lost(crowd, UNIFORM)
        for learner in AGAIN_LEARNERS:
            label, colour = _LOOK[learner]
            means = curve(results, crowd=crowd, way="again", learner=learner)
            look = {"banded": learner in _BANDED, "points": learner != UNIFORM, "dashed": learner == UNIFORM}
            plotting.mean_curve(axes, means, label=label, colour=colour, scale=price / 100, **look)
        plotting.log_axis(axes)
        axes.set_ylim(0, 110)
        axes.set_yticks([0, 25, 50, 75, 100], ["0", "25 %", "50 %", "75 %", "100 %"])
        plotting.name_axes(axes, x="horizon T", y=f"{chosen.title}: regret per round; 100 % is {price:.3f}")
    return plotting.finish(figure)
