"""How long a round takes, and how large a state is, as the number of items grows from ten to a hundred thousand."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import RenderableType

from benchmarks import bare
from benchmarks.clicks import settled, users_for
from benchmarks.fixed_items import made_for
from benchmarks.timing import FULL, Contender, Effort, going_on, headed, race
from rankloop import data, environments, rankers, simulation
from rankloop.base import Environment
from rankloop.feedback import CascadeModel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MANY = 100_000
SIZES = (10, 100, 1_000, 10_000, MANY)
POSITIONS = 10  # five where there are ten items
HORIZON = 1_000_000  # of rankers that have to know one
FEATURES = 46  # of a document, as in MQ2008
ITEM_FEATURES = 10  # of an item of a catalogue
LOOKS = 100  # at each item and position, before the clock starts, for rankers that count them
BEGINNING = 1_000  # rounds, of rankers that are slower there
FIT_FROM = 100  # below, what a round costs at any size hides what an item costs
BARE = "bare: a list, clicks"
_DOCUMENTS = 200_000  # in all lists of one length together, and at least four lists
_SHORT, _TIMES = 0.3, 3  # a run of fewer seconds is timed so often


@dataclass(frozen=True, slots=True)
class Entry:
    """A ranker for any number of items, who uses it, and how its round should grow with that number."""

    make: Callable[[int], Any]
    users: str
    theory: str
    up_to: int = MANY  # items; beyond, a round or a state is too large to be of use
    whole_run: int = 0  # rounds from the beginning that are timed as one; 0: slices of a run that goes on


@dataclass(frozen=True, slots=True)
class Rounds:
    """Seconds a round of one ranker at each size, how they should grow, and the bytes of its state."""

    name: str
    theory: str
    seconds: dict[int, float]
    bytes_held: dict[int, int]

    @property
    def exponent(self) -> float:
        """p in seconds ~ n^p, fitted on logarithmic axes from `FIT_FROM` items on; NaN for one size."""
        sizes = [n for n in self.seconds if n >= FIT_FROM]
        if len(sizes) < 2:
            return float("nan")
        return float(np.polyfit(np.log(sizes), np.log([self.seconds[n] for n in sizes]), 1)[0])


def shown(n: int) -> int:
    """How many of `n` items a list has."""
    return min(POSITIONS, n // 2)


def _size(n: int) -> dict[str, Any]:
    return {"n_items": n, "n_positions": shown(n)}


def _attraction(n: int) -> np.ndarray:
    return np.linspace(0.95, 0.05, n)


def _lists(n: int) -> data.Dataset:
    n_queries = max(4, min(1_000, _DOCUMENTS // n))
    lists = data.synthetic_letor(n_queries=n_queries, n_features=FEATURES, seed=1, list_length=(n, n))
    return lists.with_dtype("float32")


USERS: dict[str, Callable[[int], Environment]] = {
    "clicks": lambda n: users_for(n, shown(n)),
    "first click": lambda n: environments.ClickUsers(CascadeModel(_attraction(n)), n_positions=shown(n)),
    "relevance": lambda n: environments.FixedItems(environments.users.noisy_halves(n_items=n), measure="dcg"),
    "labels": lambda n: environments.QueryStream(_lists(n), measure="ndcg@10"),
    "clicked lists": lambda n: environments.ClickedQueries(_lists(n), clicks="perfect"),
}


def _counted(ranker: Any, chances: np.ndarray, *, clicks: str = "S") -> Any:
    # As if every item had been looked at often: nobody can wait until 100,000 have been.
    ranker.state.N[:] = LOOKS
    getattr(ranker.state, clicks)[:] = np.random.default_rng(1).binomial(LOOKS, chances)
    ranker.state.t[0] = LOOKS * ranker.n_items
    return ranker


def _by_position(n: int) -> np.ndarray:
    return users_for(n, shown(n)).clicks[0]


def _known(n: int) -> np.ndarray:
    return 1 / np.arange(1, shown(n) + 1)


def _features(n: int) -> np.ndarray:
    return np.random.default_rng(n).dirichlet(np.full(ITEM_FEATURES, 0.3), size=n)


def entries(*, quick: bool) -> dict[str, Entry]:
    """The rows of the table; a quick look at TopRank is shorter."""
    long = HORIZON // (5 if quick else 1)
    return {
        "FTRLPBM, first 1,000": Entry(
            lambda n: rankers.FTRLPBM(**_size(n)), "clicks", "n", whole_run=BEGINNING
        ),
        "FTRLPBM, after 5,000": Entry(lambda n: settled(n, shown(n))[0], "clicks", "n"),
        f"TopRank, first {long:,}": Entry(
            lambda n: rankers.TopRank(horizon=HORIZON, **_size(n)), "clicks", "n", 10_000, long
        ),
        "RankedExp3": Entry(lambda n: rankers.RankedExp3(horizon=HORIZON, **_size(n)), "clicks", "n"),
        "PBMPIE, known": Entry(
            lambda n: _counted(
                rankers.PBMPIE(horizon=HORIZON, examination=_known(n), **_size(n)), _by_position(n)
            ),
            "clicks",
            "n log n",
        ),
        "PBMTS": Entry(lambda n: _counted(rankers.PBMTS(**_size(n)), _by_position(n)), "clicks", "n"),
        "LinTSPBM, d = 10": Entry(
            lambda n: rankers.LinTSPBM(features=_features(n), n_positions=shown(n)), "clicks", "n log n"
        ),
        "CascadeKLUCB": Entry(
            lambda n: _counted(rankers.CascadeKLUCB(**_size(n)), _attraction(n), clicks="W"),
            "first click",
            "n log n",
        ),
        "RTop1F": Entry(lambda n: made_for("RTop1F", n)(), "relevance", "n log n"),
        "TopFTRL, first 1,000": Entry(
            lambda n: rankers.TopFTRL(n_items=n), "relevance", "n²", 1_000, BEGINNING
        ),
        "RTopKF, d = 46": Entry(lambda n: rankers.RTopKF(n_features=FEATURES), "labels", "n"),
        "PDGD, d = 46": Entry(
            lambda n: rankers.PDGD(n_features=FEATURES, n_positions=shown(n)), "clicked lists", "n"
        ),
    }


def measure(
    effort: Effort,
    tell: Callable[[str], None],
    *,
    sizes: tuple[int, ...] = SIZES,
    timed: dict[str, Entry] | None = None,
) -> list[Rounds]:
    """Time every ranker at each size: those with the same users in turn, and whole runs one by one."""
    timed = entries(quick=effort != FULL) if timed is None else timed
    found = {name: Rounds(name, entry.theory, {}, {}) for name, entry in timed.items()}
    found[BARE] = Rounds(BARE, "1", {}, {})
    for n in sizes:
        tell(f"catalogue: {n:,} items")
        for kind, make_users in USERS.items():
            here = {name: entry for name, entry in timed.items() if entry.users == kind and n <= entry.up_to}
            if here:
                _time(found, here, make_users(n), n, effort)
        found[BARE].seconds[n] = race("", {BARE: _bare(n)}, effort=effort, most_rounds=20_000).seconds[BARE]
    return list(found.values())


def _time(
    found: dict[str, Rounds], here: dict[str, Entry], users: Environment, n: int, effort: Effort
) -> None:
    contenders = {}
    for name, entry in here.items():
        ranker = entry.make(n)
        found[name].bytes_held[n] = _bytes_of((ranker.state, ranker.params))
        if entry.whole_run:
            del ranker
            found[name].seconds[n] = _seconds_of_a_run(entry, users, n)
        else:
            contenders[name] = going_on(ranker, users)
    for name, spent in race("", contenders, effort=effort, most_rounds=20_000).seconds.items():
        found[name].seconds[n] = spent


def _seconds_of_a_run(entry: Entry, users: Environment, n: int) -> float:
    play = partial(simulation.play, environment=users, seed=1, points=1, progress=False)
    play(entry.make(n), rounds=1)  # makes everything ready
    best = float("inf")
    for _ in range(_TIMES):
        users.restart()
        ranker, begun = entry.make(n), time.process_time()
        play(ranker, rounds=entry.whole_run)
        best = min(best, time.process_time() - begun)
        if best > _SHORT:
            break
    return best / entry.whole_run


def _bare(n: int) -> Contender:
    users, order, clicks = users_for(n, shown(n)), np.arange(n), np.zeros(n, np.int64)
    return lambda rounds: (
        lambda: bare.draw_and_click(rounds, order, users.attraction, users.examination, clicks)
    )


def _bytes_of(held: Any) -> int:
    if isinstance(held, np.ndarray):
        return held.nbytes
    return sum(map(_bytes_of, held)) if isinstance(held, tuple) else 0


def tables(found: list[Rounds]) -> list[RenderableType]:
    """Microseconds a round at each size, the exponent beside that of theory, and the size of the state."""
    sizes = list(found[-1].seconds)
    made = headed(
        f"Many items, {POSITIONS} shown where clicks are observed: microseconds a round",
        *(f"n = {n:,}" for n in sizes),
        "exponent",
        "theory",
        "state",
    )
    for one in found:
        times = (f"{1e6 * one.seconds[n]:,.3g}" if n in one.seconds else "" for n in sizes)
        fitted = "" if np.isnan(one.exponent) else f"{one.exponent:.2f}"
        made.add_row(one.name, *times, fitted, one.theory, _megabytes(one.bytes_held))
    note = f"Exponents are fitted from n = {FIT_FROM} on. State: arrays of the ranker at the largest n of its row."
    return [made, note]


def _megabytes(held: dict[int, int]) -> str:
    return f"{held[max(held)] / 1e6:,.3g} MB" if held else ""


# By the first word of a row, in the order of the palette.
_PANELS = {
    "Clicks observed": (
        "FTRLPBM",
        "TopRank",
        "RankedExp3",
        "LinTSPBM",
        "PBMPIE",
        "CascadeKLUCB",
        "PBMTS",
    ),
    "Other feedback, and documents": ("RTop1F", "TopFTRL", "RTopKF", "PDGD"),
}


def pictures(found: Sequence[Rounds]) -> dict[str, Figure]:
    """The same as lines."""
    from rankloop import plotting

    figure, panels = plotting.canvas(
        title="A round of FTRLPBM hardly grows with the number of items; most others look at each",
        subtitle="Microseconds of a simulated round by number of items, on one core: lower is better.",
        caption=f"Left: {POSITIONS} of n items are shown and clicks on them observed; dashed, the first rounds of "
        "FTRLPBM. Right: the top item of a list of all n is rated (RTop1F, TopFTRL), the label of the top document is "
        f"observed (RTopKF), or clicks on {POSITIONS} documents (PDGD). Lines end where a ranker is of no more use.",
        width=12.0,
        height=5.6,
        columns=2,
    )
    for axes, (title, names) in zip(panels, _PANELS.items(), strict=True):
        _panel(axes, found, names, title)
    return {"catalogue-growth": plotting.finish(figure)}


def _panel(axes: Axes, found: Sequence[Rounds], names: Sequence[str], title: str) -> None:
    from rankloop import plotting

    colours = (
        plotting.BLUE,
        plotting.ORANGE,
        plotting.GREEN,
        plotting.SKY,
        plotting.PURPLE,
        plotting.INK,
        plotting.GOLD,
    )
    drawn = set()
    for one in reversed(found):  # of two rows of a ranker, the second is its line
        name = one.name.split(",")[0]
        if name in names:
            again = name in drawn
            plotting.curve(
                axes,
                list(one.seconds),
                [1e6 * spent for spent in one.seconds.values()],
                label=f"_{one.name}" if again else name,
                colour=colours[names.index(name)],
                dashed=again,
                points=not again,
            )
            drawn.add(name)
    plotting.log_axis(axes, y=True)
    plotting.name_axes(axes, x="items, n", y=title)
    axes.set_ylim(0.05, 60_000)  # both panels alike
