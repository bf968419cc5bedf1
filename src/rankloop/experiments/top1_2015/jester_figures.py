"""Figures of learning from real users: each once, and with many more of them."""

from __future__ import annotations

import polars as pl
from matplotlib.figure import Figure

from rankloop.experiments.plotting import figures
from rankloop.experiments.top1_2015 import real_users as people
from rankloop.experiments.top1_2015.learners import ANYTIME, FULL, KEEP_REST, RANDOM, UNIFORM, UNPERTURBED
from rankloop.experiments.top1_2015.real_users import BEST, CROWDS

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
    share = once.filter(pl.col("learner") == KEEP_REST, pl.col("round") == T)
    explored = share.select((pl.col("explored") / pl.col("round")).mean()).item()
    figure, panels = figures.canvas(
        title=f"With {T:,} users RTop-1F has hardly begun",
        subtitle=f"real ratings of ten jokes, {once['seed'].n_unique()} shuffles; band: all of them (blue, green)",
        caption="RTop-1F, exploring with the rest of the order at random (orange) or as learnt (blue), stays close "
        f"to a random order: {explored:.0%} of its rounds explore, and its perturbation, there to guard "
        "against an adversary, is as large as anything it can learn from so few. Without it (light blue) "
        "regret would be smaller. Full information (green) soon learns what users like.",
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


def if_more_came(results: pl.DataFrame) -> Figure:
    """Regret per round at T as a share of what a random order loses, for users drawn with replacement."""
    again = results.filter(pl.col("way") == "again")
    figure, panels = figures.canvas(
        title="With more users of the same kind it pays off",
        subtitle=f"drawn with replacement, {again['seed'].n_unique()} runs for each horizon; band: all (not orange)",
        caption="Regret per round at T, as a share of what a random order loses. Real users differ far more than the "
        "simulated users of Figure 1, so RTop-1F needs many of them; but it gets there, with jokes and "
        "with films. RTop-1F without a horizon (purple) is better here: it perturbs by what it has seen so far, not by "
        "what may yet come.",
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
