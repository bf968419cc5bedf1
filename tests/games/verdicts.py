"""A game of each class, its verdicts by both routes, and forgeries: every field of both kinds of witness changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

from rankloop.games import Refused, Term, classify, ranking_game, verify
from rankloop.games.exact import Mixture


def changed(verdict: Any, **parts: Any) -> Any:
    """The same verdict with another witness."""
    return dataclasses.replace(verdict, witness=dataclasses.replace(verdict.witness, **parts))


def refused(game: Any, verdict: Any, match: str | None = None) -> None:
    """The verdict is refused, in words that match."""
    with pytest.raises(Refused, match=match):
        verify(game, verdict)


GAMES = {
    "easy": ranking_game(measure="precision@2", n_items=3, k=1),
    "hard": ranking_game(measure="sum_loss", n_items=3, k=1),
    "hopeless": ranking_game(measure="ndcg", n_items=3, k=1),
    "trivial": ranking_game(measure="precision@3", n_items=3, k=1),
}
CELLS = {name: classify(game, route="cells") for name, game in GAMES.items()}
SWAPS = {name: classify(game, route="structure") for name, game in GAMES.items()}


TINY = Fraction(1, 10**30)
Forged = Iterator[tuple[str, Any]]

# Changes that leave a valid proof, and why. Everything else must be refused.
STILL_PROOFS = {
    "worlds removed": "of a proof by swaps: the unseen term proves the class, the worlds illustrate it",
    "worlds exchanged": "the two worlds in the other order, with their best actions",
    "outcomes reordered": "the same worlds, listed from the other end",
    "point doubled": "a distribution is given up to a factor",
    "wall doubled": "a distribution is given up to a factor",
    "touching doubled": "a distribution is given up to a factor",
    "mixture doubled": "weights are given up to a factor",
    "apart doubled": "weights and s are given up to a factor",
    "direction turned": "minus a direction that nobody sees is one, too",
    "direction doubled": "so is twice the direction",
}


def of_verdict(verdict: Any) -> Forged:
    """Fields of the verdict itself."""

    def with_(name: str, **fields: Any) -> tuple[str, Any]:
        return name, dataclasses.replace(verdict, **fields)

    for class_ in {"trivial", "easy", "hard", "hopeless", "simple"} - {verdict.class_}:
        yield with_(f"class {class_}", class_=class_)
    for route in {"cells", "structure", "faith"} - {verdict.route}:
        yield with_(f"route {route}", route=route)
    for name in ("n_actions", "n_outcomes", "n_items", "k", "max_grade"):
        value = getattr(verdict, name)
        yield with_(f"{name} more", **{name: 7 if value is None else value + 1})
        if value is not None:
            yield with_(f"{name} missing", **{name: None})
    yield with_("measure", measure="dcg@9")
    for name in ("pareto", "degenerate", "dominated"):
        yield with_(f"{name} longer", **{name: (*getattr(verdict, name), 99)})
        if getattr(verdict, name):
            yield with_(f"{name} shorter", **{name: getattr(verdict, name)[1:]})
    yield with_("neighbours longer", neighbours=(*verdict.neighbours, (0, 99)))
    if verdict.neighbours:
        yield with_("neighbours shorter", neighbours=verdict.neighbours[1:])
    yield with_("easier added", easier_k={**verdict.easier_k, "trivial": 1})
    for better, k in verdict.easier_k.items():
        rest = {other: value for other, value in verdict.easier_k.items() if other != better}
        yield with_("easier dropped", easier_k=rest)
        yield with_("easier earlier", easier_k={**rest, better: k - 1})
        yield with_("easier later", easier_k={**rest, better: k + 1})


def of_worlds(verdict: Any) -> Forged:
    """Two worlds: removed, or every part perturbed."""
    worlds = verdict.witness.worlds
    if worlds is None:
        return

    def with_(name: str, **fields: Any) -> tuple[str, Any]:
        return name, changed(verdict, worlds=dataclasses.replace(worlds, **fields))

    p, q = worlds.chances
    yield "worlds removed", changed(verdict, worlds=None)
    yield with_("worlds exchanged", chances=(q, p), best=worlds.best[::-1])
    yield with_("outcomes reordered", outcomes=worlds.outcomes[::-1], chances=(p[::-1], q[::-1]))
    for name, forced in (("more", TINY), ("less", -TINY), ("gone", -worlds.forced)):
        yield with_(f"forced {name}", forced=worlds.forced + forced)
    yield with_("forced rounded", forced=float(worlds.forced))
    yield with_("forced doubled", forced=2 * worlds.forced)
    yield with_("one world", chances=(p, p))
    yield with_("chances exchanged", chances=(q, p))
    yield with_("best exchanged", best=worlds.best[::-1])
    yield with_("best the same", best=(worlds.best[0],) * 2)
    yield with_("best unknown", best=((0, 0, 0), (1, 1, 1)))
    yield with_("best missing", best=None)
    yield with_("chances rounded", chances=tuple(tuple(map(float, side)) for side in (p, q)))
    last = len(p) - 1
    for at in {0, last // 2, last}:
        to = (at + 1) % len(p)
        moved = list(p)
        moved[at], moved[to] = moved[at] + TINY, moved[to] - TINY
        yield with_("chance moved", chances=(tuple(moved), q))
        yield with_("chance added", chances=((*p[:at], p[at] + TINY, *p[at + 1 :]), q))
        without = [tuple(x for i, x in enumerate(each) if i != at) for each in (worlds.outcomes, p, q)]
        yield with_("outcome removed", outcomes=without[0], chances=(without[1], without[2]))
        yield with_(
            "outcome twice", outcomes=(*worlds.outcomes[:at], worlds.outcomes[to], *worlds.outcomes[at + 1 :])
        )
    yield with_("chances halved", chances=(tuple(x / 2 for x in p), q))


def of_swaps(verdict: Any) -> Forged:
    """Blocks merged, split, dropped; the term added, dropped and changed."""
    w = verdict.witness
    m = verdict.n_items
    sizes = [size for count, size in w.blocks for _ in range(count)] if m <= 100 else []
    for blocks in (
        (),
        ((1, m + 1),),
        ((1, 1), (1, m - 1)),
        ((1, m - 1), (1, 1)),
        ((1, 2), (m - 2, 1)),
        ((m - 2, 1), (1, 2)),
        ((1, m),),
        ((m, 1),),
        (*w.blocks, (0, 1)),
        w.blocks[1:],
        tuple((1, size) for size in sizes),
    ):
        if blocks != w.blocks:
            yield f"blocks {blocks}", changed(verdict, blocks=blocks)
    term = w.unseen
    if term is None:
        for added in (Term(1, 0, 0), Term(max(1, m - 1), 0, 0), Term(1, 0, max(0, m - 2))):
            yield "term added", changed(verdict, unseen=added)
            for class_ in ("hard", "hopeless"):
                yield (
                    f"term added for {class_}",
                    dataclasses.replace(changed(verdict, unseen=added), class_=class_),
                )
        return
    yield "term dropped", changed(verdict, unseen=None)
    yield "term rounded", changed(verdict, unseen=dataclasses.replace(term, below=float(term.below)))
    for name in ("rank", "above", "below", "relevant"):
        for step in (-2, -1, 1, 2, m):
            value = getattr(term, name) + step
            yield "term changed", changed(verdict, unseen=dataclasses.replace(term, **{name: value}))
    for steps in (
        None,
        ((0, 1), (0, 1), (0, 1)),
        ((1, 2), (0, 2), (1, 2)),
        ((0, 1), (1, 2), (0, 1)),
        ((2, 2),) * 3,
    ):
        if steps != term.steps:
            yield "term changed", changed(verdict, unseen=dataclasses.replace(term, steps=steps))


def of_cells(game: Any, verdict: Any) -> Forged:
    """Points, mixtures, walls, estimates and directions."""
    w = verdict.witness
    n, size = len(w.same), verdict.n_outcomes
    for i in range(n):
        yield (
            "same changed",
            changed(verdict, same=(*w.same[:i], (w.same[i] + 1) % (n + 1), *w.same[i + 1 :])),
        )
    yield "same shorter", changed(verdict, same=w.same[:-1])
    for field, name in (("points", "point"), ("walls", "wall"), ("touching", "touching")):
        table = getattr(w, field)
        for key, p in table.items():
            yield f"{name} doubled", changed(verdict, **{field: {**table, key: tuple(2 * x for x in p)}})
            yield f"{name} dropped", changed(verdict, **{field: {o: p for o, p in table.items() if o != key}})
            for other in ((0,) * size, tuple(-x for x in p), p[1:], tuple(map(float, p)), (*p, 1)):
                yield f"{name} changed", changed(verdict, **{field: {**table, key: other}})
        yield (
            f"{name} added",
            changed(verdict, **{field: {**table, (98, 99) if field == "walls" else 99: (1,) * size}}),
        )
    for i, p in w.points.items():
        for other in set(w.points) - {i}:
            yield "point of another", changed(verdict, points={**w.points, i: w.points[other]})
        yield (
            "touching too",
            dataclasses.replace(
                changed(verdict, touching={**w.touching, i: p}), degenerate=(*verdict.degenerate, i)
            ),
        )
    for (i, j), p in w.walls.items():
        bent = list(p)
        at = next(x for x in range(size) if game.difference(i, j)[x])
        bent[at] += 1
        yield "wall moved", changed(verdict, walls={**w.walls, (i, j): tuple(bent)})
    for field, name in (("mixtures", "mixture"), ("apart", "apart")):
        table = getattr(w, field)
        for key, (weights, s) in table.items():
            twice = Mixture({c: 2 * x for c, x in weights.items()}, 2 * s)
            yield f"{name} doubled", changed(verdict, **{field: {**table, key: twice}})
            yield f"{name} dropped", changed(verdict, **{field: {o: x for o, x in table.items() if o != key}})
            for other in (
                Mixture({c: -x for c, x in weights.items()}, s),
                Mixture({c: 0 * x for c, x in weights.items()}, s),
                Mixture({c: float(x) for c, x in weights.items()}, s),
                Mixture({**weights, 99: Fraction(1)}, s),
                Mixture({}, s),
            ):
                yield f"{name} changed", changed(verdict, **{field: {**table, key: other}})
    for pair, terms in w.estimates.items():
        yield (
            "estimate dropped",
            changed(verdict, estimates={o: t for o, t in w.estimates.items() if o != pair}),
        )
        for key, value in terms.items():
            rest = {other: x for other, x in terms.items() if other != key}
            for forged in (
                {**rest, key: value + TINY},
                {**rest, key: float(value)},
                {**rest, key: -value},
                rest,
                {**terms, (key[0], 99): Fraction(1)},
                {**rest, (key[0] - n, key[1]): value},
            ):
                yield "estimate changed", changed(verdict, estimates={**w.estimates, pair: forged})
    if w.blind is None:
        yield "direction added", changed(verdict, blind=((0, 1), (1,) * size))
    else:
        pair, direction = w.blind
        yield "direction dropped", changed(verdict, blind=None)
        yield "direction turned", changed(verdict, blind=(pair, tuple(-x for x in direction)))
        yield "direction doubled", changed(verdict, blind=(pair, tuple(2 * x for x in direction)))
        yield "direction of others", changed(verdict, blind=((98, 99), direction))
        for x in range(size):
            bent = (*direction[:x], direction[x] + 1, *direction[x + 1 :])
            yield "direction bent", changed(verdict, blind=(pair, bent))
        yield "direction rounded", changed(verdict, blind=(pair, tuple(map(float, direction))))
