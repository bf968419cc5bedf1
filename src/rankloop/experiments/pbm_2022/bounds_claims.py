"""The claims of `pbm-2022-bounds` on each theorem and lemma."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from rankloop.experiments import runs
from rankloop.experiments.experiment import Claim
from rankloop.experiments.pbm_2022.bounds_runs import LEMMA, LOWER, UPPER
from rankloop.experiments.pbm_2022.gaps import theorem_2
from rankloop.experiments.pbm_2022.setting import N_ITEMS, N_POSITIONS, SOURCES, STOCHASTIC, WORLDS, World
from rankloop.experiments.plotting.figures import plain_number, power_law
from rankloop.rankers import FTRLPBM


def claims(results: pl.DataFrame) -> Iterator[Claim]:
    """All of them, in the order of the paper."""
    yield from _theorem_1(results)
    yield _theorem_2()
    yield _growth(results)
    yield from _theorem_3(results)
    yield _lemma_1(results)
    yield from _lemma_2(results)


def _upper(results: pl.DataFrame, world: World) -> pl.DataFrame:
    return runs.chosen(results, part=UPPER, source=world.source, kind=world.kind)


def along(results: pl.DataFrame, world: World) -> pl.DataFrame:
    """Means over the runs at each mark."""
    means = pl.col("regret", "closed", "sum", "pseudo", "gaps").mean()
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
        )
        .sort("n", "m", "round", descending=[False, True, False])
    )


def _theorem_1(results: pl.DataFrame) -> Iterator[Claim]:
    worst, tight = {}, {}
    for world in WORLDS:
        mean = along(results, world)
        worst[world.label] = float(mean["of bound"][-1])
        tight[world.label] = max((mean["regret"] / mean["sum"]).to_list())
    first, second = (max(found, key=lambda label: found[label]) for found in (worst, tight))
    yield Claim(
        text="Theorem 1, closed form: in every single run regret is below 3m + 2m log t + 6m sqrt(nt) at every t",
        holds=worst[first] < 1,
        measured=f"at most {worst[first]:.3f} of it ({first})",
        source="Theorem 1; erratum C8",
    )
    yield Claim(
        text="Theorem 1, the sum over x_t: mean regret is below it at every mark, although the smaller sum of "
        "sqrt(x) was taken",
        holds=tight[second] < 1,
        measured=f"at most {tight[second]:.3f} of it ({second})",
        source="Theorem 1",
    )


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
    powers = {}
    for source, label in SOURCES.items():
        mean = along(results, World(source, STOCHASTIC))
        late = mean.filter(pl.col("round") >= mean["round"][-1] / 10)
        powers[label], _ = power_law(late["round"].to_numpy(), late["regret"].to_numpy())
    return Claim(
        text="Over the last tenfold of rounds regret in stochastic worlds grows more like sqrt(T) than like log T, "
        "whose power would be below 0.1",
        holds=min(powers.values()) > 0.3 and max(powers.values()) < 0.8,
        measured="fitted power of t: " + ", ".join(f"{label} {power:.2f}" for label, power in powers.items()),
        source="Erratum C10",
    )


def _theorem_3(results: pl.DataFrame) -> Iterator[Claim]:
    found = lower(results)
    least, told, powers = [], [], []
    for (n, m), rows in found.group_by("n", "m", maintain_order=True):
        least += ((rows["mean"] - 3 * rows["error"]) / rows["least"]).to_list()
        power, _ = power_law(rows["round"].to_numpy(), rows["mean"].to_numpy())
        powers.append(power)
        last = rows.row(-1, named=True)
        told.append(
            f"({n}, {m}) at T = {plain_number(last['round'])}: {last['mean']:,.0f} ± {last['error']:.0f}, "
            f"bound {last['least']:,.0f}, power {power:.2f}"
        )
    yield Claim(
        text="Theorem 3: in its world regret at T is at least m sqrt((n-m+1) T) / 16, and far below Theorem 1",
        holds=min(least) > 1 and bool((found["mean"] < found["closed"]).all()),
        measured="; ".join(told),
        source="Theorem 3; erratum C11",
    )
    yield Claim(
        text="There it grows as sqrt(T): between the two bounds there is only a constant",
        holds=max(abs(power - 0.5) for power in powers) < 0.05,
        measured=", ".join(f"{power:.3f}" for power in powers),
        source="Theorems 1 and 3",
    )


def _lemma_1(results: pl.DataFrame) -> Claim:
    rows = runs.chosen(results, part=UPPER, kind=STOCHASTIC)
    ratios = rows.select("source", "round", ratio=pl.col("pseudo") / pl.col("gaps"))
    last = (
        ratios.filter(pl.col("round") == pl.col("round").max()).group_by("source").agg(pl.col("ratio").mean())
    )
    told = dict(last.iter_rows())
    return Claim(
        text="Lemma 1: at every mark of every run regret is at least half the sum of the gaps times x_t",
        holds=bool((ratios["ratio"] >= 1 - 1e-12).all()),
        measured=f"at least {min(ratios['ratio'].to_list()):.2f} times it; at the end "
        + ", ".join(f"{label} {told[source]:.1f}" for source, label in SOURCES.items()),
        source="Lemma 1",
    )


def _lemma_2(results: pl.DataFrame) -> Iterator[Claim]:
    rows = runs.chosen(results, part=LEMMA)
    least, ratio = (min(rows[column].to_list()) for column in ("least", "ratio"))
    tried = f"{int(rows['round'].sum()):,} instances, {int(rows['lists'].sum()):,} lists"
    yield Claim(
        text="Lemma 2: the regret of every list is at least half the sum of its gaps",
        holds=least > -1e-12,
        measured=f"{tried}: least difference {least:.0e}",
        source="Lemma 2; erratum C9",
    )
    yield Claim(
        text="One half is the best constant: two neighbours that have changed places attain it",
        holds=abs(ratio - 0.5) < 1e-9,
        measured=f"least regret over the sum of the gaps: {ratio:.10f}",
        source="Ours",
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
