"""Worlds of clicks: those of the suite, and thirty-two more, written before any constant of ClickMix was chosen.

Every second world was there to choose constants by; the others are reported. Regret is a share of a random order's,
against the best list of the round's own users; where users are mixed at random, against the best fixed list.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from rankloop import feedback
from rankloop.environments.click_users import Tables, best_of_world, draw_clicks, expected_clicks
from rankloop.environments.click_worlds import best_lists
from rankloop.kernels.random import uniform

ROUNDS = 100_000
FALLING = 1 / np.arange(1, 6)
MIXED = np.array([7, 2, 9, 4, 0, 5, 8, 1, 6, 3])
NOBODY = Tables(np.zeros((1, 1, 1)), np.zeros((1, 1, 1)), np.zeros((1, 1, 1)), np.zeros((1, 1)))


@dataclass(kw_only=True)
class World:
    """Users who click: by tables of positions and items, or by a click model in which some are false."""

    name: str
    rounds: int = ROUNDS
    clicks: Any = None  # populations x positions x items
    values: Any = None  # what a click is worth; the clicks themselves but for bots
    best: Any = None  # by population: the value that regret is counted against
    schedule: Any = None  # by round: its population; None where it is drawn with `chances`
    chances: Any = None
    model: Any = None
    false: float = 0.0  # share of users who click on the promoted item alone
    promoted: int = 0
    victims: tuple[int, ...] = ()  # items whose clicks an attacker hides, as often as the budget allows
    budget: int = 0
    delay: int = 0
    arrivals: list[tuple[int, int]] = field(default_factory=list)  # round and item, where the ranker is told

    @property
    def size(self) -> dict[str, int]:
        """Items and positions."""
        m, n = (5, self.model.n_items) if self.clicks is None else self.clicks.shape[1:]
        return {"n_items": n, "n_positions": m}


class Users(NamedTuple):
    """A world as arrays that a compiled loop takes."""

    clicks: Any
    values: Any
    best: Any
    schedule: Any
    browsing: Tables
    is_model: bool
    rows: Any
    value: float
    false: float
    promoted: int
    victims: Any
    budget: int
    key: Any
    last: Any
    spent: Any
    full: Any


def users(world: World, seed: int) -> Users:
    """Fresh users."""
    n, m = world.size.values()
    schedule, browsing, value = world.schedule, NOBODY, 0.0
    if schedule is None:
        schedule = np.zeros(world.rounds, np.int64)
        if world.chances is not None:
            schedule = np.random.default_rng([7, seed]).choice(
                len(world.chances), world.rounds, p=world.chances
            )
    if world.model is not None:
        tables = world.model.browsing(m)
        value = best_of_world(tables)[0]
        browsing = Tables(*(np.ascontiguousarray(part[None]) for part in tables))
    victims = np.zeros(n, np.bool_)
    victims[list(world.victims)] = True
    empty = np.zeros((1, 1, 1))
    return Users(
        clicks=empty if world.clicks is None else world.clicks,
        values=empty if world.values is None else world.values,
        best=np.zeros(1) if world.best is None else world.best,
        schedule=np.ascontiguousarray(schedule, np.int64),
        browsing=browsing,
        is_model=world.model is not None,
        rows=np.arange(n),
        value=value,
        false=world.false,
        promoted=world.promoted,
        victims=victims,
        budget=world.budget,
        key=np.random.SeedSequence([29, seed]).generate_state(1, np.uint64)[0],
        last=np.zeros(m + 1),
        spent=np.zeros(1, np.int64),
        full=np.zeros(m),
    )


@njit(error_model="numpy")
def user(who: Any, t: int, items: Any, clicks: Any) -> Any:
    """Write what the user of round t clicks; returns what the list loses against the best one."""
    m = len(items)
    key = who.key ^ (np.uint64(t + 1) * np.uint64(0xD1342543DE82EF95))
    if not who.is_model:
        population, value = who.schedule[t], 0.0
        for j in range(m):
            clicks[j] = 1.0 if uniform(key, j) < who.clicks[population, j, items[j]] else 0.0
            value += who.values[population, j, items[j]]
        return who.best[population] - value
    if uniform(key, 1000) < who.false:
        for j in range(m):
            clicks[j] = 1.0 if items[j] == who.promoted else 0.0
        return 0.0
    tables = who.browsing
    one = Tables(tables.attraction[0], tables.examination[0], tables.after_click[0], tables.after_none[0])
    draw_clicks(one, who.rows, 0, items, m, key, clicks)
    if who.spent[0] < who.budget:
        hit = False
        for j in range(m):
            hit |= clicks[j] > 0 and who.victims[items[j]]
        if hit:
            who.spent[0] += 1
            for j in range(m):
                clicks[j] = 1.0 if items[j] == who.promoted else 0.0
    return who.value - expected_clicks(who, 0, items, who.last)


def random_regret(world: World) -> float:
    """What a random order loses."""
    who = users(world, 0)
    if world.model is None:
        return float((who.best - who.values.mean(axis=2).sum(axis=1))[who.schedule].sum())
    n, m = world.size.values()
    rng, clicks, rounds = np.random.default_rng(5), np.empty(m), 20_000
    lost = sum(user(who, t, rng.permutation(n)[:m], clicks) for t in range(rounds))
    return lost / rounds * world.rounds


def mixed(values: Any) -> Any:
    """Ten values in an order that is not theirs."""
    out = np.empty(10)
    out[MIXED] = values
    return out


def pbm(attraction: Any, examination: Any = FALLING) -> Any:
    """Click chances of the position-based model."""
    return np.outer(examination, attraction)


def tables(name: str, clicks: Any, **more: Any) -> World:
    """A world of click chances, by population."""
    clicks = np.asarray(clicks, float)
    clicks = np.ascontiguousarray(clicks[None] if clicks.ndim == 2 else clicks)
    values = np.ascontiguousarray(more.pop("values", clicks), float)
    chances, m = more.get("chances"), clicks.shape[1]
    if chances is None:
        lists, best = np.empty((len(values), m), np.int64), np.empty(len(values))
        best_lists(values, lists, best)
    else:
        lists, best = np.empty((1, m), np.int64), np.empty(1)
        best_lists(np.tensordot(np.array(chances), values, axes=1)[None], lists, best)
        best = np.array([part[np.arange(m), lists[0]].sum() for part in values])
    return World(name=name, clicks=clicks, values=values, best=best, **more)


def phases(length: int, n: int = 2, rounds: int = ROUNDS) -> Any:
    """Populations in turn."""
    return np.arange(rounds) // length % n


def catalogue(n: int) -> Any:
    """The attractions of the suite's catalogues."""
    features = np.random.default_rng([n, 1]).integers(0, 65, (n, 6)) / 64
    return 0.05 + 0.6 * (features @ (np.array([24, 16, 12, 8, 3, 0]) / 64))


