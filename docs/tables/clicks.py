"""Regret of rankers that observe clicks: ten items, five positions, the same users for all."""

from collections.abc import Callable

from cells import cell, markdown, regrets

from rankloop import environments, rankers
from rankloop.base import Environment, Ranker

ROUNDS, PHASE = 200_000, 50_000
SEEDS, FEW_SEEDS = range(1, 11), range(1, 6)
STILL = environments.named("gap-0.03")
SIZE = {"n_items": 10, "n_positions": 5}
WORLDS: dict[str, Callable[[], Environment]] = {
    "gap 0.03": lambda: environments.named("gap-0.03"),
    "Yandex": lambda: environments.named("yandex"),
    "items exchanged": lambda: environments.Periodic.exchanging(STILL, phase=PHASE),
    "items and positions reversed": lambda: environments.Periodic.reversing(STILL, phase=PHASE),
    "one user in ten reversed": lambda: environments.named("gap-0.03-corrupted"),
}
EXAMINATION = {"Yandex": environments.named("yandex").examination}
RANKERS: dict[str, Callable[[str], Ranker]] = {
    "FTRLPBM": lambda _: rankers.FTRLPBM(**SIZE),
    'FTRLPBM, `estimator="mean"`': lambda _: rankers.FTRLPBM(estimator="mean", **SIZE),
    "PBMTS": lambda _: rankers.PBMTS(**SIZE),
    "GRAB": lambda _: rankers.GRAB(**SIZE),
    "TopRank": lambda _: rankers.TopRank(horizon=ROUNDS, **SIZE),
    "PBMPIE": lambda world: rankers.PBMPIE(
        horizon=ROUNDS, examination=EXAMINATION.get(world, STILL.examination), **SIZE
    ),
    "PMED": lambda _: rankers.PMED(growth=1.5, tolerance=0.05, **SIZE),  # as in pbm-2022-fig1
    "MW": lambda _: rankers.MW(horizon=ROUNDS, **SIZE),
    "RankedExp3": lambda _: rankers.RankedExp3(horizon=ROUNDS, **SIZE),
    "CascadeKLUCB": lambda _: rankers.CascadeKLUCB(**SIZE),
    "Uniform": lambda _: rankers.Uniform(**SIZE),
}


def measured(name: str, world: str) -> str:
    """The cell of one ranker and one world."""
    seeds = FEW_SEEDS if name == "PMED" else SEEDS
    return cell(regrets(lambda: (RANKERS[name](world), WORLDS[world]()), rounds=ROUNDS, seeds=seeds))


def table() -> str:
    """All rankers on all worlds."""
    rows = []
    for name in RANKERS:
        page = name.split(",")[0]
        label = name.replace(page, f"[{page}](rankers/{page}.md)", 1)
        rows.append([label, *(measured(name, world) for world in WORLDS)])
    return markdown(["", *WORLDS], rows)
