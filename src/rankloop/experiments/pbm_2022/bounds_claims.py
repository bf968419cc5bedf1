"""What `pbm-2022-bounds` finds of each theorem and lemma."""

from __future__ import annotations

import numpy as np
import polars as pl

from rankloop.experiments.experiment import Claim
from rankloop.experiments.pbm_2022.bounds_runs import LEMMA, LOWER, UPPER
from rankloop.experiments.pbm_2022.gaps import theorem_2
from rankloop.experiments.pbm_2022.setting import (
    N_ITEMS,
    N_POSITIONS,
    SOURCES,
    STOCHASTIC,
    WORLDS,
    World,
    mean_and_error,
)
from rankloop.experiments.plotting.figures import plain_number, power_law
from rankloop.rankers import FTRLPBM


def claims(results: pl.DataFrame) -> list[Claim]:
    """All of them, in the order of the paper."""
    return [
        *_theorem_1(results),
        _theorem_2(),
        _growth(results),
        *_theorem_3(results),
        _lemma_1(results),
        *_lemma_2(results),
    ]


def along(results: pl.DataFrame, world: World) -> pl.DataFrame:
    """Means over the runs at each mark."""
    chosen = (pl.col("part") == UPPER) & (pl.col("source") == world.source) & (pl.col("kind") == world.kind)
    return (
        results.filter(chosen)
        .group_by("round")
        .agg(pl.col("regret", "closed", "sum", "pseudo", "gaps").mean(), pl.col("of bound").max())
        .sort("round")
    )


def _theorem_1(results: pl.DataFrame) -> list[Claim]:
    worst, tight = {}, {}
    for world in WORLDS:
        mean = along(results, world)
        worst[world.label] = float(mean["of bound"][-1])
        tight[world.label] = float((mean["regret"] / mean["sum"]).max())  # type: ignore[arg-type]
    first, second = (max(found, key=lambda label: found[label]) for found in (worst, tight))
    return [
        Claim(
            text="Theorem 1, closed form: in every single run regret is below 3m + 2m log t + 6m sqrt(nt) at every t",
            holds=worst[first] < 1,
            measured=f"at most {worst[first]:.3f} of it ({first})",
            source="Theorem 1; erratum C8",
        ),
        Claim(
            text="Theorem 1, the sum over x_t: mean regret is below it at every mark, although the smaller sum of "
            "sqrt(x) was taken",
            holds=tight[second] < 1,
            measured=f"at most {tight[second]:.3f} of it ({second})",
            source="Theorem 1",
        ),
    ]


def _theorem_2() -> Claim:
    T, told, holds = 1_000_000, [], True
    closed = FTRLPBM(n_items=N_ITEMS, n_positions=N_POSITIONS).regret_bound
    for source, label in SOURCES.items():
        still = World(source, STOCHASTIC).still()
        bound = theorem_2(still.attraction, still.examination, T)
        holds &= bound > closed(T)
        horizons = 10.0 ** np.arange(6, 17.5, 0.05)
        smaller = [t for t in horizons if theorem_2(still.attraction, still.examination, t) < closed(int(t))]
        told.append(f"{label} {bound:.1e}, the smaller of the two from T = {smaller[0]:.0e} on")
    return Claim(
        text="Theorem 2's O(log T) says less than Theorem 1 up to a million rounds: its constants are large",
        holds=holds,
        measured=f"Theorem 1 {closed(T):,.0f}; Theorem 2: " + "; ".join(told),
        source="Theorem 2; errata C8 and C10",
    )


def _growth(results: pl.DataFrame) -> Claim:
    told, powers = [], []
    for source, label in SOURCES.items():
        mean = along(results, World(source, STOCHASTIC))
        late = mean.filter(pl.col("round") >= mean["round"][-1] / 10)
        power, _ = power_law(late["round"].to_numpy(), late["regret"].to_numpy())
        powers.append(power)
        told.append(f"{label} {power:.2f}")
    return Claim(
        text="Over the last tenfold of rounds regret in stochastic worlds grows more like sqrt(T) than like log T, "
        "whose power would be below 0.1",
        holds=min(powers) > 0.3 and max(powers) < 0.8,
        measured="fitted power of t: " + ", ".join(told),
        source="Erratum C10",
    )


