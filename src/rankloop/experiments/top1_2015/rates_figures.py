"""Pictures of how regret grows with T: the three rates, the bounds above them, and the worlds where nothing helps."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from rankloop import environments
from rankloop.experiments.plotting import figures
from rankloop.experiments.top1_2015 import growth
from rankloop.experiments.top1_2015.growth import LEARNABLE
from rankloop.experiments.top1_2015.hopeless import HOPELESS, OWN_TERMS, SEPARABLE
from rankloop.experiments.top1_2015.setting import FULL, KEEP_REST, RANDOM, UNIFORM

_COLOUR = {RANDOM: figures.ORANGE, KEEP_REST: figures.BLUE, FULL: figures.GREEN}


def three_rates(results: pl.DataFrame) -> Figure:
    """All measures in one panel, in a unit that they share."""
    figure, (axes,) = figures.canvas(
        title="Two thirds, one half, one",
        subtitle="regret at T, counted in rounds of showing a random order; three measures a group",
        caption="Both axes count rounds, so the slope is the power of T. NDCG, MAP and AUC (purple) lose as if nothing "
        "had been learnt, however long people come: slope one. The other three can be learnt from the top item (blue), "
        "with slope two thirds, and far more quickly when everything is told (green), with slope one half.",
        height=5.6,
    )
    for measures, learner, name, colour in (
        (HOPELESS, KEEP_REST, "NDCG, MAP, AUC\nfrom the top item", figures.PURPLE),
        (LEARNABLE, KEEP_REST, "SumLoss, DCG, Prec@3\nfrom the top item", figures.BLUE),
        (LEARNABLE, FULL, "SumLoss, DCG, Prec@3\ntold everything", figures.GREEN),
    ):
        powers = [growth.exponent(results, measure=measure, learner=learner) for measure in measures]
        lines = []
        for measure in measures:
            curve = growth.growth(results, measure=measure, learner=learner)
            lost = curve["mean"].to_numpy() / growth.price_of_random(results, measure)
            lines.append(
                figures.curve(axes, curve["horizon"].to_numpy(), lost, label="_", colour=colour, points=True)
            )
        middle = sorted(lines, key=lambda line: float(np.asarray(line.get_ydata())[-1]))[len(lines) // 2]
        middle.set_label(f"{name}: {_powers(powers)}")
    figures.log_axis(axes, y=True)
    figures.name_axes(axes, x="horizon T", y="rounds lost")
    return figures.finish(figure)


def below_the_bounds(results: pl.DataFrame) -> Figure:
    """Measured regret and its bound, a panel for each measure that can be learnt."""
    rooms = [
        growth.nearest(growth.growth(results, measure=measure, learner=learner))
        for measure in LEARNABLE
        for learner in growth.LEARNERS
    ]
    figure, panels = figures.canvas(
        title="What the theorems promise holds with room to spare",
        subtitle=f"10 items, {_runs(results)} runs for each horizon; band: all runs (often thinner than the line)",
        caption="RTop-1F explores with the rest of the order at random (orange) or as learnt (blue). Dashed: the "
        "bounds of Theorems 7, 9 and 10 (orange, for both) and that of FTPL (green). They lie above every single run, "
        f"in parallel with what is measured: the rates are right, the constants {min(rooms):.0f} to {max(rooms):.0f} "
        "times larger than these users make necessary.",
        height=12.0,
        rows=len(LEARNABLE),
    )
    for axes, (measure, name) in zip(panels, LEARNABLE.items(), strict=True):
        for learner, label in (
            (RANDOM, "rest at random"),
            (KEEP_REST, "rest as learnt"),
            (FULL, "FTPL, told all"),
        ):
            curve = growth.growth(results, measure=measure, learner=learner)
            T, colour = curve["horizon"].to_numpy(), _COLOUR[learner]
            if learner != KEEP_REST:
                bound = "bound, RTop-1F" if learner == RANDOM else "bound, FTPL"
                figures.curve(axes, T, curve["bound"].to_numpy(), label=bound, colour=colour, dashed=True)
            power = growth.exponent(results, measure=measure, learner=learner)
            figures.curve(
                axes,
                T,
                curve["mean"].to_numpy(),
                label=f"{label}: {_powers([power])}",
                colour=colour,
                band=(curve["low"].to_numpy(), curve["high"].to_numpy()),
                points=True,
            )
        figures.log_axis(axes, y=True)
        # No higher than needed: the next power of ten would be a wide number beside the axis.
        axes.set_ylim(top=1.15 * axes.dataLim.y1)
        figures.name_axes(axes, x="horizon T", y=f"{name} regret at T")
    return figures.finish(figure)


def hard_worlds(results: pl.DataFrame) -> Figure:
    """Regret per round in the worlds that force it, a panel for each measure that cannot be learnt."""
    figure, panels = figures.canvas(
        title="Where the top item tells nothing, patience does not help",
        subtitle=f"mean over both worlds, {_runs(results, 'ndcg')} runs a horizon; band: all runs (blue, green)",
        caption="Regret divided by T, where 100 % is what theory forces upon everybody who hears of one item a round. "
        "RTop-1F (blue) loses it, and so does a learner that is told the relevance of all items but adds it up item by "
        "item (orange): the worlds differ only in which items are relevant together. Who is told everything and adds "
        "up the measure’s own terms (green) escapes; MAP is no sum over items and has no such terms. At short horizons "
        "the luck of the best ranking in hindsight comes on top.",
        height=12.0,
        rows=len(HOPELESS),
    )
    for axes, (measure, name) in zip(panels, HOPELESS.items(), strict=True):
        forced = environments.forced_regret(measure)
        for learner, label, colour in (
            (UNIFORM, "a random order", figures.MUTED),
            (FULL, "FTPL, told all,\nadds up relevance", figures.ORANGE),
            (KEEP_REST, "RTop-1F", figures.BLUE),
            (OWN_TERMS, f"FTPL, told all,\nadds up {name}", figures.GREEN),
        ):
            if learner == OWN_TERMS and measure not in SEPARABLE:
                continue
            curve = growth.growth(results, measure=measure, learner=learner)
            unit = forced * curve["horizon"].to_numpy() / 100
            band = (curve["low"].to_numpy() / unit, curve["high"].to_numpy() / unit)
            figures.curve(
                axes,
                curve["horizon"].to_numpy(),
                curve["mean"].to_numpy() / unit,
                label=label,
                colour=colour,
                band=band if learner in (KEEP_REST, OWN_TERMS) else None,
                points=learner != UNIFORM,
                dashed=learner == UNIFORM,
            )
        figures.log_axis(axes)
        axes.set_ylim(0, 180)
        axes.set_yticks([0, 50, 100, 150], ["0", "50 %", "100 %", "150 %"])
        figures.name_axes(axes, x="horizon T", y=f"{name} regret per round; 100 % is {forced:.4f}")
    return figures.finish(figure)


def _runs(results: pl.DataFrame, measure: str = "dcg") -> int:
    return results.filter(pl.col("measure") == measure)["seed"].n_unique()


def _powers(exponents: Iterable[float]) -> str:
    low, high = (f"{edge:.2f}" for edge in (min(exponents), max(exponents)))
    return rf"$\mathbf{{T^{{{low}}}}}$" if low == high else rf"$\mathbf{{T^{{{low}–{high}}}}}$"
