"""How often the page's intervals hold the truth, for every ranker that can be served, with and without drift.

    .venv/bin/python -m tests.serving.coverage                 # the table of the docs: an hour
    .venv/bin/python -m tests.serving.coverage TopFTRL RTopKF  # of these alone

An interval counts as wrong where it misses the truth at any of the looks up to there, as it may be watched at any time.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.serving.estimates import Estimates, discounts, weigh
from rankloop.serving.log.records import Config, Decision
from rankloop.serving.registry import build, has_items, served
from tests.serving.service import INSTEAD

Floats = NDArray[np.float64]
M = 5
LENGTHS = (500, 5_000, 50_000)
LOOKS = (20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000)
LIKED = np.linspace(0.9, 0.1, M)
LOOKED_AT = np.linspace(1.0, 0.3, M)
WEIGHTS = np.array([1.6, 0.8, -0.8])
PARAMETERS: dict[str, dict[str, Any]] = INSTEAD | {"RTopKF": {"max_grade": 1}, "CalibratedSquared": {}}


class Look(NamedTuple):
    """One interval that is shown, or that is not because it would say too little: then `width` is None."""

    holds: bool
    width: float | None


class Users:
    """Who likes what: always the same, or, with drift, the opposite in every other fifth of the time."""

    def __init__(self, algorithm: str, lists: int, *, drift: bool, seed: int) -> None:
        self.own = has_items(algorithm)
        self.rng = np.random.default_rng([seed, 1])
        self.turn = lists // 5 if drift else lists + 1

    def arrive(self, t: int) -> tuple[Floats | None, Floats]:
        """The features of a request, and how likely each of its items is liked."""
        turned = t // self.turn % 2
        if self.own:
            return None, LIKED[::-1] if turned else LIKED
        x = self.rng.normal(size=(M, 3)) / 2
        x /= np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True))
        return x, 1.0 / (1.0 + np.exp((2.0 if turned else -2.0) * (x @ WEIGHTS)))


def follow(
    algorithm: str, *, lists: int, seed: int, drift: bool = False, estimates: type[Estimates] = Estimates
) -> dict[tuple[str, int], Look]:
    """The intervals of one run, by measure and number of lists."""
    own = has_items(algorithm)
    parameters = PARAMETERS.get(algorithm, {}) | ({} if own else {"n_features": 3})
    config = Config(algorithm, seed, [str(i) for i in range(M)] if own else None, parameters)
    ranker = build(config, n_items=M)
    kept = estimates.of(ranker, n_items=M if own else 0, fresh=True)
    users, rng = Users(algorithm, lists, drift=drift, seed=seed), np.random.default_rng([seed, 2])
    truth: dict[str, float] = defaultdict(float)
    liked_so_far = np.zeros(M)
    clicks = ranker.feedback.kind == "clicks"
    precision = f"precision@{kept.k}"
    waits: dict[str, float] = {}
    before_units = 0
    found: dict[tuple[str, int], Look] = {}
    right: dict[str, bool] = defaultdict(lambda: True)
    for t in range(1, lists + 1):
        features, likes = users.arrive(t)
        shown = ranker.rank(features, rng=rng)
        chances = likes[shown.items]
        n = ranker.feedback.length(len(shown.items))
        if clicks:
            chances = chances * LOOKED_AT[: len(chances)]
        values = (users.rng.random(n) < chances[:n]).astype(float)
        weights = weigh(ranker, features, shown, k=kept.k)
        decision = Decision(0, 0, b"", b"", 0, False, weights=None if weights is None else weights.tobytes())
        before = ranker.exploration_block()
        ranker.learn(shown, values)
        kept.add(ranker, shown, values, decision, before)
        liked_so_far += likes
        truth["clicks"] += chances.sum()
        truth["relevance"] += chances[:n].mean()
        truth["relevant"] += chances[:n].mean()
        worth = discounts(len(chances), min(kept.k, len(chances))) @ chances
        for name, value in (("dcg", worth[0]), (precision, worth[1])):
            if kept.form == "blocks":  # what closed blocks are about
                waits[name] = waits.get(name, 0.0) + value
            else:
                truth[name] += value
        if kept.form == "blocks" and ranker.exploration_block() != before:
            if kept.sums["dcg"].n > before_units:
                before_units = kept.sums["dcg"].n
                for name, value in waits.items():
                    truth[name] += value
            waits = {}
        if t not in LOOKS and t != lists:
            continue
        told = kept.report()
        for name in kept.measures:
            n_lists = max(kept.sums[name].n, 1)
            of = discounts(M, kept.k)[int(name != "dcg")]
            best = float(np.sort(liked_so_far / t)[::-1] @ of)
            for what, true in (("value", truth[name] / n_lists), ("regret", best - truth[name] / n_lists)):
                if what == "regret" and not kept.by_item.size:
                    continue
                interval = told[what].get(name)
                label = name if what == "value" else f"regret, {name}"
                if interval is not None:
                    right[label] &= interval.low <= true <= interval.high
                    right[label] &= interval.low <= interval.mean <= interval.high
                found[label, t] = Look(
                    right[label], None if interval is None else interval.high - interval.low
                )
    return found


def table(algorithms: list[str], *, runs: dict[int, int]) -> int:
    """Print a row for each ranker and measure; how many rows are below 93%."""
    print("| ranker | measure | " + " | ".join(f"{n:,} lists" for n in LENGTHS) + " |")
    print("|---|---|" + "---|" * len(LENGTHS))
    below = 0
    every: dict[int, list[bool]] = defaultdict(list)
    for algorithm in algorithms:
        looks: dict[tuple[str, int], list[Look]] = defaultdict(list)
        for lists, n_runs in runs.items():
            for seed in range(n_runs):
                for drift in (False, True):
                    for key, look in follow(algorithm, lists=lists, seed=lists + seed, drift=drift).items():
                        looks[key].append(look)
        for label in dict.fromkeys(label for label, _ in looks):
            cells = []
            for length in LENGTHS:
                these = looks[label, length]
                widths = [one.width for one in these if one.width is not None]
                if len(widths) * 2 < len(these) or not widths:
                    cells.append("not shown")
                    continue
                held = [one.holds for one in these]
                every[length] += held
                below += np.mean(held) < 0.93
                cells.append(f"{sum(held)} of {len(held)}, {np.median(widths):.3f} wide")
            print(f"| `{algorithm}` | {label} | " + " | ".join(cells) + " |", flush=True)
    told = ", ".join(f"{np.mean(held):.2%} of {len(held)} at {n:,}" for n, held in every.items())
    print(f"\nIntervals that held: {told}.")
    return below


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("algorithms", nargs="*", default=sorted(served()))
    parser.add_argument(
        "--runs", type=int, nargs=3, default=(10, 8, 2), help="of 500, 5,000 and 50,000 lists"
    )
    given = parser.parse_args()
    sys.exit(table(given.algorithms, runs=dict(zip(LENGTHS, given.runs, strict=True))))
