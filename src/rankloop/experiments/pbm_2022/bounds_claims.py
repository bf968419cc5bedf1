"""The claims of `pbm-2022-bounds` on each theorem and lemma."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import polars as pl

from rankloop.experiments import runs
from rankloop.experiments.experiment import Claim
from rankloop.experiments.mutations import altered, times
from rankloop.experiments.pbm_2022.bounds_runs import LEMMA, LOWER, UPPER
from rankloop.experiments.pbm_2022.gaps import theorem_2
from rankloop.experiments.pbm_2022.setting import N_ITEMS, N_POSITIONS, SOURCES, STOCHASTIC, WORLDS, World
from rankloop.plotting.figures import plain_number, power_law
from rankloop.rankers import FTRLPBM

_RANDOM_LIST = altered(
    "a random list in the place of FTRL-PBM",
    where={"part": UPPER},
    **{"regret": pl.col("chance"), "of bound": pl.col("chance") / pl.col("closed")},
)


def claims(results: pl.DataFrame) -> Iterator[Claim]:
    """All of them, in the order of the paper."""
    yield from _theorem_1(results)
    yield _theorem_2(results)
    yield _growth(results)
    yield from _theorem_3(results)
    yield _lemma_1(results)
    yield _lemma_2(results)


def _upper(results: pl.DataFrame, world: World) -> pl.DataFrame:
    return runs.chosen(results, part=UPPER, source=world.source, kind=world.kind)


def along(results: pl.DataFrame, world: World) -> pl.DataFrame:
    """Means over the runs at each mark."""
    means = pl.col("regret", "closed", "sum", "chance", "pseudo", "gaps").mean()
    return _upper(results, world).group_by("round").agg(means, pl.col("of bound").max()).sort("round")


def lower(results: pl.DataFrame) -> pl.DataFrame:
    """Mean regret, its error and both bounds, by size and horizon."""
    regret = pl.col("regret")
    return (
        runs.chosen(results, part=LOWER)
        .group_by("n", "m", "round", maintain_order=True)
        .agg(
            mean=regret.mean(),
            error=regret.std() / pl.len().sqrt(),
            closed=pl.first("closed"),
            least=pl.first("least"),
            chance=pl.first("chance"),
        )
        .sort("n", "m", "round", descending=[False, True, False])
    )


def _theorem_1(results: pl.DataFrame) -> Iterator[Claim]:
    said, silent, tight, constants = {}, [], {}, {}
    for world in WORLDS:
        mean = along(results, world)
        last = mean.row(-1, named=True)
        if last["chance"] > last["closed"]:
            said[world.label] = float(last["of bound"])
        else:
            silent.append(world.label)
        tight[world.label] = max((mean["regret"] / mean["sum"]).to_list())
        unit = N_POSITIONS * math.sqrt(N_ITEMS * last["round"])
        constants[world.label] = (last["regret"] / unit, last["chance"] / unit)
    T = plain_number(last["round"])
    worst = max(said, key=lambda label: said[label], default="none")
    yield Claim(
        name="theorem-1",
        text="Theorem 1, closed form: in every single run regret is below 3m + 2m log t + 6m sqrt(nt) at every t, "
        f"in the worlds where a random list is above it after {T} rounds",
        holds=bool(said) and said[worst] < 1,
        measured=f"at most {said.get(worst, 0):.3f} of it ({worst}); says nothing where a random list stays below it "
        f"too: {', '.join(silent) or 'nowhere'}",
        source="Theorem 1; erratum C8",
        fixed=True,
        mutation=_RANDOM_LIST,
    )
    label = max(tight, key=lambda label: tight[label])
    yield Claim(
        name="theorem-1-sum",
        text="Theorem 1, the sum over x_t: mean regret is below it at every mark, although the smaller sum of "
        "sqrt(x) was taken",
        holds=tight[label] < 1,
        measured=f"at most {tight[label]:.3f} of it ({label})",
        source="Theorem 1",
        fixed=True,
        mutation=_RANDOM_LIST,
    )
    yield Claim(
        name="theorem-1-constant",
        text=f"The leading constant, regret over m sqrt(nT) after {T} rounds, is at most 1 in every world, where the "
        "theorem allows 6, and less than three quarters of a random list's",
        holds=all(own <= 1 and own < 0.75 * chance for own, chance in constants.values()),
        measured=", ".join(
            f"{label} {own:.2f} (random {chance:.2f})" for label, (own, chance) in constants.items()
        ),
        source="Theorem 1",
        fixed=False,
        mutation=_RANDOM_LIST,
    )


def _theorem_2(results: pl.DataFrame) -> Claim:
    T, told, holds = max(runs.chosen(results, part=UPPER)["round"].to_list()), [], True
    closed = FTRLPBM(n_items=N_ITEMS, n_positions=N_POSITIONS).regret_bound
    for source, label in SOURCES.items():
        still = World(source, STOCHASTIC).still()
        bound = theorem_2(still.attraction, still.examination, T)
        holds &= bound > closed(T)
        horizons = 10.0 ** np.arange(4, 17.5, 0.05)
        smaller = [t for t in horizons if theorem_2(still.attraction, still.examination, t) < closed(int(t))]
        told.append(f"{label} {bound:.1e}, the smaller of the two from T = {smaller[0]:.0e} on")
    return Claim(
        name="theorem-2",
        text=f"Theorem 2's O(log T) says less than Theorem 1 at {plain_number(T)} rounds: its constants are large",
        holds=holds,
        measured=f"Theorem 1 {closed(T):,.0f}; Theorem 2: " + "; ".join(told),
        source="Theorem 2; errata C8 and C10",
        fixed=True,
        mutation=altered("a horizon of 10^9 times as many rounds", round=10**9 * pl.col("round")),
    )


def _growth(results: pl.DataFrame) -> Claim:
    powers = {}
    for source, label in SOURCES.items():
        mean = along(results, World(source, STOCHASTIC))
        late = mean.filter(pl.col("round") >= mean["round"][-1] / 10)
        powers[label], _ = power_law(late["round"].to_numpy(), late["regret"].to_numpy())
    return Claim(
        name="growth",
        text="Over the last tenfold of rounds regret in stochastic worlds grows with a power of t between 0.3 and 0.8: "
        "faster than log T, whose power would be below 0.1, and slower than a random list's",
        holds=min(powers.values()) > 0.3 and max(powers.values()) < 0.8,
        measured="fitted power of t: " + ", ".join(f"{label} {power:.2f}" for label, power in powers.items()),
        source="Erratum C10",
        fixed=False,
        mutation=_RANDOM_LIST,
    )


def _theorem_3(results: pl.DataFrame) -> Iterator[Claim]:
    found = lower(results)
    last = found.group_by("n", "m", maintain_order=True).last()
    told = [
        f"({row['n']}, {row['m']}) at T = {plain_number(row['round'])}: {row['mean']:,.0f} ± {row['error']:.0f}, "
        f"random list {row['chance']:,.0f}, bound {row['least']:,.0f}"
        for row in last.iter_rows(named=True)
    ]
    yield Claim(
        name="theorem-3",
        text="Theorem 3: in its world regret at T is at least m sqrt((n-m+1) T) / 16, by more than three standard "
        "errors",
        holds=bool((found["mean"] - 3 * found["error"] > found["least"]).all()),
        measured="; ".join(told),
        source="Theorem 3; erratum C11",
        fixed=True,
        mutation=altered("a learner that knows the best list", where={"part": LOWER}, regret=0.0),
    )
    shares = (found["mean"] / found["chance"]).to_list()
    yield Claim(
        name="theorem-3-nothing-learnt",
        text="There FTRL-PBM does as well as a random list and no better, within a tenth, at every T and size: one "
        "list is better by too little to detect",
        holds=min(shares) > 0.9 and max(shares) < 1.1,
        measured=f"{min(shares):.3f} to {max(shares):.3f} of a random list's regret",
        source="The proof of Theorem 3",
        fixed=False,
        mutation=times(0.5, part=LOWER),
    )


def _lemma_1(results: pl.DataFrame) -> Claim:
    rows = runs.chosen(results, part=UPPER, kind=STOCHASTIC)
    ratios = rows.select("source", "round", ratio=pl.col("pseudo") / pl.col("gaps"))
    last = (
        ratios.filter(pl.col("round") == pl.col("round").max()).group_by("source").agg(pl.col("ratio").mean())
    )
    told = dict(last.iter_rows())
    return Claim(
        name="lemma-1",
        text="Lemma 1: at every mark of every run regret is at least half the sum of the gaps times x_t",
        holds=bool((ratios["ratio"] >= 1).all()),
        measured=f"at least {min(ratios['ratio'].to_list()):.2f} times it; at the end "
        + ", ".join(f"{label} {told[source]:.1f}" for source, label in SOURCES.items()),
        source="Lemma 1",
        fixed=True,
        mutation=times(3, "gaps"),
    )


def _lemma_2(results: pl.DataFrame) -> Claim:
    rows = runs.chosen(results, part=LEMMA)
    ratio = min(rows["ratio"].to_list())
    return Claim(
        name="lemma-2",
        text="Lemma 2: the regret of every list is at least half the sum of its gaps, and two neighbours that have "
        "changed places attain it: the least ratio of the two is one half, up to 1e-9 of rounding",
        holds=abs(ratio - 0.5) < 1e-9,
        measured=f"{int(rows['round'].sum()):,} instances, {int(rows['lists'].sum()):,} lists: {ratio:.10f}",
        source="Lemma 2; erratum C9; that one half is the best constant is ours",
        fixed=True,
        mutation=times(1.2, "ratio"),
    )


def table(results: pl.DataFrame) -> pl.DataFrame:
    """At the end of the runs: regret beside both forms of Theorem 1, and Lemma 1's side."""
    rows = []
    for world in WORLDS:
        last = along(results, world).row(-1, named=True)
        _, error = runs.mean_and_error(runs.ends(_upper(results, world), "regret"))
        rows.append(
            {
                "world": world.label,
                "regret": round(last["regret"]),
                "its error": round(error),
                "Theorem 1": round(last["closed"]),
                "its sum over x": round(last["sum"]),
                "most of the closed form, any round and run": round(last["of bound"], 3),
                "Lemma 1": None if last["gaps"] is None else round(last["gaps"]),
            }
        )
    return pl.DataFrame(rows)
