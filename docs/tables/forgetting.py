"""Regret of rankers that forget, where users change at once or gradually."""

from collections.abc import Callable

from cells import cell, markdown, regrets
from changes import STILL, WORLDS

from rankloop import environments, rankers
from rankloop.base import Environment, Ranker

ROUNDS, SEEDS = 20_000, range(1, 4)
SIZE = {"n_items": 10, "n_positions": 5}
EXCHANGED, REVERSED = "halves of the items exchanged", "items and positions reversed"
USERS: dict[str, Callable[[], Environment]] = {
    "nobody changes": lambda: environments.named("gap-0.03"),
    "items exchanged every 1,000": lambda: WORLDS[EXCHANGED](1_000),
    "items exchanged every 5,000": lambda: WORLDS[EXCHANGED](5_000),
    "items and positions reversed every 5,000": lambda: WORLDS[REVERSED](5_000),
    "the same gradually, there and back": lambda: environments.Drifting(STILL, steps=10, phase=1_000),
}


def forgetting(kind: Callable[..., Ranker], label: str, **given: str) -> dict[str, Callable[[], Ranker]]:
    """The ranker as it is, and with two lengths of memory."""

    def maker(forget: int | None) -> Callable[[], Ranker]:
        return lambda: kind(forget=forget, **given, **SIZE)

    rows = {label: maker(None)}
    return rows | {f"the same, `forget={length:_}`": maker(length) for length in (1_000, 5_000)}


GROUPS = (
    {"defaults": lambda: rankers.FTRLPBM(**SIZE)},
    forgetting(
        rankers.FTRLPBM,
        '`regulariser="hybrid", estimator="mean"`',
        regulariser="hybrid",
        estimator="mean",
    ),
    forgetting(rankers.PBMTS, "[PBMTS](PBMTS.md)"),
)


def measured(make: Callable[[], Ranker], users: str) -> str:
    """The cell of one ranker and one world."""
    return cell(regrets(lambda: (make(), USERS[users]()), rounds=ROUNDS, seeds=SEEDS))


def table() -> str:
    """Each ranker with each kind of users."""
    rows = [
        [name, *(measured(make, users) for users in USERS)]
        for group in GROUPS
        for name, make in group.items()
    ]
    return markdown(["", *USERS], rows)
