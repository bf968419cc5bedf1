"""How often a verdict is wrong, and after how many searches it is found: interleaving beside an A/B test.

Searches are for one of 200 queries with ten items each. A user looks at position k with probability 1 / k and clicks
what she likes of that. The preference of a search, and the clicks on a list, have exact distributions: no user is
simulated, only what the searches come to.
"""

import itertools
import math

import numpy as np
from cells import markdown
from numpy.typing import NDArray

from rankloop.feedback.anytime import reach, sign_evidence
from rankloop.feedback.interleaving import common_prefix

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
N_QUERIES, N_ITEMS, BETTER = 200, 10, 1.02
LOOK, ERROR, POWER = 100, 0.05, 0.8
Z = 1.959964 + 0.841621  # of a test with one look: two-sided, 5 %, found in 80 %
LOOKED = 1.0 / np.arange(1, N_ITEMS + 1)


def world(seed: int) -> tuple[Floats, dict[str, tuple[Ints, Ints]]]:
    """What users like, by query and item, and pairs of rankings, the second of which gets 2 % more clicks."""
    rng = np.random.default_rng(seed)
    liked = rng.beta(0.6, 2.4, (N_QUERIES, N_ITEMS))

    def noisy(noise: float, drawn: Floats) -> Ints:
        return np.argsort(-(liked + noise * drawn), axis=1, kind="stable")

    first, other = rng.standard_normal((2, N_QUERIES, N_ITEMS))
    today = noisy(0.25, first)
    wanted = BETTER * mean_clicks(liked, today)
    # A variant: neighbours change places, in some queries, until users click 2 % more.
    variant = today.copy()
    for query, place in itertools.product(rng.permutation(N_QUERIES), (1, 3, 5)):
        pair = variant[query, place : place + 2]
        if liked[query, pair[1]] > liked[query, pair[0]] and mean_clicks(liked, variant) < wanted:
            variant[query, place : place + 2] = pair[::-1]
    # Another ranker: errors of its own, as large as leaves it 2 % better.
    low, high = 0.0, 0.25
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if mean_clicks(liked, noisy(middle, other)) > wanted else (low, middle)
    return liked, {"a variant": (today, variant), "unrelated": (today, noisy(low, other))}


def mean_clicks(liked: Floats, orders: Ints) -> float:
    """Clicks for each search."""
    return float((np.take_along_axis(liked, orders, axis=1) * LOOKED).sum(axis=1).mean())


def ab_searches(liked: Floats, today: Ints, new: Ints) -> float:
    """Searches, of both groups together, of a test of mean clicks with one look."""
    moments = []
    for orders in (today, new):
        chance = np.take_along_axis(liked, orders, axis=1) * LOOKED
        mean = chance.sum(axis=1)
        moments.append((mean.mean(), (chance * (1.0 - chance)).sum(axis=1).mean() + mean.var()))
    (one, spread), (other, spread_of_other) = moments
    return float(2.0 * (spread + spread_of_other) * (Z / (other - one)) ** 2)


