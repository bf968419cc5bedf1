"""The rates of the 2015 paper: two thirds from the top item, one half with full information, one where hopeless.

Every horizon is a run of its own, because a learner is tuned to its horizon. Measures that can be learnt from the
top item are played with the users of section 10. NDCG, MAP and AUC cannot be (section 9): they are played in the two
worlds of each (`rankloop.environments.adversary`). In both every item is relevant to half of the users; the worlds
differ in which items are relevant together, which one label per round does not reveal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from numpy.typing import NDArray

from rankloop import environments, measures, plotting
from rankloop.environments import FixedItems, users
from rankloop.experiments import runs
from rankloop.experiments.experiment import Claim, Experiment, Job, seeded
from rankloop.experiments.mutations import Mutation, altered, instead
from rankloop.experiments.top1_2015 import setting
from rankloop.experiments.top1_2015.setting import (
    FULL,
    KEEP_REST,
    N_ITEMS,
    NOISE,
    RANDOM,
    UNIFORM,
    make_learner,
)
from rankloop.experiments.words import points
from rankloop.rankers import FTPL
from rankloop.simulation import play

LEARNABLE = {"sum_loss": "SumLoss", "dcg": "DCG", "precision@3": "Precision@3"}
HOPELESS = {"ndcg": "NDCG", "average_precision": "MAP", "auc": "AUC"}
THEOREM = {"sum_loss": "Theorem 7", "dcg": "Theorem 9", "precision@3": "Theorem 10"}
OWN_TERMS = "FTPL, own terms"
LEARNERS = (RANDOM, KEEP_REST, FULL)
# From top-1 feedback, from none, and with full information: none of them can win.
HOPELESS_LEARNERS = (KEEP_REST, UNIFORM, FULL)
# MAP is not a sum over the items, so there are no terms of its own that FTPL could add up.
SEPARABLE = ("ndcg", "auc")
# The bounds of the theorems are above what a random order loses at 10,000 rounds, two of the three at 100,000.
LONGEST = 1_000_000
# Below this horizon the luck of the best ranking in hindsight, of size sqrt(T), hides a slope as small as 0.02.
SETTLED = 10_000
_HORIZONS = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
_QUICK_HORIZONS = (1_000, 10_000, 100_000)
_SHORT = {RANDOM: "random", KEEP_REST: "keep-rest", FULL: "full"}
_SPOKEN = {RANDOM: "RTop-1F random", KEEP_REST: "RTop-1F keep-rest", FULL: "FTPL", UNIFORM: "a random order"}
Floats = NDArray[np.float64]


def hopeless_regret(measure: str, world: int, learner: str, *, horizon: int, seed: int) -> float:
    """Regret at `horizon` of a learner in one of the two worlds of a measure."""
    environment = environments.adversary(measure, world=world)
    if learner == OWN_TERMS:
        vectors, by_item = own_terms(measure, environment.vectors)
        world_as_told = FixedItems(users.listed(vectors, weights=environment.weights), measure=by_item)
        informed = FTPL(n_items=environment.n_items, horizon=horizon, measure=by_item)
        return play(informed, world_as_told, rounds=horizon, seed=seed, points=1, progress=False).total_regret
    # DCG is what RTop-1F and FTPL can aim for; they know nothing nearer to a normalised measure.
    ranker = make_learner(learner, n_items=environment.n_items, horizon=horizon, measure="dcg")
    met = FixedItems(environment, measure=measure)
    return play(ranker, met, rounds=horizon, seed=seed, points=1, progress=False).total_regret


def own_terms(measure: str, relevance: NDArray[np.int8] | Floats) -> tuple[Floats, str]:
    """The same users rescaled, so that DCG (for NDCG) or SumLoss (for AUC) has the measure's regret.

    NDCG is DCG divided by the user's ideal DCG, and AUC is SumLoss divided by the user's number of pairs, up to
    what no ranking can change. A learner with full information can do these divisions itself.

    >>> own_terms("auc", np.array([[1, 0, 0, 0], [1, 1, 0, 0]], dtype=np.int8))[0]
    array([[0.33333333, 0.        , 0.        , 0.        ],
           [0.25      , 0.25      , 0.        , 0.        ]])
    """
    m, s = relevance.shape[1], relevance.sum(axis=1, dtype=np.int64)
    if measure == "ndcg":
        ideal = np.concatenate([[0.0], np.cumsum(measures.get("dcg").discount(m))])[s]
        # DCG takes 2^r - 1 of its input.
        return np.log2(1 + _divided(relevance, ideal)), "dcg"
    if measure == "auc":
        return _divided(relevance, (s * (m - s)).astype(np.float64)), "sum_loss"
    raise ValueError(f"measure must be one of {', '.join(SEPARABLE)}, got {measure!r}")


def _divided(relevance: NDArray[np.int8] | Floats, by: Floats) -> Floats:
    # Where there is nothing to divide by, all rankings have the same value.
    return np.where(by[:, None] > 0, relevance / np.maximum(by, 1e-9)[:, None], 0.0)


def jobs(
    *, horizons: Sequence[int], learnable_runs: int, hopeless_runs: int, longest_runs: int | None = None
) -> list[Job]:
    """One job for each measure, learner and seed, which plays all horizons.

    The measures that can be learnt are also played at `LONGEST`, by so many seeds, where the bounds mean something: a
    random order passes there.
    """
    learnt = [(measure, learner, learnable_runs) for measure in LEARNABLE for learner in (*LEARNERS, UNIFORM)]
    for measure in HOPELESS:
        own = (OWN_TERMS,) if measure in SEPARABLE else ()
        learnt += [(measure, learner, hopeless_runs) for learner in (*HOPELESS_LEARNERS, *own)]
    most = learnable_runs if longest_runs is None else longest_runs
    listed = []
    for measure, learner, count in learnt:
        for seed in range(1, count + 1):
            hard = measure in HOPELESS
            played = sorted({*horizons} if hard or seed > most else {*horizons, LONGEST})
            settings: dict[str, Any] = {"worlds": [0, 1]} if hard else {"noise": NOISE, "n_items": N_ITEMS}
            settings |= {"measure": measure, "learner": learner, "horizons": played}
            cost = sum(played) * (2 if hard else 1)
            listed.append(seeded(f"{measure}, {learner}", seed=seed, cost=cost, **settings))
    return listed


class Growth:
    """How the regret of a learner grows with T, for one measure.

    `curve` has, by horizon: regret (mean, standard error, lowest and highest run) and bound. A run is a mean over its
    worlds.
    """

    def __init__(self, results: pl.DataFrame, measure: str, learner: str) -> None:
        rows = runs.chosen(results, measure=measure, learner=learner).group_by("horizon", "seed")
        by_run = rows.agg(pl.col("regret").mean(), pl.col("bound").first())
        bounds = by_run.group_by("horizon").agg(pl.col("bound").first())
        self.measure = measure
        self.curve = runs.over_runs(by_run, by="horizon").join(bounds, on="horizon", maintain_order="left")

    @property
    def last(self) -> dict[str, Any]:
        """The row of the longest horizon."""
        return self.curve.row(-1, named=True)

    @property
    def exponent(self) -> float:
        """The power of T that regret grows with, fitted to the means; in hard worlds from `SETTLED` on."""
        late = self.curve.filter(pl.col("horizon") >= (SETTLED if self.measure in HOPELESS else 0))
        return plotting.power_law(late["horizon"].to_numpy(), late["mean"].to_numpy())[0]

    @property
    def slope(self) -> tuple[float, float]:
        """Regret per round at the longest horizon, and its standard error."""
        return self.last["mean"] / self.last["horizon"], self.last["error"] / self.last["horizon"]

    @property
    def nearest(self) -> float:
        """How many times the costliest run of all horizons fits under its bound."""
        return float((self.curve["bound"] / self.curve["high"]).to_numpy().min())


class Top1Rates(Experiment):
    """Regret at T against T, for measures that can be learnt from the top item and for those that cannot."""

    name = "top1-2015-rates"
    title = "Two thirds, one half, one: how regret grows with T"
    paper = setting.PAPER + ", Theorems 7, 9, 10 and 12"
    caption = (
        "SumLoss, DCG and Precision@3 with ten items and the users of Figure 1, each horizon a run of its own; above "
        "them the bounds that the theorems give. NDCG, MAP and AUC with three or four "
        "items, in two worlds that no learner can tell apart from one label per round."
    )
    departures = points("""
        - The paper proves these rates and measures none of them; the experiment is ours.
        - The users are drawn for each run, not once for all: the spread of the runs then includes that of the users.
        - The paper proves that for NDCG, MAP and AUC some adversary forces linear regret. We play one that does: two
          worlds with the same relevance of single items, of which one is chosen at random.
    """)

    def jobs(self, *, quick: bool) -> list[Job]:
        if quick:
            return jobs(horizons=_QUICK_HORIZONS, learnable_runs=3, hopeless_runs=6, longest_runs=2)
        return jobs(horizons=_HORIZONS, learnable_runs=10, hopeless_runs=20)

    def run(self, job: Job) -> pl.DataFrame:
        """Regret at each horizon, with the bound where there is one; in hard worlds, both of them.

        A random order carries the bound of RTop-1F, which says nothing while a random order stays below it.
        """
        measure, learner = job.settings["measure"], job.settings["learner"]
        rows: list[tuple[str, str, int | None, int, float, float | None]] = []
        for T in job.settings["horizons"]:
            if measure in HOPELESS:
                for world in (0, 1):
                    lost = hopeless_regret(measure, world, learner, horizon=T, seed=job.seed)
                    rows.append((measure, learner, world, T, lost, None))
            else:
                ranker = make_learner(learner, n_items=N_ITEMS, horizon=T, measure=measure)
                environment = FixedItems(users.noisy_halves(n_items=N_ITEMS, noise=NOISE), measure=measure)
                trace = play(ranker, environment, rounds=T, seed=job.seed, points=1, progress=False)
                bounded = make_learner(RANDOM, n_items=N_ITEMS, horizon=T, measure=measure)
                bound = setting.bound_of(bounded if learner == UNIFORM else ranker)
                rows.append((measure, learner, None, T, trace.total_regret, bound))
        columns = {"measure": pl.String, "learner": pl.String, "world": pl.Int64, "horizon": pl.Int64}
        return pl.DataFrame(rows, schema=columns | {"regret": pl.Float64, "bound": pl.Float64}, orient="row")

    def claims(self, results: pl.DataFrame, *, quick: bool) -> Iterator[Claim]:
        of = cache(partial(Growth, results))
        yield from _learnable(of)
        yield from _hopeless(of, quick=quick)

    def figures(self, results: pl.DataFrame, *, quick: bool) -> dict[str, Figure]:
        drawn = {
            "three-rates": _three_rates,
            "below-the-bounds": _below_the_bounds,
            "hard-worlds": _hard_worlds,
        }
        return {name: draw(results) for name, draw in drawn.items()}

    def summary(self, results: pl.DataFrame) -> pl.DataFrame:
        lines = []
        for measure, learner in results.select("measure", "learner").unique(maintain_order=True).iter_rows():
            of = Growth(results, measure, learner)
            lines.append(
                {
                    "measure": (LEARNABLE | HOPELESS)[measure],
                    "learner": learner,
                    "exponent": round(of.exponent, 3) if len(of.curve) > 1 else None,
                    "T": int(of.last["horizon"]),
                    "regret per round": round(of.slope[0], 5),
                    "standard error": round(of.slope[1], 5),
                    "bound / regret": None if of.last["bound"] is None else round(of.nearest, 1),
                }
            )
        return pl.DataFrame(lines, infer_schema_length=None)


def _learnable(of: Callable[[str, str], Growth]) -> Iterator[Claim]:
    for measure in LEARNABLE:
        for learner in LEARNERS:
            # Fits to single runs spread by 0.005 (top-1) and 0.02 (full information). The rest of the margin is for the
            # shortest horizons, where the learner has hardly begun: without them the top-1 exponents move by 0.01.
            wanted, named, margin = (1 / 2, "1/2", 0.05) if learner == FULL else (2 / 3, "2/3", 0.03)
            exponent = of(measure, learner).exponent
            yield Claim(
                name=f"rate-{measure}-{_SHORT[learner]}",
                text=f"{LEARNABLE[measure]}, {_SPOKEN[learner]}: regret at T grows as T to the {named} ± {margin:g}",
                holds=abs(exponent - wanted) <= margin,
                measured=f"T^{exponent:.3f}",
                source="Appendix 13.2, equation 11" if learner == FULL else THEOREM[measure],
                mutation=instead(KEEP_REST if learner == FULL else FULL, learner, measure=measure),
            )
    for measure, name in LEARNABLE.items():
        above = {name: of(measure, name).nearest for name in LEARNERS}
        chance = of(measure, UNIFORM).last
        passed = chance["mean"] / chance["bound"]
        yield Claim(
            name=f"bound-{measure}",
            text=f"{name}: no run at any horizon passes its bound, and at T = {chance['horizon']:,} a random order "
            "passes that of RTop-1F",
            holds=min(above.values()) > 1 and passed > 1,
            measured="bound / costliest run at least "
            + ", ".join(f"{times:.1f} ({_SPOKEN[learner]})" for learner, times in above.items())
            + f"; a random order loses {passed:.2f} times the bound",
            source=f"{THEOREM[measure]}: RmK + 2(T/K)√(DRAK); FTPL: 2√(DRAT)",
            fixed=True,
            mutation=instead(UNIFORM, RANDOM, measure=measure),
        )


def _escaping(measure: str, learner: str) -> Mutation:
    """A learner that learns where it cannot: its regret grows as sqrt(T)."""
    where = {"measure": measure, "learner": learner}
    slower = pl.col("regret") * (1_000 / pl.col("horizon")).sqrt()
    return altered(f"regret of {learner} growing as sqrt(T) ({measure})", where=where, regret=slower)


def _hopeless(of: Callable[[str, str], Growth], *, quick: bool) -> Iterator[Claim]:
    for measure, name in HOPELESS.items():
        forced = environments.forced_regret(measure)
        power = of(measure, KEEP_REST).exponent
        margin = 0.1 if quick else 0.05  # two horizons instead of five
        yield Claim(
            name=f"linear-{measure}",
            text=f"{name} from the top item: regret grows as T to the 1 ± {margin:g}",
            holds=abs(power - 1) <= margin,
            measured=f"T^{power:.3f} over T from {SETTLED:,} on",
            source="Theorem 12",
            mutation=_escaping(measure, KEEP_REST),
        )
        slope, error = of(measure, KEEP_REST).slope
        yield Claim(
            name=f"forced-{measure}",
            text=f"{name}, RTop-1F: loses at least the forced {forced:.4f} per round, less three standard errors for "
            "chance",
            holds=slope >= forced - 3 * error,
            measured=f"{slope:.4f} ± {error:.4f}, {slope / forced:.1%} of it",
            source="Theorem 12, Lemma 11",
            fixed=True,
            mutation=_escaping(measure, KEEP_REST),
        )
        slope, error = of(measure, FULL).slope
        # No theorem: which items come together does shape how their sums wander, only not towards the better order.
        yield Claim(
            name=f"by-item-{measure}",
            text=f"{name}: FTPL, with full information but adding up relevance item by item, saves less than a "
            "tenth of it or three standard errors",
            holds=slope >= min(0.9 * forced, forced - 3 * error),
            measured=f"{slope:.4f} ± {error:.4f}, {slope / forced:.1%} of it",
            source="Lemma 11: the relevance of single items does not tell the worlds apart",
            mutation=_escaping(measure, FULL),
        )
        if measure not in SEPARABLE:
            continue
        slope, _ = of(measure, OWN_TERMS).slope
        power = of(measure, OWN_TERMS).exponent
        yield Claim(
            name=f"own-terms-{measure}",
            text=f"{name} in the same worlds, with full information and in its own terms: regret falls "
            "below a third of the forced, growing slower than T to the 2/3",
            holds=slope < forced / 3 and power < 2 / 3,
            measured=f"T^{power:.3f}, {slope / forced:.1%} of the forced regret at the longest horizon",
            source="Section 9: the feedback is not enough",
            mutation=instead(KEEP_REST, OWN_TERMS, measure=measure),
        )


def _three_rates(results: pl.DataFrame) -> Figure:
    """All measures in one panel, in a unit that they share."""
    figure, (axes,) = plotting.canvas(
        title="Two thirds, one half, one",
        subtitle="regret at T, counted in rounds of showing a random order; three measures a group",
        caption="Both axes count rounds, so the slope is the power of T; the fitted powers stand at the lines. Theory "
        "says 1 for NDCG, MAP and AUC from the top item (purple), 2/3 for the measures that the top item is enough "
        "for (blue), and 1/2 for those with full information (green).",
        height=5.6,
    )
    for group, learner, name, colour in (
        (HOPELESS, KEEP_REST, "NDCG, MAP, AUC\nfrom the top item", plotting.PURPLE),
        (LEARNABLE, KEEP_REST, "SumLoss, DCG, Prec@3\nfrom the top item", plotting.BLUE),
        (LEARNABLE, FULL, "SumLoss, DCG, Prec@3\nfull information", plotting.GREEN),
    ):
        powers, lines = [], []
        for measure in group:
            of = Growth(results, measure, learner)
            powers.append(of.exponent)
            # What a random order loses in a round.
            forced = measure in HOPELESS
            unit = (
                environments.forced_regret(measure) if forced else Growth(results, measure, UNIFORM).slope[0]
            )
            look = {"banded": False, "points": True}
            lines.append(plotting.mean_curve(axes, of.curve, label="_", colour=colour, scale=unit, **look))
        middle = sorted(lines, key=lambda line: float(np.asarray(line.get_ydata())[-1]))[len(lines) // 2]
        middle.set_label(f"{name}: {plotting.power_text(min(powers), max(powers))}")
    plotting.log_axis(axes, y=True)
    plotting.name_axes(axes, x="horizon T", y="rounds lost")
    return plotting.finish(figure)


def _below_the_bounds(results: pl.DataFrame) -> Figure:
    """Measured regret and its bound, a panel for each measure that can be learnt."""
    pairs = [(measure, learner) for measure in LEARNABLE for learner in LEARNERS]
    rooms = [Growth(results, measure, learner).nearest for measure, learner in pairs]
    count = runs.chosen(results, measure="dcg")["seed"].n_unique()
    figure, panels = plotting.canvas(
        title="Regret and the bounds of the theorems",
        subtitle=f"10 items, {count} runs for each horizon; band: all runs (often thinner than the line)",
        caption="RTop-1F explores with the rest of the order at random (orange) or as learnt (blue). Dashed: the "
        "bounds of Theorems 7, 9 and 10 (orange, for both) and that of FTPL (green). "
        + (
            f"No run passes its bound: the constants are {plotting.span(rooms, '.0f')} times larger than these "
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
            (RANDOM, "rest at random", "bound, RTop-1F", plotting.ORANGE),
            (KEEP_REST, "rest as learnt", "", plotting.BLUE),
            (FULL, "FTPL, full information", "bound, FTPL", plotting.GREEN),
            (UNIFORM, "random order", "", plotting.MUTED),
        ):
            of = Growth(results, measure, learner)
            if bound:
                T, bounds = of.curve["horizon"].to_numpy(), of.curve["bound"].to_numpy()
                plotting.curve(axes, T, bounds / 1_000, label=bound, colour=colour, dashed=True)
            named = f"{label}: {plotting.power_text(of.exponent)}"
            plotting.mean_curve(axes, of.curve, label=named, colour=colour, scale=1_000, points=True)
        plotting.log_axis(axes, y=True)
        # No higher than needed: the next power of ten would be a wide number beside the axis.
        axes.set_ylim(top=1.15 * axes.dataLim.y1)
        plotting.name_axes(axes, x="horizon T", y=f"{name} regret at T, in thousands")
    return plotting.finish(figure)


def _hard_worlds(results: pl.DataFrame) -> Figure:
    """Regret per round in the worlds that force it, a panel for each measure that cannot be learnt."""
    count, shares = runs.chosen(results, measure="ndcg")["seed"].n_unique(), {}
    for learner in (KEEP_REST, FULL, OWN_TERMS):
        played = SEPARABLE if learner == OWN_TERMS else HOPELESS
        lost = (
            (Growth(results, name, learner).slope[0], environments.forced_regret(name)) for name in played
        )
        shares[learner] = plotting.span(own / forced for own, forced in lost)
    figure, panels = plotting.canvas(
        title="Where top-1 feedback is not enough",
        subtitle=f"mean over both worlds, {count} runs a horizon; band: all runs (blue, green)",
        caption="Regret divided by T, where 100 % is what theory forces on every learner with one label per round. "
        f"At the end RTop-1F (blue) loses {shares[KEEP_REST]} of it, a learner with full "
        f"information that adds up relevance item by item (orange) {shares[FULL]}, and one with "
        f"full information and the measure’s own terms (green) {shares[OWN_TERMS]}; MAP is not a "
        "sum over items and has no such terms. At short horizons the luck of the best ranking in hindsight comes on "
        "top.",
        height=12.0,
        rows=len(HOPELESS),
    )
    for axes, (measure, name) in zip(panels, HOPELESS.items(), strict=True):
        forced = environments.forced_regret(measure)
        for learner, label, colour in (
            (UNIFORM, "a random order", plotting.MUTED),
            (FULL, "FTPL, full information,\nadds up relevance", plotting.ORANGE),
            (KEEP_REST, "RTop-1F", plotting.BLUE),
            (OWN_TERMS, f"FTPL, full information,\nadds up {name}", plotting.GREEN),
        ):
            if learner == OWN_TERMS and measure not in SEPARABLE:
                continue
            means, chance = Growth(results, measure, learner).curve, learner == UNIFORM
            unit = forced * means["horizon"].to_numpy() / 100
            look = {"banded": learner in (KEEP_REST, OWN_TERMS), "points": not chance, "dashed": chance}
            plotting.mean_curve(axes, means, label=label, colour=colour, scale=unit, **look)
        plotting.log_axis(axes)
        axes.set_ylim(0, 180)
        axes.set_yticks([0, 50, 100, 150], ["0", "50 %", "100 %", "150 %"])
        plotting.name_axes(axes, x="horizon T", y=f"{name} regret per round; 100 % is {forced:.4f}")
    return plotting.finish(figure)
