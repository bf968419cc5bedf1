"""The loss estimators of FTRL-PBM against each other: the paper's, two with less variance, and one that can fail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from rankloop import plotting
from rankloop.experiments import runs
from rankloop.experiments.experiment import Claim, Experiment, Job
from rankloop.experiments.mutations import Mutation, instead, together
from rankloop.experiments.pbm_2022 import setting
from rankloop.experiments.pbm_2022.rankers import RewardFTRLPBM
from rankloop.experiments.pbm_2022.setting import SOURCES, STOCHASTIC, WORLDS, World
from rankloop.experiments.runs import chosen, ends, mean_and_error, play_once
from rankloop.rankers import FTRLPBM

LOSS, REDUCED, MEAN, REWARD = "loss", "reduced-variance", "mean", "bare reward"
OFFERED = (LOSS, REDUCED, MEAN)
_LOOK = {
    LOSS: ("loss", plotting.BLUE),
    REDUCED: ("reduced", plotting.ORANGE),
    MEAN: ("mean", plotting.GREEN),
    REWARD: ("reward", plotting.PURPLE),
}


RUNS, QUICK_RUNS = 20, 2
BEYOND = 3.0  # standard errors
_POINTS = 50
_CHANCE = 0.1  # of being shown, for the variances
_PLAYED = [
    (world, estimator)
    for world in WORLDS
    for estimator in ((*OFFERED, REWARD) if world.kind == STOCHASTIC else OFFERED)
]


class PBMEstimators(Experiment):
    """Regret with each estimator, in all nine worlds, with enough runs to separate them."""

    name = "pbm-2022-estimators"
    title = "A baseline for the losses of FTRL-PBM: variance and regret"
    version = 2
    paper = setting.PAPER + ", Algorithm 1, line 6"
    caption = (
        "FTRL-PBM in the nine worlds with the paper's estimator of the losses, loss / x, and with two that take a "
        "baseline off first: one half (reduced variance), or the mean loss of that item at that position so far. In "
        "the stochastic worlds also with -click / x, which the package does not offer."
    )
    departures = (
        "The paper has the first of these only; the experiment is ours.",
        "That Theorem 1 holds with a baseline is proved for bandits (m = 1, one half) and not for lists.",
    )

    def jobs(self, *, quick: bool) -> list[Job]:
        rounds, phase = (10_000, 2_500) if quick else (setting.HORIZON, setting.PHASE)
        size = {"rounds": rounds, "phase": phase}
        return [
            setting.world_job(f"{estimator}, {world.label}", world, seed=seed, estimator=estimator, **size)
            for world, estimator in _PLAYED
            for seed in range(1, 1 + (QUICK_RUNS if quick else RUNS))
        ]

    def run(self, job: Job) -> pl.DataFrame:
        world, environment = setting.played_in(job)
        estimator, rounds = job.settings["estimator"], job.settings["rounds"]
        size: dict[str, Any] = {"n_items": environment.n_items, "n_positions": environment.n_positions}
        ranker = RewardFTRLPBM(**size) if estimator == REWARD else FTRLPBM(**size, estimator=estimator)
        trace = play_once(ranker, environment, rounds=rounds, seed=job.seed, points=setting.POINTS)
        shown = slice(setting.POINTS // _POINTS - 1, None, setting.POINTS // _POINTS)
        return pl.DataFrame(
            {
                **world.where,
                "estimator": estimator,
                "round": trace.rounds[shown],
                "average": trace.total[shown] / trace.rounds[shown],
                "regret": trace.regret[shown],
                "fallbacks": trace.counters["solver_fallbacks"],
                "inexact": trace.counters["solver_inexact"],
                "variance": variances(world.source, _CHANCE)[estimator],
            }
        )

    def claims(self, results: pl.DataFrame, *, quick: bool) -> Iterator[Claim]:
        yield _variances(results)
        if not quick:
            yield from _of_a_million_rounds(results)

    def figures(self, results: pl.DataFrame, *, quick: bool) -> dict[str, Figure]:
        return {"estimators": _draw_curves(results), "all-runs": _draw_all_runs(results)}

    def summary(self, results: pl.DataFrame) -> pl.DataFrame:
        rows = []
        for world, estimator in _PLAYED:
            mean, error = mean_and_error(_ends(results, world, estimator))
            average, its_error = mean_and_error(_ends(results, world, estimator, column="average"))
            off, apart = _against_loss(results, world, estimator)
            rows.append(
                {
                    "world": world.label,
                    "estimator": estimator,
                    "regret": round(mean),
                    "its error": round(error),
                    "average reward": round(average, 4),
                    "error of that": round(its_error, 4),
                    "regret less the loss form's": round(off),
                    "in standard errors": round(apart, 1),
                }
            )
        return pl.DataFrame(rows)


def _ends(results: pl.DataFrame, world: World, estimator: str, column: str = "regret") -> NDArray[np.float64]:
    return ends(results, column, **world.where, estimator=estimator)


def _against_loss(results: pl.DataFrame, world: World, estimator: str) -> tuple[float, float]:
    """Mean regret less that of the loss form, and the same in standard errors of the difference."""
    (own, own_error), (loss, loss_error) = (
        mean_and_error(_ends(results, world, one)) for one in (estimator, LOSS)
    )
    return own - loss, (own - loss) / float(np.hypot(own_error, loss_error)) if estimator != LOSS else 0.0


def variances(source: str, x: float) -> dict[str, float]:
    """Mean variance of an entry's estimate where every entry has the chance `x`, by estimator; "mean" at its best.

    >>> {name: round(value, 2) for name, value in variances("yandex", 0.1).items()}
    {'loss': 8.67, 'reduced-variance': 2.27, 'mean': 0.24, 'bare reward': 0.37}
    """
    click = World(source, STOCHASTIC).still().clicks[0]
    loss = 1 - click

    def variance(baseline: NDArray[np.float64] | float) -> float:  # of B + 1{shown} (loss - B) / x
        second = loss * (1 - baseline) ** 2 + click * baseline**2
        return float((second / x - (loss - baseline) ** 2).mean())

    return {LOSS: variance(0.0), REDUCED: variance(0.5), MEAN: variance(loss), REWARD: variance(1.0)}


def _no_baseline(*estimators: str) -> Mutation:
    name = f"{LOSS} in the place of {' and '.join(estimators)}"
    return together(name, *(instead(LOSS, one, column="estimator") for one in estimators))


def _variances(results: pl.DataFrame) -> Claim:
    rows = chosen(results, kind=STOCHASTIC)
    spreads, sentences = {}, []
    for source, label in SOURCES.items():
        of = {one: float(chosen(rows, source=source, estimator=one)["variance"][0]) for one in _LOOK}
        spreads[source] = of
        sentences.append(f"{label} " + " / ".join(f"{value:.2f}" for value in of.values()))
    return Claim(
        name="variance",
        text="Where clicks are rare nearly every loss is one, loss / x is mostly noise, and a baseline takes it "
        "off: on Yandex the mean leaves less than a thirtieth of the variance",
        holds=all(one[MEAN] < one[REDUCED] < one[LOSS] for one in spreads.values())
        and spreads["yandex"][LOSS] > 30 * spreads["yandex"][MEAN],
        measured=f"variance of an estimate at x = {_CHANCE}, {LOSS} / {REDUCED} / {MEAN} / {REWARD}: "
        + "; ".join(sentences),
        source="Erratum C14",
        mutation=_no_baseline(MEAN),
    )


def _told(results: pl.DataFrame, worlds: Sequence[World], estimator: str) -> tuple[str, list[float]]:
    differences = {world.label: _against_loss(results, world, estimator) for world in worlds}
    text = ", ".join(
        f"{label} {off:+,.0f} ({apart:+.1f} s.e.{'' if abs(apart) > BEYOND else ', open'})"
        for label, (off, apart) in differences.items()
    )
    return text, [apart for _, apart in differences.values()]


def _of_a_million_rounds(results: pl.DataFrame) -> Iterator[Claim]:
    sentences, worst = [], 0.0
    for world in (World(source, STOCHASTIC) for source in ("gap-0.03", "gap-0.01")):
        reward, loss = (_ends(results, world, which) for which in (REWARD, LOSS))
        worst = max(worst, float(reward.max() / loss.max()))
        sentences.append(
            f"{world.label}: mean {reward.mean():,.0f}, worst {reward.max():,.0f} "
            f"(loss form {loss.mean():,.0f}, {loss.max():,.0f})"
        )
    yield Claim(
        name="reward-form-fails",
        text="The plain reward form is not safe: it locks on to what was clicked early, and its worst run has more "
        "than twice the regret of the loss form's worst",
        holds=worst > 2.0,
        measured="regret at the end: " + "; ".join(sentences),
        source="Erratum C14",
        mutation=instead(LOSS, REWARD, column="estimator", kind=STOCHASTIC),
    )
    for estimator in (REDUCED, MEAN):
        text, apart = _told(results, [World(source, STOCHASTIC) for source in SOURCES], estimator)
        yield Claim(
            name=f"{estimator}-users-stay",
            text=f"Where users stay the same, “{estimator}” has less regret than the loss form in every world, "
            "and on average by more than three standard errors",
            holds=all(one < 0 for one in apart) and float(np.mean(apart)) < -BEYOND,
            measured=text,
            source="Ours; the table of erratum C14 had four runs",
            mutation=_no_baseline(estimator),
        )
    worlds = [world for world in WORLDS if world.kind != STOCHASTIC]
    (text_reduced, reduced), (text_mean, mean) = (_told(results, worlds, one) for one in (REDUCED, MEAN))
    better, worse = (sum(side * one > BEYOND for one in (*reduced, *mean)) for side in (-1, 1))
    yield Claim(
        name="users-change",
        text="Where users change, of twelve comparisons at least two are better by more than three standard errors, "
        "at most two are worse by as much, and the others stay open",
        holds=better >= 2 and worse <= 2,
        measured=f"{better} better and {worse} worse by more than three standard errors. {REDUCED}: {text_reduced}. "
        f"{MEAN}: {text_mean}",
        source="Ours; the table of erratum C14 had three runs",
        mutation=_no_baseline(REDUCED, MEAN),
    )


def _draw_curves(results: pl.DataFrame) -> Figure:
    shares = {one: [_of_loss(results, source, one, "mean") for source in SOURCES] for one in (REDUCED, MEAN)}
    stay = ", ".join(f"“{one}” has {plotting.span(of)}" for one, of in shares.items())
    figure, panels = setting.grid(
        title="Regret with each estimator of the losses",
        subtitle="regret against the best fixed list so far; bands: two standard errors over the runs",
        caption="Blue: the paper's loss / x. Orange: one half is taken off first. Green: the mean so far is. Left: "
        f"users stay the same; at the end {stay} of what loss / x has. Middle and right: they change every phase. The "
        "scales differ from panel to panel.",
    )
    for world, axes in panels.items():
        for estimator in OFFERED:
            label, colour = _LOOK[estimator]
            means = runs.over_runs(chosen(results, **world.where, estimator=estimator), errors=2)
            plotting.mean_curve(axes, means, label=label, colour=colour)
        plotting.time_axis(axes, end=float(means["round"][-1]), label=world.label)
    return plotting.finish(figure)


def _of_loss(results: pl.DataFrame, source: str, estimator: str, what: str) -> float:
    """The mean or the largest regret of an estimator where users stay, as a share of the loss form's."""
    world = World(source, STOCHASTIC)
    own, loss = (_ends(results, world, one) for one in (estimator, LOSS))
    return float(getattr(own, what)() / getattr(loss, what)())


