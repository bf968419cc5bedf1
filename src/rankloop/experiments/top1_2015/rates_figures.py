"""Pictures of how regret grows with T: the three rates, the bounds above them, and the worlds where nothing helps."""

from __future__ import annotations

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from rankloop import environments
from rankloop.experiments.top1_2015 import growth
from rankloop.experiments.top1_2015.growth import LEARNABLE
from rankloop.experiments.top1_2015.hopeless import HOPELESS, OWN_TERMS, SEPARABLE
from rankloop.experiments.top1_2015.learners import FULL, KEEP_REST, RANDOM, UNIFORM
from rankloop.plotting import figures


def draw(results: pl.DataFrame) -> dict[str, Figure]:
    """All three."""
    runs = {name: results.filter(pl.col("measure") == name)["seed"].n_unique() for name in ("dcg", "ndcg")}
    return {
        "three-rates": _three_rates(results),
        "below-the-bounds": _below_the_bounds(results, runs["dcg"]),
        "hard-worlds": _hard_worlds(results, runs["ndcg"]),
    }


def _three_rates(results: pl.DataFrame) -> Figure:
    """All measures in one panel, in a unit that they share."""
    figure, (axes,) = figures.canvas(
        title="Two thirds, one half, one",
        subtitle="regret at T, counted in rounds of showing a random order; three measures a group",
        caption="Both axes count rounds, so the slope is the power of T; the fitted powers stand at the lines. Theory "
        "says 1 for NDCG, MAP and AUC from the top item (purple), 2/3 for the measures that the top item is enough "
        "for (blue), and 1/2 for those with full information (green).",
        height=5.6,
    )
    for measures, learner, name, colour in (
        (HOPELESS, KEEP_REST, "NDCG, MAP, AUC\nfrom the top item", figures.PURPLE),
        (LEARNABLE, KEEP_REST, "SumLoss, DCG, Prec@3\nfrom the top item", figures.BLUE),
        (LEARNABLE, FULL, "SumLoss, DCG, Prec@3\nfull information", figures.GREEN),
    ):
        powers, lines = [], []
        for measure in measures:
            powers.append(growth.exponent(results, measure=measure, learner=learner))
            found = growth.growth(results, measure=measure, learner=learner)
            unit = growth.price_of_random(results, measure)
            lines.append(
                figures.mean_curve(
                    axes, found, label="_", colour=colour, banded=False, scale=unit, points=True
                )
            )
        middle = sorted(lines, key=lambda line: float(np.asarray(line.get_ydata())[-1]))[len(lines) // 2]
        middle.set_label(f"{name}: {figures.power_text(min(powers), max(powers))}")
    figures.log_axis(axes, y=True)
    figures.name_axes(axes, x="horizon T", y="rounds lost")
    return figures.finish(figure)


def _below_the_bounds(results: pl.DataFrame, runs: int) -> Figure:
    """Measured regret and its bound, a panel for each measure that can be learnt."""
    pairs = [(measure, learner) for measure in LEARNABLE for learner in growth.LEARNERS]
    rooms = [growth.nearest(results, measure=measure, learner=learner) for measure, learner in pairs]
    figure, panels = figures.canvas(
        title="Regret and the bounds of the theorems",
        subtitle=f"10 items, {runs} runs for each horizon; band: all runs (often thinner than the line)",
        caption="RTop-1F explores with the rest of the order at random (orange) or as learnt (blue). Dashed: the "
        "bounds of Theorems 7, 9 and 10 (orange, for both) and that of FTPL (green). "
        + (
            f"No run passes its bound: the constants are {figures.span(rooms, '.0f')} times larger than these "
            "users make necessary. "
            if min(rooms) > 1
            else f"A run passes its bound: it loses {1 / min(rooms):.2f} times as much. "
        )
        + "Grey: a random order, which the bounds exclude only where it is above them.",
        height=12.0,
        rows=len(LEARNABLE),
    )
    for axes, (measure, name) in zip(panels, LEARNABLE.items(), strict=True):
        for learner, label, bound, colour in (
            (RANDOM, "rest at random", "bound, RTop-1F", figures.ORANGE),
            (KEEP_REST, "rest as learnt", "", figures.BLUE),
            (FULL, "FTPL, full information", "bound, FTPL", figures.GREEN),
            (UNIFORM, "random order", "", figures.MUTED),
        ):
            found = growth.growth(results, measure=measure, learner=learner)
            if bound:
                T, bounds = found["horizon"].to_numpy(), found["bound"].to_numpy()
                figures.curve(axes, T, bounds / 1_000, label=bound, colour=colour, dashed=True)
            power = figures.power_text(growth.exponent(results, measure=measure, learner=learner))
            named = f"{label}: {power}"
            figures.mean_curve(axes, found, label=named, colour=colour, scale=1_000, points=True)
        figures.log_axis(axes, y=True)
        # No higher than needed: the next power of ten would be a wide number beside the axis.
        axes.set_ylim(top=1.15 * axes.dataLim.y1)
        figures.name_axes(axes, x="horizon T", y=f"{name} regret at T, in thousands")
    return figures.finish(figure)


def _share_of_forced(results: pl.DataFrame, learner: str) -> str:
    played = [name for name in HOPELESS if learner != OWN_TERMS or name in SEPARABLE]
    shares = [
        growth.slope(results, measure=name, learner=learner)[0] / environments.forced_regret(name)
        for name in played
    ]
    return figures.span(shares)


def _hard_worlds(results: pl.DataFrame, runs: int) -> Figure:
    """Regret per round in the worlds that force it, a panel for each measure that cannot be learnt."""
    figure, panels = figures.canvas(
        title="Where top-1 feedback is not enough",
        subtitle=f"mean over both worlds, {runs} runs a horizon; band: all runs (blue, green)",
        caption="Regret divided by T, where 100 % is what theory forces on every learner with one label per round. "
        f"At the end RTop-1F (blue) loses {_share_of_forced(results, KEEP_REST)} of it, a learner with full "
        f"information that adds up relevance item by item (orange) {_share_of_forced(results, FULL)}, and one with "
        f"full information and the measure’s own terms (green) {_share_of_forced(results, OWN_TERMS)}; MAP is not a "
        "sum over items and has no such terms. At short horizons the luck of the best ranking in hindsight comes on "
        "top.",
        height=12.0,
        rows=len(HOPELESS),
    )
    for axes, (measure, name) in zip(panels, HOPELESS.items(), strict=True):
        forced = environments.forced_regret(measure)
        for learner, label, colour in (
            (UNIFORM, "a random order", figures.MUTED),
            (FULL, "FTPL, full information,\nadds up relevance", figures.ORANGE),
            (KEEP_REST, "RTop-1F", figures.BLUE),
            (OWN_TERMS, f"FTPL, full information,\nadds up {name}", figures.GREEN),
        ):
            if learner == OWN_TERMS and measure not in SEPARABLE:
                continue
            found = growth.growth(results, measure=measure, learner=learner)
            unit = forced * found["horizon"].to_numpy() / 100
            look = {"banded": learner in (KEEP_REST, OWN_TERMS), "points": learner != UNIFORM}
            figures.mean_curve(
                axes, found, label=label, colour=colour, scale=unit, dashed=learner == UNIFORM, **look
            )
        figures.log_axis(axes)
        axes.set_ylim(0, 180)
        axes.set_yticks([0, 50, 100, 150], ["0", "50 %", "100 %", "150 %"])
        figures.name_axes(axes, x="horizon T", y=f"{name} regret per round; 100 % is {forced:.4f}")
    return figures.finish(figure)