def suite() -> list[World]:
    """The click worlds of the suite with up to a hundred items."""
    clear, turned = mixed(np.linspace(0.8, 0.17, 10)), mixed(np.linspace(0.17, 0.8, 10))
    share = np.concatenate([np.arange(21) / 20, np.arange(19, 0, -1) / 20])[:, None, None]
    corrupted = pbm(mixed(np.linspace(0.95, 0.68, 10)))
    a = mixed(np.linspace(0.5, 0.05, 10))
    position, last = np.indices((5, 5))
    models = {
        "cascade": feedback.CascadeModel(a),
        "dependent": feedback.DependentClickModel(a, np.linspace(0.9, 0.5, 5)),
        "browsing": feedback.UserBrowsingModel(a, 1 / (1 + 0.5 * np.maximum(position - last, 0))),
        "bayesian": feedback.DynamicBayesianModel(a, 0.2 + a, 0.9),
        "trust": feedback.TrustBiasModel(a, FALLING, np.linspace(0.95, 0.75, 5), 0.5 * FALLING),
    }
    cascade = feedback.CascadeModel(mixed([0.3, 0.28, 0.26, 0.24, 0.22, 0.1, 0.09, 0.08, 0.07, 0.06]))
    return [
        tables("noise-rare-clicks", pbm(mixed(np.linspace(0.1, 0.01, 10)))),
        tables("gap-0.03", pbm(mixed(0.95 - 0.03 * np.arange(10)))),
        tables("gap-0.01", pbm(mixed(0.95 - 0.01 * np.arange(10)))),
        tables("ties", pbm(mixed(np.repeat([0.6, 0.45, 0.3], [2, 4, 4])))),
        tables("positions-mixed", pbm(clear, [0.5, 0.2, 1.0, 0.1, 0.75])),
        tables("drift", (1 - share) * pbm(clear) + share * pbm(turned), schedule=phases(5_000, 40)),
        tables("reversal", [pbm(clear), pbm(turned)], schedule=phases(25_000)),
        *(
            tables(f"corruption-{s:g}", [corrupted, corrupted[::-1, ::-1]], chances=[1 - s, s])
            for s in (0.01, 0.03, 0.1)
        ),
        tables("delay-200", pbm(clear), rounds=20_000, delay=200),
        tables("scale-10", pbm(catalogue(10))),
        tables("scale-100", pbm(catalogue(100))),
        *(World(name=f"clicks-{name}", model=model) for name, model in models.items()),
        World(name="fraud-promoted", model=cascade, false=0.2, promoted=int(MIXED[9])),
        World(
            name="fraud-attacked",
            rounds=50_000,
            model=cascade,
            promoted=int(MIXED[9]),
            victims=tuple(MIXED[:3].tolist()),
            budget=200,
        ),
    ]