def _draw_all_runs(results: pl.DataFrame) -> Figure:
    worst = (f"{title} {_of_loss(results, source, REWARD, 'max'):.1f}" for source, title in SOURCES.items())
    figure, panels = plotting.canvas(
        title="The plain reward form, run by run",
        subtitle="regret at the end of every run, stochastic worlds",
        caption="A dot is a run, a line the mean. With -click / x a lucky click of an unlikely item is a large "
        f"negative loss that is never corrected. Its worst run has {', '.join(worst)} times the regret of the loss "
        "form's worst.",
        columns=3,
        width=16.0,
        height=4.9,
    )
    for (source, title), axes in zip(SOURCES.items(), panels, strict=True):
        for place, (estimator, (_, colour)) in enumerate(reversed(_LOOK.items())):
            regrets = _ends(results, World(source, STOCHASTIC), estimator)
            lift = place + 0.5 * ((np.arange(len(regrets)) * 0.618) % 1 - 0.5)
            axes.plot(regrets, lift, "o", color=colour, alpha=0.55, markersize=5, markeredgewidth=0)
            axes.plot([regrets.mean()] * 2, [place - 0.35, place + 0.35], color=colour, linewidth=2.4)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        plotting.count_axis(axes)
        plotting.name_axes(axes, x="regret at the end", y=title)
        plotting.row_axis(axes, [name for name, _ in _LOOK.values()])
    return figure