def _theorem_3(results: pl.DataFrame) -> list[Claim]:
    found = lower(results)
    least, told, powers = np.inf, [], []
    for (n, m), rows in found.group_by("n", "m", maintain_order=True):
        ratios = (rows["mean"] - 3 * rows["error"]) / rows["least"]
        least = min(least, float(ratios.min()))  # type: ignore[arg-type]
        power, _ = power_law(rows["round"].to_numpy(), rows["mean"].to_numpy())
        powers.append(power)
        last = rows.row(-1, named=True)
        told.append(
            f"({n}, {m}) at T = {plain_number(last['round'])}: {last['mean']:,.0f} ± {last['error']:.0f}, "
            f"bound {last['least']:,.0f}, power {power:.2f}"
        )
    return [
        Claim(
            text="Theorem 3: in its world regret at T is at least m sqrt((n-m+1) T) / 16, and far below Theorem 1",
            holds=least > 1 and float((found["mean"] / found["closed"]).max()) < 1,  # type: ignore[arg-type]
            measured="; ".join(told),
            source="Theorem 3; erratum C11",
        ),
        Claim(
            text="There it grows as sqrt(T): between the two bounds there is only a constant",
            holds=max(abs(power - 0.5) for power in powers) < 0.05,
            measured=", ".join(f"{power:.3f}" for power in powers),
            source="Theorems 1 and 3",
        ),
    ]


def lower(results: pl.DataFrame) -> pl.DataFrame:
    """Mean regret, its error and both bounds, by size and horizon."""
    return (
        results.filter(pl.col("part") == LOWER)
        .group_by("n", "m", "round", maintain_order=True)
        .agg(
            pl.col("regret").mean().alias("mean"),
            (pl.col("regret").std() / pl.len().sqrt()).alias("error"),
            pl.col("closed", "least").first(),
        )
        .sort("n", "m", "round", descending=[False, True, False])
    )


def _lemma_1(results: pl.DataFrame) -> Claim:
    rows = results.filter((pl.col("part") == UPPER) & (pl.col("kind") == STOCHASTIC))
    ratios = rows.select(pl.col("source", "round"), (pl.col("pseudo") / pl.col("gaps")).alias("ratio"))
    ends = (
        ratios.filter(pl.col("round") == pl.col("round").max()).group_by("source").agg(pl.col("ratio").mean())
    )
    told = {source: float(ratio) for source, ratio in ends.iter_rows()}
    return Claim(
        text="Lemma 1: at every mark of every run regret is at least half the sum of the gaps times x_t",
        holds=bool((ratios["ratio"] >= 1 - 1e-12).all()),
        measured=f"at least {float(ratios['ratio'].min()):.2f} times it; at the end "  # type: ignore[arg-type]
        + ", ".join(f"{label} {told[source]:.1f}" for source, label in SOURCES.items()),
        source="Lemma 1",
    )


def _lemma_2(results: pl.DataFrame) -> list[Claim]:
    rows = results.filter(pl.col("part") == LEMMA)
    least, ratio = float(rows["least"].min()), float(rows["ratio"].min())  # type: ignore[arg-type]
    tried = f"{int(rows['round'].sum()):,} instances, {int(rows['lists'].sum()):,} lists"
    return [
        Claim(
            text="Lemma 2: the regret of every list is at least half the sum of its gaps",
            holds=least > -1e-12,
            measured=f"{tried}: least difference {least:.0e}",
            source="Lemma 2; erratum C9",
        ),
        Claim(
            text="One half is the best constant: two neighbours that have changed places attain it",
            holds=abs(ratio - 0.5) < 1e-9,
            measured=f"least regret over the sum of the gaps: {ratio:.10f}",
            source="Ours",
        ),
    ]


def table(results: pl.DataFrame) -> pl.DataFrame:
    """At the end of the runs: regret beside both forms of Theorem 1, and Lemma 1's side."""
    rows = []
    for world in WORLDS:
        last = along(results, world).row(-1, named=True)
        chosen = (
            (pl.col("part") == UPPER) & (pl.col("source") == world.source) & (pl.col("kind") == world.kind)
        )
        ends = results.filter(chosen & (pl.col("round") == last["round"]))["regret"].to_numpy()
        rows.append(
            {
                "world": world.label,
                "regret": round(last["regret"]),
                "its error": round(mean_and_error(ends)[1]),
                "Theorem 1": round(last["closed"]),
                "its sum over x": round(last["sum"]),
                "most of the closed form, any round and run": round(last["of bound"], 3),
                "Lemma 1": None if last["gaps"] is None else round(last["gaps"]),
            }
        )
    return pl.DataFrame(rows)
