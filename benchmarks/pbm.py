"""Rounds per second of FTRL-PBM, beside the paper's own method in SciPy and beside two bare passes over x."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from rich.console import RenderableType
from rich.table import Table

from benchmarks import bare_pbm, scipy_ftrl_pbm
from benchmarks.timing import FULL, Contender, Effort, race
from rankloop import environments, rankers, simulation
from rankloop.kernels import list_network

Size = tuple[int, int]  # items, positions

SIZES: tuple[Size, ...] = ((10, 5), (50, 10), (100, 10), (1_000, 10), (1_000, 50), (10_000, 10))
MORE_SIZES: tuple[Size, ...] = (
    (300, 10),
    (3_000, 10),
    (1_000, 5),
    (1_000, 20),
    (1_000, 100),
)  # for exponents

FUSED = "rankloop, fused"
SCIPY = "the paper's method, SciPy"
BARE = "bare: two passes, plain numba"
BARE_OWN = "bare: two passes, our kernel"

K = 1_000
WARM_ROUNDS = 5_000  # played before the clock starts
SCIPY_ROUNDS, SCIPY_SECONDS = 20, 3.0
WHOLE_UP_TO = 100  # items; beyond, a single round of the paper's method takes from minutes to days
MATCHED_UP_TO = (
    1_000  # items; beyond, the n x n matrix and its sparse copy take gigabytes: only the steps count
)

AIMS_OVER_SCIPY = {(10, 5): 8_000.0, (100, 10): 100_000.0}
AIM_OVER_BARE = 1 / 3  # from 50 items on
# Fused over two plain passes as of commit 7bc34f6, before items were summed in bulk, and the aim in times of it.
BEFORE = {
    (10, 5): (0.128, 1.6),
    (50, 10): (0.232, 1.5),
    (100, 10): (0.457, 1.3),
    (1_000, 10): (1.307, 3.0),
    (10_000, 10): (1.267, 4.0),
}
AIM_LARGEST = 5_000 / 1_000_000  # rounds at (10000, 10) for each at (10, 5)


@dataclass(frozen=True, slots=True)
class Rates:
    """Rounds per second of each contender at one size, and bytes held; a contender that is missing was not tried."""

    n: int
    m: int
    rounds_per_second: dict[str, float]
    scipy_is_a_bound: bool  # the paper's method was not played to the end, and is slower than told
    bytes_held: int

    @property
    def size(self) -> Size:
        """Items and positions."""
        return self.n, self.m

    def fused_over(self, contender: str) -> float:
        """How many rounds the fused loop plays while `contender` plays one; NaN where there is none."""
        return self.rounds_per_second[FUSED] / self.rounds_per_second.get(contender, float("nan"))


def people_for(n: int, m: int) -> environments.PositionBased:
    """Items of all kinds, positions looked at less and less: alpha from 0.95 to 0.05, beta = 1 / j."""
    return environments.PositionBased(
        attraction=np.linspace(0.95, 0.05, n), examination=1 / np.arange(1, m + 1)
    )


def measure(
    effort: Effort,
    tell: Callable[[str], None],
    *,
    sizes: tuple[Size, ...] = SIZES,
    more: tuple[Size, ...] = MORE_SIZES,
) -> list[Rates]:
    """Race ours and the bare passes at each size, then time the paper's method."""
    found = []
    for n, m in (*sizes, *more):
        tell(f"FTRL-PBM: {n:,} items, {m} positions")
        ranker, people = warm(n, m)
        seconds = race(
            {FUSED: of_rankloop(ranker, people), BARE: bare_loop(ranker), BARE_OWN: bare_own(ranker)},
            effort=effort,
            most_rounds=100_000,
        )
        bounded = n > WHOLE_UP_TO
        if (n, m) in sizes and (not bounded or effort == FULL):
            seconds[SCIPY] = scipy_at_least(ranker, people) if bounded else scipy_round(people, effort)
        rates = {name: 1 / spent for name, spent in seconds.items()}
        found.append(Rates(n, m, rates, bounded, bytes_held(n, m)))
    return found


def warm(n: int, m: int) -> tuple[rankers.FTRLPBM, environments.PositionBased]:
    """A ranker that has learnt a little, and its users."""
    ranker, people = rankers.FTRLPBM(n_items=n, n_positions=m), people_for(n, m)
    simulation.play(ranker, people, rounds=WARM_ROUNDS, seed=1, points=1, fused=True, progress=False)
    return ranker, people