def preferences(liked: Floats, today: Ints, new: Ints, *, prefix_credit: bool = False) -> tuple[float, float]:
    """The chances that a search prefers the new ranking, and the one of today: over all coins and clicks."""
    wins = losses = 0.0
    for query, pair in enumerate(zip(today.tolist(), new.tolist(), strict=True)):
        free = 0 if prefix_credit else common_prefix([np.array(order) for order in pair])
        for coins in itertools.product((0, 1), repeat=N_ITEMS // 2):
            shown: list[int] = []
            difference = np.array([1.0])  # of credits, from -n to n
            for turn in range(N_ITEMS):
                captain = coins[turn // 2] ^ (turn % 2)
                shown.append(next(item for item in pair[captain] if item not in shown))
                if turn >= free:
                    click = LOOKED[turn] * liked[query, shown[-1]]
                    step = [0.0, 1.0 - click, click] if captain else [click, 1.0 - click, 0.0]
                    difference = np.convolve(difference, step)
            middle = len(difference) // 2
            wins += difference[middle + 1 :].sum()
            losses += difference[:middle].sum()
    n = len(today) * 2 ** (N_ITEMS // 2)
    return wins / n, losses / n


def sign_thresholds(n: int) -> Ints:
    """By number of decided searches, the smallest lead that is a verdict of the sign test."""
    found, lead = np.empty(n + 1, np.int64), 0
    for decided in range(n + 1):
        while lead <= decided and (
            (decided + lead) % 2
            or sign_evidence((decided + lead) // 2, (decided - lead) // 2) < -math.log(ERROR)
        ):
            lead += 1
        found[decided] = lead
        lead = max(0, lead - 2)
    return found


def told(
    win: float, lose: float, *, runs: int, searches: int, seed: int, session: int = 1, units: bool = False
) -> dict[str, Ints]:
    """By test, after how many searches each run had its verdict, with a look every 100; beyond the last where none.

    session: of so many searches, all of which prefer what the first does. units: only its first decided one counts.
    """
    rng, leads = np.random.default_rng(seed), sign_thresholds(searches)
    wins, decided, squares, n = (*np.zeros((2, runs), np.int64), *np.zeros((2, runs)))
    found = {test: np.full(runs, searches + 1) for test in ("sign", "bernstein")}
    x = first = np.zeros(runs, np.int64)
    for t in range(searches):
        counts = np.full(runs, True)
        if t % session == 0:
            drawn = rng.random(runs)
            x = first = (drawn < win).astype(np.int64) - (drawn > 1.0 - lose)
        elif units:
            counts &= first == 0
            x = np.zeros(runs, np.int64)
        squares += counts * (x - (2 * wins - decided) / np.maximum(n, 1.0)) ** 2
        n += counts
        wins += x > 0
        decided += x != 0
        if t % LOOK == LOOK - 1:
            lead = 2 * wins - decided
            for test, is_told in (
                ("sign", np.abs(lead) >= leads[decided]),
                ("bernstein", np.abs(lead) > reach({1: squares}, ERROR / 2)),
            ):
                found[test] = np.where(is_told & (found[test] > searches), t + 1, found[test])
    return found


def wrong(runs: int = 10_000, searches: int = 20_000) -> str:
    """False verdicts where both rankings are alike."""
    rows = []
    for words, session, units in (
        ("each search by another user", 1, False),
        ("five searches a session, each counted", 5, False),
        ("the same sessions, given as `unit`", 5, True),
    ):
        found = told(0.2, 0.2, runs=runs, searches=searches, seed=1, session=session, units=units)
        rows.append([words, *(f"{(found[test] <= searches).mean():.1%}" for test in ("sign", "bernstein"))])
    return markdown([f"{runs:,} comparisons, {searches:,} searches", "sign", "bernstein"], rows)


def searches_by_pair(runs: int = 1_000, seed: int = 1) -> dict[str, dict[str, float]]:
    """Searches until a ranking that is 2 % better is found with a power of 80 %, by pair of rankings and test."""
    liked, pairs = world(seed)
    found = {}
    for words, (today, new) in pairs.items():
        row = {"A/B": ab_searches(liked, today, new)}
        for name, prefix_credit in (("whole", True), ("team draft", False)):
            win, lose = preferences(liked, today, new, prefix_credit=prefix_credit)
            row[name] = (win + lose - (win - lose) ** 2) * (Z / (win - lose)) ** 2
        most = int(12 * row["team draft"] // LOOK + 1) * LOOK
        for test, ends in told(win, lose, runs=runs, searches=most, seed=2).items():
            row[test] = float(np.quantile(ends, POWER, method="higher"))
        found[words] = row
    return found


def table() -> str:
    """Searches of each test, and how many times fewer than of the A/B test."""
    columns = {
        "A/B": "A/B test, one look",
        "whole": "team draft with `prefix_credit`, one look",
        "team draft": "team draft, one look",
        "sign": "team draft, any time, `sign`",
        "bernstein": "team draft, any time, `bernstein`",
    }
    rows = [
        [
            words,
            f"{round(row['A/B'], -2):,.0f}",
            *(f"{round(row[one], -2):,.0f} ({row['A/B'] / row[one]:.1f}x)" for one in list(columns)[1:]),
        ]
        for words, row in searches_by_pair().items()
    ]
    return markdown(["the new ranking is", *columns.values()], rows)