def more(rng: np.random.Generator) -> list[World]:
    """Thirty-two others. All are drawn from one generator, in this order."""

    def shuffled(values: Any) -> Any:
        return rng.permutation(np.asarray(values, float))

    def even(most: float, least: float, n: int = 10) -> Any:
        return shuffled(np.linspace(most, least, n))

    def coming(name: str, n: int, every: int, told: bool) -> World:
        a = rng.uniform(0.1, 0.8, n)
        clicks, arrivals = [pbm(a)], []
        for t in range(every, ROUNDS, every):
            item = int(rng.integers(n))
            a = a.copy()
            a[item] = rng.uniform(0.1, 0.8)
            clicks.append(pbm(a))
            if told:
                arrivals.append((t, item))
        return tables(name, clicks, schedule=phases(every, len(clicks)), arrivals=arrivals)

    def wandering(name: str, steps: int, size: float) -> World:
        x, clicks = rng.normal(0, 1, 10) - 0.8, []
        for _ in range(steps):
            clicks.append(pbm(1 / (1 + np.exp(-x))))
            x = -0.8 + (x + 0.8) * np.sqrt(1 - size**2) + size * rng.normal(0, 1, 10)
        return tables(name, clicks, schedule=phases(ROUNDS // steps, steps))

    out = [
        coming("arrivals-told", 10, 2_000, True),
        coming("arrivals-untold", 10, 2_000, False),
        coming("arrivals-told-slow", 20, 10_000, True),
        coming("arrivals-untold-slow", 20, 10_000, False),
        *(
            tables(f"delay-{delay}", pbm(even(0.8, 0.17)), rounds=30_000, delay=delay)
            for delay in (100, 1_000, 5_000)
        ),
        tables("delay-1000-rare", pbm(even(0.08, 0.01)), rounds=50_000, delay=1_000),
    ]
    a, b = even(0.8, 0.1), even(0.8, 0.1)
    out += [
        tables("day-night", [pbm(a), pbm(b)], schedule=phases(1_000)),
        tables("weekend", [pbm(a), pbm(b)], schedule=np.int64(np.arange(ROUNDS) % 7_000 >= 5_000)),
        wandering("wandering-slow", 100, 0.15),
        wandering("wandering-fast", 1_000, 0.1),
    ]
    a, other = even(0.8, 0.17), np.array([0.3, 0.5, 0.25, 1.0, 0.2])
    share = np.concatenate([np.arange(51) / 50, np.arange(49, 0, -1) / 50])[:, None, None]
    out += [
        tables("positions-drift", (1 - share) * pbm(a) + share * pbm(a, other), schedule=phases(1_000, 100)),
        tables("positions-switch", [pbm(a), pbm(a, FALLING[::-1])], schedule=phases(50_000)),
    ]
    a = even(0.7, 0.05)
    b = a.copy()
    b[np.argmin(a)] = 0.9
    out.append(tables("left-out-improves", [pbm(a), pbm(b)], schedule=np.int64(np.arange(ROUNDS) >= 33_333)))
    a, clicks = even(0.6, 0.1), []
    for _ in range(10):
        clicks.append(pbm(a))
        a = a * 0.97
        a[np.argsort(a)[rng.integers(5)]] = 0.65
    out.append(tables("one-after-another", clicks, schedule=phases(10_000, 10)))
    good, anything, first = pbm(even(0.6, 0.1)), np.full((5, 10), 0.5), np.zeros((5, 10))
    first[0] = 1
    nothing = np.zeros((5, 10))
    out += [
        tables("bots-everything", [good, anything], chances=[0.7, 0.3], values=[good, nothing]),
        tables("bots-top", [good, first], chances=[0.8, 0.2], values=[good, nothing]),
    ]
    leaving = feedback.DependentClickModel(even(0.5, 0.05), np.linspace(0.9, 0.6, 5))
    cascade = feedback.CascadeModel(even(0.4, 0.05))
    order = np.argsort(-cascade.attraction).tolist()
    out += [
        World(name="fraud-promoted-dcm", model=leaving, false=0.3, promoted=3),
        World(
            name="fraud-attacked-more",
            model=cascade,
            promoted=order[-1],
            victims=tuple(order[:2]),
            budget=600,
        ),
        World(
            name="cascade-clear",
            model=feedback.CascadeModel(shuffled([0.7, 0.5, 0.3, 0.2, 0.1, 0.08, 0.06, 0.05, 0.04, 0.03])),
        ),
    ]
    position, last = np.indices((5, 5))
    near = 0.95 / (1 + np.maximum(position - last, 0))
    out += [
        World(name="browsing-near", model=feedback.UserBrowsingModel(even(0.6, 0.05), near)),
        tables(
            "wide-1%", pbm(shuffled(0.02 * rng.beta(1, 2, 200)), 1 / np.sqrt(np.arange(1, 21))), rounds=50_000
        ),
        tables("gap-0.01-wide", pbm(shuffled(0.7 - 0.01 * np.arange(20)), 1 / np.arange(1, 11))),
        tables("grid", pbm(even(0.7, 0.1, 12), rng.permutation(np.linspace(1, 0.2, 9)))),
        tables("no-rank-one", rng.uniform(0.1, 0.7, (5, 10)) * np.sqrt(FALLING)[:, None]),
        World(
            name="trust-strong",
            model=feedback.TrustBiasModel(even(0.5, 0.1), FALLING, np.linspace(0.95, 0.7, 5), 0.8 * FALLING),
        ),
    ]
    a, b = even(0.8, 0.17), even(0.8, 0.17)
    rare = even(0.01, 0.001, 20)
    yandex = shuffled([0.894, 0.231, 0.139, 0.0745, 0.0585, 0.0424, 0.0237, 0.0234, 0.0231, 0.0178])
    query = pbm(yandex, [0.891, 0.227, 0.0778, 0.0412, 0.0378])
    chain = feedback.ClickChainModel
    return [
        *out,
        tables("seasons", [pbm(a), pbm(b)], schedule=phases(20_000)),
        tables("rare-0.1-1%", pbm(rare)),
        tables("yandex", query),
        tables("everything-reversed", [query, query[::-1, ::-1]], schedule=phases(25_000)),
        World(name="click-chain", model=chain(even(0.5, 0.05), np.array([0.9, 0.7, 0.3]))),
    ]


def worlds() -> list[World]:
    """All fifty-two; every second one, from the first on, was there to choose constants by."""
    return suite() + more(np.random.default_rng(29))


def for_choice() -> list[World]:
    """Not reported: attackers and a change that is hard to see, to choose constants by as well."""
    rng = np.random.default_rng(31)
    cascade = feedback.CascadeModel(
        rng.permutation([0.35, 0.3, 0.25, 0.12, 0.1, 0.1, 0.08, 0.06, 0.05, 0.04])
    )
    order = np.argsort(-cascade.attraction).tolist()
    attacks = [
        World(
            name=f"attack-{budget}",
            rounds=50_000,
            model=cascade,
            promoted=order[-1],
            victims=tuple(order[:3]),
            budget=budget,
        )
        for budget in (200, 1_000)
    ]
    a = rng.permutation(np.linspace(0.7, 0.05, 10))
    b = a.copy()
    b[np.argsort(a)[:3]] = [0.8, 0.9, 0.85]
    return [
        *attacks,
        tables("left-out", [pbm(a), pbm(b)], schedule=np.int64(np.arange(ROUNDS) >= ROUNDS // 2)),
    ]
