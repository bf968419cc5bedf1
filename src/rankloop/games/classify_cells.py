"""How hard a game is, from its losses and signals alone (Bartok et al. 2014; Lattimore and Szepesvari 2019)."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np
from scipy.optimize import linprog

from rankloop.games.cells import Cells, find_cells, on_segment
from rankloop.games.game import Game
from rankloop.games.ranking_game import RankingGame
from rankloop.games.rationals import RowSpace
from rankloop.games.verdict import CellWitness, Pair, Verdict, Worlds

_GRID = 1 << 40
_TRIES = 24  # partners of an action among which the costliest pair of worlds is searched


def classify_cells(game: Game, *, jobs: int | None = None, cells: Cells | None = None) -> Verdict:
    """The verdict, through cells, neighbours, and local and global observability.

    Cells depend on the losses alone: games that differ in their signals may share them.
    """
    cells = cells or find_cells(game, jobs=jobs)
    everybody = Observer(game, range(game.n_actions), base=next(iter(cells.points)))
    local: dict[Pair, dict[Pair, Fraction]] = {}
    globally: dict[Pair, dict[Pair, Fraction]] = {}
    blind_locally: tuple[Pair, tuple[int, ...]] | None = None
    blind: tuple[Pair, tuple[int, ...]] | None = None
    observers: dict[frozenset[bytes], Observer] = {}
    for i, j in cells.walls:
        among = on_segment(game.whole, i, j)
        keys = game.observations.keys
        owner = {keys[c]: c for c in among}
        seen_by = frozenset(owner)
        if seen_by not in observers:
            observers[seen_by] = Observer(game, among)
        estimate = observers[seen_by].estimate(i, j)
        if estimate is not None:
            # The observer may have been made for other actions that see the same.
            estimate = {(owner[keys[c]], symbol): value for (c, symbol), value in estimate.items()}
            local[i, j] = globally[i, j] = estimate
            continue
        blind_locally = blind_locally or (
            (i, j),
            tuple(observers[seen_by].space.unseen(game.difference(i, j))),
        )
        estimate = everybody.estimate(i, j)
        if estimate is None:
            blind = ((i, j), tuple(everybody.space.unseen(game.difference(i, j))))
            break
        globally[i, j] = estimate
    if blind is not None:
        return _verdict(game, cells, "hopeless", {}, blind, find_worlds(game, cells, blind, everybody.space))
    if blind_locally is not None:
        return _verdict(game, cells, "hard", globally, blind_locally, None)
    return _verdict(game, cells, "easy" if cells.walls else "trivial", local, None, None)


class Observer:
    """What some actions together reveal."""

    def __init__(self, game: Game, actions: Iterable[int], *, base: int | None = None) -> None:
        self.game, self.base = game, base
        rows, self.owners = game.signal_rows(actions)
        self.space = RowSpace(rows)
        self._from_base: dict[int, list[Fraction] | None] = {}

    def estimate(self, i: int, j: int) -> dict[Pair, Fraction] | None:
        """Coefficients of (action, symbol) that add up to loss[i] - loss[j], or None."""
        found = self._coefficients(i, j)
        if found is None:
            return None
        return {
            self.owners[row]: self.game.unit * self.game.observations.scale * value
            for row, value in zip(self.space.chosen, found, strict=True)
            if value
        }

    def _coefficients(self, i: int, j: int) -> list[Fraction] | None:
        # By way of a base, n solutions serve for n^2 pairs.
        if self.base is not None:
            one, other = self._against_base(i), self._against_base(j)
            if one is not None and other is not None:
                return [a - b for a, b in zip(one, other, strict=True)]
        return self.space.coefficients(self.game.difference(i, j))

    def _against_base(self, i: int) -> list[Fraction] | None:
        assert self.base is not None
        if i not in self._from_base:
            self._from_base[i] = self.space.coefficients(self.game.difference(i, self.base))
        return self._from_base[i]


def _verdict(
    game: Game,
    cells: Cells,
    class_: str,
    estimates: dict[Pair, dict[Pair, Fraction]],
    blind: tuple[Pair, tuple[int, ...]] | None,
    worlds: Worlds | None,
) -> Verdict:
    witness = CellWitness(
        tuple(cells.same),
        cells.points,
        cells.mixtures,
        cells.touching,
        cells.walls,
        cells.apart,
        estimates,
        blind,
        worlds,
    )
    ranking = game if isinstance(game, RankingGame) else None
    return Verdict(
        class_,
        "cells",
        witness,
        game.n_actions,
        game.n_outcomes,
        tuple(cells.points),
        tuple(cells.touching),
        tuple(i for i in cells.mixtures if i not in cells.touching),
        tuple(cells.walls),
        measure=ranking.measure if ranking else None,
        n_items=ranking.n_items if ranking else None,
        k=(ranking.k or None) if ranking else None,
        max_grade=ranking.max_grade if ranking else 1,
        feedback=ranking.feedback if ranking else None,
    )


def find_worlds(game: Game, cells: Cells, blind: tuple[Pair, tuple[int, ...]], space: RowSpace) -> Worlds:
    """Two worlds that look alike but have different best actions, as costly to learners as a linear programme finds."""
    (i, j), direction = blind
    partners = [j, *[other for other in cells.points if other not in (i, j)][:_TRIES]]
    middle = cells.walls[i, j]
    candidates = [_exact_worlds(game, np.array(middle, dtype=object), list(direction))]
    for partner in partners:
        found = _dearest(game, i, partner, space)
        if found is not None:
            candidates.append(_exact_worlds(game, *found))
    best = max((worlds for worlds in candidates if worlds is not None), key=lambda worlds: worlds.forced)
    return _named(game, best)


def _dearest(game: Game, i: int, j: int, space: RowSpace) -> tuple[np.ndarray, list[int]] | None:
    # p and q that no signal tells apart, i best in p and j in q: maximise what the best compromise loses, which is
    # min_a l_a (p + q) / 2 - (l_i p + l_j q) / 2. Variables p, q >= 0 and the minimum z.
    n = game.n_outcomes
    low, span = game.loss.min(), float(np.ptp(game.loss)) or 1.0
    L = (game.loss - low) / span
    signals = game.signal_rows(range(game.n_actions))[0][space.chosen].astype(float)
    rows = len(signals)
    equal = np.zeros((rows + 1, 2 * n + 1))
    equal[:rows, :n], equal[:rows, n : 2 * n] = signals, -signals
    equal[rows, :n] = 1.0
    result = linprog(
        np.concatenate([L[i] / 2, L[j] / 2, [-1.0]]),
        A_ub=np.hstack([-L / 2, -L / 2, np.ones((len(L), 1))]),
        b_ub=np.zeros(len(L)),
        A_eq=equal,
        b_eq=np.append(np.zeros(rows), 1.0),
        bounds=[(0, None)] * (2 * n) + [(None, None)],
        method="highs",
    )
    if result.status != 0 or -result.fun < 1e-9:
        return None
    p, q = result.x[:n], result.x[n : 2 * n]
    mean = np.array([round(float(x) * _GRID) for x in (p + q) / 2], dtype=object)
    hidden = space.hidden([round(float(x) * _GRID) for x in ((p - q) / 2)[space.free]])
    return mean, hidden


def _exact_worlds(game: Game, mean: np.ndarray, direction: list[int]) -> Worlds | None:
    # mean +- t direction, with the largest t that keeps both from going below zero.
    middle = [Fraction(max(0, int(x))) for x in mean]
    middle = [x / sum(middle) for x in middle]
    if any(d and not x for d, x in zip(direction, middle, strict=True)):
        even = Fraction(1, 1000 * len(middle))  # where rounding put a zero, make room
        middle = [x * Fraction(999, 1000) + even for x in middle]
    t = min(x / abs(d) for d, x in zip(direction, middle, strict=True) if d)
    p, q = (tuple(x + sign * t * d for d, x in zip(direction, middle, strict=True)) for sign in (1, -1))
    forced, best = forced_loss(game, p, q)
    return Worlds(tuple(range(len(middle))), (p, q), best, forced) if forced > 0 else None


def forced_loss(game: Game, p: tuple[Fraction, ...], q: tuple[Fraction, ...]) -> tuple[Fraction, Pair]:
    """The mean loss per round of the best compromise between two worlds, and the best action of each."""
    in_p, in_q = (game.whole @ np.array(world, dtype=object) for world in (p, q))
    best = (int(np.argmin(in_p)), int(np.argmin(in_q)))
    lost = (min(in_p + in_q) - in_p[best[0]] - in_q[best[1]]) / 2
    return game.unit * Fraction(lost), best


def _named(game: Game, worlds: Worlds) -> Worlds:
    used = [x for x in range(game.n_outcomes) if worlds.chances[0][x] or worlds.chances[1][x]]
    chances = (tuple(worlds.chances[0][x] for x in used), tuple(worlds.chances[1][x] for x in used))
    if isinstance(game, RankingGame):
        vectors = tuple(game.outcomes[x] for x in used)
        orders = (game.orders[int(worlds.best[0])], game.orders[int(worlds.best[1])])  # type: ignore[arg-type]
        return Worlds(vectors, chances, orders, worlds.forced)
    return Worlds(tuple(used), chances, worlds.best, worlds.forced)
