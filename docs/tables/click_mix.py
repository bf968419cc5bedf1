"""ClickMix beside the other rankers of clicks: `.venv/bin/python docs/tables/click_mix.py PBMTS` plays one of them.

What was played is kept in click_mix.json, from which the tables are made: shares of a random order's regret.
"""

import json
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from cells import markdown
from click_worlds import World, random_regret, user, users, worlds
from numba import njit

from rankloop import rankers

PLAYED = Path(__file__).with_suffix(".json")
HYBRID = {"regulariser": "hybrid", "estimator": "mean"}
INSURED = "ClickMix, `insurance=5`"
RANKERS: dict[str, Callable[[World], Any]] = {
    "ClickMix": lambda world: rankers.ClickMix(**world.size),
    INSURED: lambda world: rankers.ClickMix(insurance=5, **world.size),
    "PBMTS": lambda world: rankers.PBMTS(**world.size),
    "PBMTS, `forget=5000`": lambda world: rankers.PBMTS(forget=5000, **world.size),
    "FTRLPBM": lambda world: rankers.FTRLPBM(**HYBRID, **world.size),
    "GRAB": lambda world: rankers.GRAB(**world.size),
    "CascadeKLUCB": lambda world: rankers.CascadeKLUCB(**world.size),
}
LEAST = 5e-4  # shares below are level


@njit(error_model="numpy")
def _play(
    rank: Any,
    learn: Any,
    who: Any,
    start: int,
    end: int,
    params: Any,
    state: Any,
    scratch: Any,
    ticket: Any,
    clicks: Any,
    words: Any,
) -> float:
    items, propensities, memo = ticket
    lost = 0.0
    for t in range(start, end):
        rank(params, state, None, words[t], scratch, items, propensities, memo)
        lost += user(who, t, items, clicks)
        learn(params, state, None, scratch, items, propensities, memo, clicks)
    return lost


def regret(make: Callable[[World], Any], world: World, seed: int) -> float:
    """Of one run."""
    who, ranker, m = users(world, seed), make(world), world.size["n_positions"]
    clicks = np.empty(m)
    if world.delay:
        open_lists: deque[Any] = deque()
        rng, lost = np.random.default_rng([3, seed]), 0.0
        for t in range(world.rounds):
            shown = ranker.rank(rng=rng)
            lost += user(who, t, shown.items, clicks)
            open_lists.append((shown, clicks.copy()))
            if len(open_lists) > world.delay:
                ranker.learn(*open_lists.popleft())
        return lost
    words = np.random.default_rng([3, seed]).bit_generator.random_raw(world.rounds)
    rank, learn = (getattr(kernel, "compiled", kernel) for kernel in ranker.kernels)
    lost, start = 0.0, 0
    for end, item in [*world.arrivals, (world.rounds, -1)]:
        own = ranker.params, ranker.state, ranker.scratch(m), ranker.blank_ticket(m)
        lost += _play(rank, learn, who, start, end, *own, clicks, words)
        start = end
        if item >= 0:
            origin = np.arange(world.size["n_items"])
            origin[item] = -1
            old, ranker = ranker, make(world)
            ranker.carry(old, origin)
    return lost


def play(name: str, only: str = "", seeds: int = 2) -> None:
    """Play a ranker in all worlds, or in those whose names begin so, and keep what it lost."""
    for world in worlds():
        if world.name.startswith(only):
            runs = range(seeds if world.size["n_items"] < 100 else 1)
            shares = [regret(RANKERS[name], world, seed) / random_regret(world) for seed in runs]
            played = read()
            played.setdefault(world.name, {})[name] = [round(share, 5) for share in shares]
            PLAYED.write_text(json.dumps(played, indent=1, sort_keys=True) + "\n")
            print(f"{name:24} {world.name:24} {100 * np.mean(shares):7.2f} %", flush=True)


def read() -> dict[str, dict[str, list[float]]]:
    """What was played, by world and ranker."""
    return dict(json.loads(PLAYED.read_text())) if PLAYED.exists() else {}


def shares() -> dict[str, dict[str, float]]:
    """The means, by world and ranker, in the order of the worlds."""
    played = read()
    return {
        world.name: {name: float(np.mean(played[world.name][name])) for name in played[world.name]}
        for world in worlds()
        if world.name in played
    }


def _of_others(lost: dict[str, float], besides: str) -> tuple[str, float]:
    others = {name: lost[name] for name in lost if name != besides and name not in ("ClickMix", INSURED)}
    best = min(others, key=lambda name: others[name])
    return best, others[best]


def is_near(share: float, best: float) -> bool:
    """Within 1.5 times or one point of the best."""
    return share <= 1.5 * best or share <= best + 0.01


def aims() -> str:
    """Each ranker against the best of the others but ClickMix: in the worlds of choice, the others, and all."""
    rows, every = [], list(shares().values())
    for name in RANKERS:
        for label, part in (("choice", every[::2]), ("others", every[1::2]), ("all", every)):
            pairs = [(lost[name], _of_others(lost, name)[1]) for lost in part if name in lost]
            if not pairs:
                continue
            ratio = np.exp(np.mean([np.log(max(a, LEAST) / max(b, LEAST)) for a, b in pairs]))
            near = sum(is_near(a, b) for a, b in pairs)
            worst = max(a for a, _ in pairs)
            rows.append([name, label, f"{ratio:.2f}", f"{near} of {len(pairs)}", f"{100 * worst:.0f} %"])
    return markdown(["", "worlds", "geometric mean", "near the best", "worst"], rows)


def table(half: int = 1) -> str:
    """World by world, in % of a random order's regret: those that constants were not chosen on, or those they were."""
    columns = ["ClickMix", INSURED, "best of the others", "which", "PBMTS", "FTRLPBM"]
    rows = []
    for name, lost in list(shares().items())[half::2]:
        which, best = _of_others(lost, "")
        numbers = [lost["ClickMix"], lost.get(INSURED), best, lost.get("PBMTS"), lost.get("FTRLPBM")]
        cells = ["" if x is None else f"{100 * x:.1f}" if x >= 0.01 else f"{100 * x:.2f}" for x in numbers]
        rows.append([name, *cells[:3], which, *cells[3:]])
    return markdown(["world", *columns], rows)


if __name__ == "__main__":
    if sys.argv[1:]:
        play(*sys.argv[1:3])
    print(f"{aims()}\n\n{table(0)}\n\n{table()}")
