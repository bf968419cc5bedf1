"""The rates of the 2015 paper: two thirds from the top item, one half with full information, one where hopeless."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
from matplotlib.figure import Figure

from rankloop import environments
from rankloop.experiments.experiment import Claim, Experiment, Job
from rankloop.experiments.mutations import Mutation, altered, instead
from rankloop.experiments.top1_2015 import growth, rates_figures, setting
from rankloop.experiments.top1_2015.growth import LEARNABLE, THEOREM
from rankloop.experiments.top1_2015.hopeless import HOPELESS, OWN_TERMS, SEPARABLE
from rankloop.experiments.top1_2015.learners import FULL, KEEP_REST, RANDOM, UNIFORM

_HORIZONS = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
_QUICK_HORIZONS = (1_000, 10_000, 100_000)
_SHORT = {RANDOM: "random", KEEP_REST: "keep-rest", FULL: "full"}
_SPOKEN = {RANDOM: "RTop-1F random", KEEP_REST: "RTop-1F keep-rest", FULL: "FTPL", UNIFORM: "a random order"}


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
    departures = (
        "The paper proves these rates and measures none of them; the experiment is ours.",
        (
            "The users are drawn for each run, not once for all: the spread of the runs then includes that of the "
            "users."
        ),
        (
            "The paper proves that for NDCG, MAP and AUC some adversary forces linear regret. We play one that does: "
            "two worlds with the same relevance of single items, of which one is chosen at random."
        ),
    )

    def jobs(self, *, quick: bool) -> list[Job]:
        if quick:
            return growth.jobs(horizons=_QUICK_HORIZONS, learnable_runs=5, hopeless_runs=10, longest_runs=2)
        return growth.jobs(horizons=_HORIZONS, learnable_runs=10, hopeless_runs=20)

    def run(self, job: Job) -> pl.DataFrame:
        return growth.run(job)

    def claims(self, results: pl.DataFrame, *, quick: bool) -> Iterator[Claim]:
        yield from _learnable(results)
        yield from _hopeless(results, quick=quick)

    def figures(self, results: pl.DataFrame, *, quick: bool) -> dict[str, Figure]:
        return rates_figures.draw(results)

    def summary(self, results: pl.DataFrame) -> pl.DataFrame:
        return growth.table(results)


def _learnable(results: pl.DataFrame) -> Iterator[Claim]:
    for measure in LEARNABLE:
        for learner in growth.LEARNERS:
            # Fits to single runs spread by 0.005 (top-1) and 0.02 (full information). The rest of the margin is for the
            # shortest horizons, where the learner has hardly begun: without them the top-1 exponents move by 0.01.
            wanted, told, margin = (1 / 2, "1/2", 0.05) if learner == FULL else (2 / 3, "2/3", 0.03)
            found = growth.exponent(results, measure=measure, learner=learner)
            yield Claim(
                name=f"rate-{measure}-{_SHORT[learner]}",
                text=f"{LEARNABLE[measure]}, {_SPOKEN[learner]}: regret at T grows as T to the {told} ± {margin:g}",
                holds=abs(found - wanted) <= margin,
                measured=f"T^{found:.3f}",
                source="Appendix 13.2, equation 11" if learner == FULL else THEOREM[measure],
                fixed=False,
                mutation=instead(KEEP_REST if learner == FULL else FULL, learner, measure=measure),
            )
    for measure, name in LEARNABLE.items():
        room = {name: growth.nearest(results, measure=measure, learner=name) for name in growth.LEARNERS}
        chance = growth.growth(results, measure=measure, learner=UNIFORM).row(-1, named=True)
        passed = chance["mean"] / chance["bound"]
        yield Claim(
            name=f"bound-{measure}",
            text=f"{name}: no run at any horizon passes its bound, and at T = {chance['horizon']:,} a random order "
            "passes that of RTop-1F",
            holds=min(room.values()) > 1 and passed > 1,
            measured="bound / costliest run at least "
            + ", ".join(f"{times:.1f} ({_SPOKEN[learner]})" for learner, times in room.items())
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


def _hopeless(results: pl.DataFrame, *, quick: bool) -> Iterator[Claim]:
    for measure, name in HOPELESS.items():
        forced = environments.forced_regret(measure)
        power = growth.exponent(results, measure=measure, learner=KEEP_REST)
        margin = 0.1 if quick else 0.05  # two horizons instead of five
        yield Claim(
            name=f"linear-{measure}",
            text=f"{name} from the top item: regret grows as T to the 1 ± {margin:g}",
            holds=abs(power - 1) <= margin,
            measured=f"T^{power:.3f} over T from {growth.SETTLED:,} on",
            source="Theorem 12",
            fixed=False,
            mutation=_escaping(measure, KEEP_REST),
        )
        found, error = growth.slope(results, measure=measure, learner=KEEP_REST)
        yield Claim(
            name=f"forced-{measure}",
            text=f"{name}, RTop-1F: loses at least the forced {forced:.4f} per round, less three standard errors for "
            "chance",
            holds=found >= forced - 3 * error,
            measured=f"{found:.4f} ± {error:.4f}, {found / forced:.1%} of it",
            source="Theorem 12, Lemma 11",
            fixed=True,
            mutation=_escaping(measure, KEEP_REST),
        )
        found, error = growth.slope(results, measure=measure, learner=FULL)
        # No theorem: which items come together does shape how their sums wander, only not towards the better order.
        yield Claim(
            name=f"by-item-{measure}",
            text=f"{name}: FTPL, with full information but adding up relevance item by item, saves less than a "
            "tenth of it or three standard errors",
            holds=found >= min(0.9 * forced, forced - 3 * error),
            measured=f"{found:.4f} ± {error:.4f}, {found / forced:.1%} of it",
            source="Lemma 11: the relevance of single items does not tell the worlds apart",
            fixed=False,
            mutation=_escaping(measure, FULL),
        )
        if measure not in SEPARABLE:
            continue
        found, _ = growth.slope(results, measure=measure, learner=OWN_TERMS)
        power = growth.exponent(results, measure=measure, learner=OWN_TERMS)
        yield Claim(
            name=f"own-terms-{measure}",
            text=f"{name} in the same worlds, with full information and in its own terms: regret falls "
            "below a third of the forced, growing slower than T to the 2/3",
            holds=found < forced / 3 and power < 2 / 3,
            measured=f"T^{power:.3f}, {found / forced:.1%} of the forced regret at the longest horizon",
            source="Section 9: the feedback is not enough",
            fixed=False,
            mutation=instead(KEEP_REST, OWN_TERMS, measure=measure),
        )
