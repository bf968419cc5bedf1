"""Figures of learning from real users: each once, and with many more of them."""

from __future__ import annotations

import polars as pl
from matplotlib.figure import Figure

from rankloop.experiments.top1_2015 import real_users as people
from rankloop.experiments.top1_2015.learners import ANYTIME, FULL, KEEP_REST, RANDOM, UNIFORM, UNPERTURBED
from rankloop.experiments.top1_2015.real_users import BEST, CROWDS
from rankloop.plotting import figures

_LOOK = {
    UNIFORM: ("a random order", figures.MUTED),
    RANDOM: ("rest at random", figures.ORANGE),
    KEEP_REST: ("rest as learnt", figures.BLUE),
    ANYTIME: ("T not known", figures.PURPLE),
    UNPERTURBED: ("… unperturbed", figures.SKY),
    FULL: ("FTPL, full information", figures.GREEN),
    BEST: ("best for all", figures.INK),
}
_BANDED = (KEEP_REST, ANYTIME, FULL)  # one above the other, more could not be distinguished


def everybody_once(results: pl.DataFrame) -> Figure:
    """Cumulative regret while all complete raters of ten jokes arrive once."""
    once = results.filter(pl.col("way") == "once")
    T = int(once["horizon"][0])
    ends = once.filter(pl.col("round") == T)
    explored = ends.filter(pl.col("learner") == KEEP_REST).select((pl.col("explored") / T).mean()).item()
    lost = dict(ends.group_by("learner").agg(pl.col("regret").sum()).iter_rows())
    shares = {name: lost[name] / lost[UNIFORM] for name in (RANDOM, KEEP_REST, UNPERTURBED, FULL)}
    figure, panels = figures.canvas(
        title=f"What RTop-1F learns from {T:,} users",
        subtitle=f"real ratings of ten jokes, {once['seed'].n_unique()} shuffles; band: all of them (blue, green)",
        caption=f"Of what a random order loses RTop-1F loses {shares[RANDOM]:.0%}, exploring with the rest of the "
        f"order at random (orange), or {shares[KEEP_REST]:.0%} with the rest as learnt (blue): {explored:.0%} of its "
        "rounds explore, and it is perturbed to guard against an adversary. Without perturbation (light blue) it "
        f"loses {shares[UNPERTURBED]:.0%}, full information (green) {shares[FULL]:.0%}; of both panels together.",
        height=9.2,
        rows=len(people.ONCE),
    )
    for axes, crowd in zip(panels, people.ONCE, strict=True):
        for learner in (UNIFORM, RANDOM, KEEP_REST, UNPERTURBED, FULL, BEST):
            label, colour = _LOOK[learner]
            found = people.curve(results, crowd=crowd, way="once", learner=learner)
            look = {"banded": learner in _BANDED, "dashed": learner in (UNIFORM, BEST)}
            figures.mean_curve(axes, found, label=f"{label}: {found['mean'][-1]:,.0f}", colour=colour, **look)
        axes.set_xlim(0, T)
        axes.set_ylim(0, None)
        figures.count_axis(axes)
        axes.yaxis.set_major_formatter(lambda value, _: figures.plain_number(value))
        figures.name_axes(axes, x="users so far", y=f"{CROWDS[crowd].title}: DCG regret so far")
    return figures.finish(figure)


def _left(results: pl.DataFrame, learner: str) -> str:
    """What is left of a random order's regret at the longest horizon, over the crowds."""
    T = max(results.filter(pl.col("way") == "again")["horizon"].to_list())
    shares = []
    for crowd in CROWDS:
        own, chance = (
            people.per_round(results, crowd=crowd, way="again", learner=name, horizon=T).mean()
            for name in (learner, UNIFORM)
        )
        shares.append(own / chance)
    return figures.span(shares)


def if_more_came(results: pl.DataFrame) -> Figure:
    """Regret per round at T as a share of what a random order loses, for users drawn with replacement."""
    again = results.filter(pl.col("way") == "again")
    figure, panels = figures.canvas(
        title="What more users of the same kind bring",
        subtitle=f"drawn with replacement, {again['seed'].n_unique()} runs for each horizon; band: all (not orange)",
        caption="Regret per round at T, as a share of what a random order loses. At the longest horizon RTop-1F "
        f"with the rest as learnt (blue) is left with {_left(results, KEEP_REST)}, without a horizon (purple), which "
        f"perturbs by what it has seen so far and not by what may yet come, with {_left(results, ANYTIME)}, and full "
        f"information (green) with {_left(results, FULL)}.",
        height=12.0,
        rows=len(CROWDS),
    )
    longest = max(again["horizon"].to_list())
    for axes, (crowd, chosen) in zip(panels, CROWDS.items(), strict=True):
        price = people.per_round(results, crowd=crowd, way="again", learner=UNIFORM, horizon=longest).mean()
        for learner in people.AGAIN_LEARNERS:
            label, colour = _LOOK[learner]
            found = people.curve(results, crowd=crowd, way="again", learner=learner)
            look = {"banded": learner in _BANDED, "points": learner != UNIFORM, "dashed": learner == UNIFORM}
            figures.mean_curve(axes, found, label=label, colour=colour, scale=price / 100, **look)
        figures.log_axis(axes)
        axes.set_ylim(0, 110)
        axes.set_yticks([0, 25, 50, 75, 100], ["0", "25 %", "50 %", "75 %", "100 %"])
        figures.name_axes(axes, x="horizon T", y=f"{chosen.title}: regret per round; 100 % is {price:.3f}")
    return figures.finish(figure)
