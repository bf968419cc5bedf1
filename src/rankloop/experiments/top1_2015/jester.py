"""The learners of the 2015 paper on real users: ten jokes that every user rated, and five films."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from numpy.typing import NDArray

from rankloop.experiments import runs
from rankloop.experiments.experiment import Claim, Experiment, Job
from rankloop.experiments.mutations import instead
from rankloop.experiments.top1_2015 import jester_figures, setting
from rankloop.experiments.top1_2015 import real_users as people
from rankloop.experiments.top1_2015.learners import ANYTIME, FULL, KEEP_REST, RANDOM, UNIFORM, UNPERTURBED
from rankloop.experiments.top1_2015.real_users import CROWDS, ONCE, smaller

_HORIZONS = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
_QUICK_HORIZONS = (1_000, 10_000, 100_000)
_LATE = 100_000


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
    departures = (
        "The paper has no experiment on real users; the claims are ours.",
        (
            "Only users who rated every chosen item take part, so that each relevance is a real rating: active "
            "users, and well-known items."
        ),
    )

    def missing(self) -> str | None:
        return people.missing()

    def jobs(self, *, quick: bool) -> list[Job]:
        if quick:
            return people.jobs(horizons=_QUICK_HORIZONS, once_runs=20, again_runs=5)
        return people.jobs(horizons=_HORIZONS, once_runs=50, again_runs=10)

    def run(self, job: Job) -> pl.DataFrame:
        return people.run(job)

    def claims(self, results: pl.DataFrame, *, quick: bool) -> Iterator[Claim]:
        kinds = {_once: ONCE, _hardly: ONCE, _noise: ONCE, _later: CROWDS, _falls: CROWDS, _anytime: CROWDS}
        for judge, crowds in kinds.items():
            yield from (judge(results, crowd) for crowd in crowds)

    def figures(self, results: pl.DataFrame, *, quick: bool) -> dict[str, Figure]:
        return {
            "everybody-once": jester_figures.everybody_once(results),
            "if-more-came": jester_figures.if_more_came(results),
        }

    def summary(self, results: pl.DataFrame) -> pl.DataFrame:
        return setting.final_table(results, "crowd", "way", "horizon", "learner", named="regret per round")


def _lost(
    results: pl.DataFrame, crowd: str, way: str, *, horizon: int = _LATE
) -> dict[str, NDArray[np.float64]]:
    """Regret per round of each run, by learner; where each user arrives once, at the end."""
    T = int(runs.chosen(results, way=way, crowd=crowd)["horizon"][0]) if way == "once" else horizon
    names = people.ONCE_LEARNERS if way == "once" else people.AGAIN_LEARNERS
    return {name: people.per_round(results, crowd=crowd, way=way, learner=name, horizon=T) for name in names}


def _told(lost: dict[str, NDArray[np.float64]], *learners: str) -> str:
    return ", ".join(f"{learner} {lost[learner].mean():.4f}" for learner in learners)


def _name(what: str, crowd: str) -> str:
    return f"{what}-{crowd.replace(' ', '-')}"


def _once(results: pl.DataFrame, crowd: str) -> Claim:
    lost = _lost(results, crowd, "once")
    return Claim(
        name=_name("ladder-once", crowd),
        text=f"{CROWDS[crowd].title}, each user once: FTPL loses less than RTop-1F keep-rest, and that less than a "
        "random order, each by more than three standard errors",
        holds=smaller(lost[FULL], lost[KEEP_REST]) and smaller(lost[KEEP_REST], lost[UNIFORM]),
        measured=_told(lost, FULL, KEEP_REST, RANDOM, UNIFORM),
        source="Section 10, on real users",
        fixed=False,
        mutation=instead(UNIFORM, KEEP_REST),
    )


def _hardly(results: pl.DataFrame, crowd: str) -> Claim:
    lost = _lost(results, crowd, "once")
    saved = 1 - lost[KEEP_REST].mean() / lost[UNIFORM].mean()
    rows = runs.chosen(results, crowd=crowd, way="once", learner=KEEP_REST).filter(
        pl.col("round") == pl.col("horizon")
    )
    share = (rows["explored"] / rows["round"]).to_numpy().mean()
    theory = (CROWDS[crowd].n_items ** 2 / int(rows["horizon"][0])) ** (1 / 3)
    return Claim(
        name=_name("few-users", crowd),
        text=f"{CROWDS[crowd].title}, each user once: that is too few users for RTop-1F; exploration takes "
        f"(m²/T)^(1/3) = {theory:.0%} of the rounds, and less than two fifths of a random order’s regret are saved",
        holds=bool(0 < saved < 0.4 and abs(share - theory) < 0.01),
        measured=f"{saved:.0%} saved, {share:.1%} of the rounds explore",
        source="Erratum A9",
        fixed=False,
        mutation=instead(FULL, KEEP_REST),
    )


def _noise(results: pl.DataFrame, crowd: str) -> Claim:
    lost = _lost(results, crowd, "once")
    kept, bare = lost[KEEP_REST].mean(), lost[UNPERTURBED].mean()
    return Claim(
        name=_name("perturbation", crowd),
        text=f"{CROWDS[crowd].title}, each user once: the perturbation is more than a fifth of RTop-1F’s regret",
        holds=bool(bare < 0.8 * kept) and smaller(lost[UNPERTURBED], lost[KEEP_REST]),
        measured=f"{bare:.3f} instead of {kept:.3f} without it, {1 - bare / kept:.0%} less",
        source="Algorithm 1, line 18; ours",
        fixed=False,
        mutation=instead(KEEP_REST, UNPERTURBED),
    )


def _later(results: pl.DataFrame, crowd: str) -> Claim:
    lost, ladder = _lost(results, crowd, "again"), (FULL, KEEP_REST, RANDOM, UNIFORM)
    return Claim(
        name=_name("ladder", crowd),
        text=f"{CROWDS[crowd].title}, T = {_LATE:,}: FTPL before RTop-1F keep-rest before random exploration "
        "before a random order, each by more than three standard errors",
        holds=all(smaller(lost[left], lost[right]) for left, right in itertools.pairwise(ladder)),
        measured=_told(lost, *ladder),
        source="Section 10, on real users",
        fixed=False,
        mutation=instead(RANDOM, KEEP_REST),
    )


def _falls(results: pl.DataFrame, crowd: str) -> Claim:
    first, second, last = (
        _lost(results, crowd, "again", horizon=T)[KEEP_REST].mean() for T in (1_000, 10_000, _LATE)
    )
    return Claim(
        name=_name("falls", crowd),
        text=f"{CROWDS[crowd].title}: the longer RTop-1F runs, the less it loses per round; at T = {_LATE:,} less "
        "than two thirds of what it lost at 1,000",
        holds=bool(first > second > last and last < 2 / 3 * first),
        measured=f"{first:.4f} → {second:.4f} → {last:.4f}",
        source="Theorem 9",
        fixed=False,
        mutation=instead(UNIFORM, KEEP_REST),
    )


def _anytime(results: pl.DataFrame, crowd: str) -> Claim:
    lost = _lost(results, crowd, "again")
    known, unknown = lost[KEEP_REST].mean(), lost[ANYTIME].mean()
    return Claim(
        name=_name("no-horizon", crowd),
        text=f"{CROWDS[crowd].title}, T = {_LATE:,}: not knowing T costs nothing; doubling loses less than three "
        "quarters of what the known horizon does",
        holds=bool(unknown < 0.75 * known),
        measured=f"{unknown:.4f} against {known:.4f}",
        source="Ours",
        fixed=False,
        mutation=instead(KEEP_REST, ANYTIME),
    )