def of_rankloop(ranker: rankers.FTRLPBM, people: environments.PositionBased) -> Contender:
    """The same ranker goes on from slice to slice."""

    def ready(rounds: int) -> Callable[[], object]:
        points = max(1, min(100, rounds // 100))
        return lambda: simulation.play(
            ranker, people, rounds=rounds, seed=2, points=points, fused=True, progress=False
        )

    return ready


def bare_loop(ranker: rankers.FTRLPBM) -> Contender:
    """x at the present multipliers, twice a round, in a plain loop."""
    L, u, v, x = (part.copy() for part in (ranker.state.L_hat, ranker.state.u, ranker.state.v, ranker.x))
    columns = np.empty(len(v))
    return lambda rounds: lambda: bare_pbm.double_loop(rounds, L, u, v, x, columns)


def bare_own(ranker: rankers.FTRLPBM) -> Contender:
    """The same with the solver's own kernel."""
    L, u, v, x = (part.copy() for part in (ranker.state.L_hat, ranker.state.u, ranker.state.v, ranker.x))
    rows = x.sum(axis=0)
    scratch = list_network.new_scratch(ranker.n_items, ranker.n_positions)
    return lambda rounds: lambda: bare_pbm.own_pass(rounds, L, u, v, x, rows, scratch)


def scipy_round(people: environments.PositionBased, effort: Effort) -> float:
    """CPU seconds a round of the paper's method, over a few rounds."""
    clicks = people.clicks[0].T
    plain = scipy_ftrl_pbm.FTRLPBM(
        n_items=people.n_items, n_positions=people.n_positions, K=K, rng=np.random.default_rng(1)
    )
    begun, rounds = time.process_time(), 0
    most = SCIPY_SECONDS if effort == FULL else SCIPY_SECONDS / 10
    while rounds < SCIPY_ROUNDS and time.process_time() - begun < most:
        plain.play(clicks, 1)
        rounds += 1
    return (time.process_time() - begun) / rounds


def scipy_at_least(ranker: rankers.FTRLPBM, people: environments.PositionBased) -> float:
    """Less than a round of the paper's method takes: its Frank-Wolfe steps and n matchings.

    The completed matrix has a positive entry everywhere, and a matching covers one of the n in a row: there are at
    least n matchings. Timed are a hundredth of the steps and one matching.
    """
    plain = scipy_ftrl_pbm.FTRLPBM(
        n_items=people.n_items, n_positions=people.n_positions, K=K // 100, rng=np.random.default_rng(1)
    )
    plain.x, plain.L_hat, plain.t = ranker.x.T.copy(), ranker.state.L_hat.T.copy(), int(ranker.state.t[0])
    begun = time.process_time()
    plain.solve()
    solved = time.process_time()
    if people.n_items > MATCHED_UP_TO:
        return 100 * (solved - begun)
    W = plain.completed()
    completed = time.process_time()
    plain.peel(W)
    return 100 * (solved - begun) + people.n_items * (time.process_time() - completed)


def bytes_held(n: int, m: int) -> int:
    """The most that a ranker and its play held, as `tracemalloc` sees it, users apart."""
    people = people_for(n, m)
    tracemalloc.start()
    try:
        ranker = rankers.FTRLPBM(n_items=n, n_positions=m)
        simulation.play(ranker, people, rounds=100, seed=1, points=1, fused=True, progress=False)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def exponent(found: list[Rates], contender: str, *, n: int | None = None, m: int | None = None) -> float:
    """p in seconds ~ n^p at `m` positions (from 100 items on), or ~ m^p at `n` items."""
    along = [one for one in found if (one.m == m and one.n >= 100) or one.n == n]
    sizes = [one.n if m is not None else one.m for one in along]
    seconds = [1 / one.rounds_per_second[contender] for one in along]
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def tables(found: list[Rates]) -> list[RenderableType]:
    """Rounds per second, ratios, growth, memory, and a line for each aim."""
    main = [one for one in found if one.size in SIZES]
    parts: list[RenderableType] = [_speed(main)]
    if any(one.scipy_is_a_bound and SCIPY in one.rounds_per_second for one in main):
        parts.append(f"≤: not played to the end; of its round, only {K:,} steps and n matchings are counted.")
    if len(found) > len(main):
        parts.append(_growth(found))
    return [*parts, *_aims(main), *_memory(found)]


def _speed(found: list[Rates]) -> Table:
    table = Table(
        title="FTRLPBM: rounds per second, and fused over the others",
        title_justify="left",
        title_style="bold",
    )
    for column in ("n", "m", "fused", "SciPy", "bare, plain", "bare, ours"):
        table.add_column(column, justify="right")
    for column in ("over SciPy", "over plain", "over ours"):
        table.add_column(column, justify="right", no_wrap=True)
    for one in found:
        bound = one.scipy_is_a_bound
        table.add_row(
            f"{one.n:,}",
            str(one.m),
            *(_rate(one, contender) for contender in (FUSED, SCIPY, BARE, BARE_OWN)),
            f"{'≥ ' if bound else ''}{one.fused_over(SCIPY):,.0f}x" if SCIPY in one.rounds_per_second else "",
            *(f"{one.fused_over(contender):.2f}x" for contender in (BARE, BARE_OWN)),
        )
    return table


def _rate(one: Rates, contender: str) -> str:
    rate = one.rounds_per_second.get(contender)
    if rate is None:
        return ""
    bound = "≤ " if contender == SCIPY and one.scipy_is_a_bound else ""
    return bound + (f"{rate:,.0f}" if rate >= 100 else f"{rate:.2g}")


def _growth(found: list[Rates]) -> Table:
    table = Table(
        title="FTRLPBM: growth, nanoseconds a round and entry of x", title_justify="left", title_style="bold"
    )
    for column in ("n", "m", "fused", "bare, plain", "bare, ours", "bytes an entry"):
        table.add_column(column, justify="right")
    for one in sorted(found, key=lambda rates: (rates.m != 10, rates.m, rates.n)):
        cells = [
            f"{1e9 / one.rounds_per_second[name] / (one.n * one.m):.2f}" for name in (FUSED, BARE, BARE_OWN)
        ]
        table.add_row(f"{one.n:,}", str(one.m), *cells, f"{one.bytes_held / (one.n * one.m):.0f}")
    table.add_section()
    for label, fixed in (("exponent of n", {"m": 10}), ("exponent of m", {"n": 1_000})):
        cells = [f"{exponent(found, name, **fixed):.2f}" for name in (FUSED, BARE, BARE_OWN)]
        table.add_row(label, "", *cells, "")
    return table


def _aims(found: list[Rates]) -> list[RenderableType]:
    by_size = {one.size: one for one in found}
    lines: list[RenderableType] = []
    for size, aim in AIMS_OVER_SCIPY.items():
        if size in by_size and SCIPY in by_size[size].rounds_per_second:
            ratio = by_size[size].fused_over(SCIPY)
            lines.append(
                f"{_met(ratio >= aim)}  fused over the paper's method at {size}: {ratio:,.0f}x, aim {aim:,.0f}x"
            )
    large = [one for one in found if one.n >= 50]
    for label, contender in (("plain numba", BARE), ("our own kernel", BARE_OWN)):
        if large:
            worst = min(large, key=lambda one: one.fused_over(contender))
            ratio = worst.fused_over(contender)
            reached = sum(one.fused_over(contender) >= AIM_OVER_BARE for one in large)
            lines.append(
                f"{_met(reached == len(large))}  within 3x of the bare cost in {label} from 50 items on: "
                f"{reached} of {len(large)}; furthest {1 / ratio:.1f}x, at {worst.size}"
            )
    if {(10, 5), (10_000, 10)} <= set(by_size):
        small, largest = (by_size[size].rounds_per_second[FUSED] for size in ((10, 5), (10_000, 10)))
        told = f"{1e6 * largest / small:,.0f} rounds at (10,000, 10) for a million at (10, 5), aim 5,000"
        lines.append(f"{_met(largest / small >= AIM_LARGEST)}  {told}")
    return lines + [_beside_before(by_size[size], *BEFORE[size]) for size in BEFORE if size in by_size]


def _beside_before(one: Rates, before: float, aim: float) -> str:
    ratio = one.fused_over(BARE)
    told = f"{ratio:.2f} of two plain passes, {ratio / before:.2f} times the {before:g} of before"
    return f"{_met(ratio >= aim * before)}  ({one.n:,}, {one.m}): {told}, aim {aim:g} times"


def _memory(found: list[Rates]) -> list[RenderableType]:
    large = [one for one in found if one.n * one.m >= 10_000]
    if not large:
        return []
    entries = [one.bytes_held / (one.n * one.m) for one in large]
    told = f"{min(entries):.0f} to {max(entries):.0f} bytes for each entry of x, from 10,000 entries on"
    return [f"{_met(max(entries) < 100)}  memory O(nm): {told}"]


def _met(good: bool) -> str:
    return "[green]   met[/]" if good else "[red]missed[/]"
