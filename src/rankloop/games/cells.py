"""Where each action is best: Pareto-optimal, degenerate and dominated actions, neighbours (2015, Definitions 1, 4)."""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from itertools import combinations
from multiprocessing import get_context

import numpy as np

from rankloop.games.exact import Floats, Mixture, Point, Whole, confirm_point, decide
from rankloop.games.game import Game
from rankloop.games.verdict import CellWitness, Pair

_WORTH_SHARING = 2_000  # pairs; fewer are done before other processes have started
_HASH = (1 << 61) - 1
_SHARPNESS = (8.0, 30.0)
_STEEPEST = 200.0


def find_cells(game: Game, *, jobs: int | None = None) -> CellWitness:
    """All cells and walls of the game, each with its proof; actions with the same losses are known by the first."""
    same = _first_of_equals(game.whole)
    distinct = sorted(set(same))
    points: dict[int, Point] = {}
    mixtures: dict[int, Mixture] = {}
    touching: dict[int, Point] = {}
    for i in distinct:
        others = [j for j in distinct if j != i]
        D = game.whole[others] - game.whole[i]
        decided = decide(D)
        if not isinstance(decided, Mixture):
            points[i] = decided
            continue
        # The cell is empty if and only if some mixture is better everywhere (Ville).
        better = decide(-D.T, interior=False)
        if isinstance(better, Mixture):
            touching[i] = _whole_point(better.weights, game.n_outcomes)
            weights = decided.weights
        else:
            weights = {row: Fraction(weight) for row, weight in enumerate(better) if weight}
        mixtures[i] = Mixture({others[row]: weight for row, weight in weights.items()}, Fraction(0))
    walls, apart = _walls(game.whole, points, jobs)
    return CellWitness(same, points, mixtures, touching, walls, apart)


def _whole_point(weights: dict[int, Fraction], size: int) -> Point:
    shared = math.lcm(*(weight.denominator for weight in weights.values()))
    return tuple(int(weights.get(x, 0) * shared) for x in range(size))


def _first_of_equals(losses: Whole) -> tuple[int, ...]:
    first: dict[tuple[int, ...], int] = {}
    return tuple(first.setdefault(tuple(row), i) for i, row in enumerate(losses))


def _walls(
    losses: Whole, points: dict[int, Point], jobs: int | None
) -> tuple[dict[Pair, Point], dict[Pair, Mixture]]:
    pareto = list(points)
    own = losses[pareto]
    walls: dict[Pair, Point] = {}
    apart = _apart_by_sums(own, pareto)
    open_pairs = []
    crossing = _Crossing(own, [points[i] for i in pareto])
    for a, b in combinations(range(len(pareto)), 2):
        pair = (pareto[a], pareto[b])
        if pair in apart:
            continue
        met = crossing.between(a, b)
        if met is not None:
            walls[pair] = met
        else:
            open_pairs.append((a, b))
    for (a, b), decided in _decide_pairs(own, open_pairs, jobs):
        pair = (pareto[a], pareto[b])
        if isinstance(decided, Mixture):
            others = [c for c in pareto if c not in pair]
            apart[pair] = Mixture({others[row]: w for row, w in decided.weights.items()}, decided.s)
        else:
            walls[pair] = decided
    return walls, apart


def _apart_by_sums(own: Whole, pareto: list[int]) -> dict[Pair, Mixture]:
    # Where l_i + l_j = l_c + l_d, a tie of i and j for the best is one of all four: no neighbours. Found by hashing.
    rng = np.random.default_rng(0)
    functional = [int(x) for x in rng.integers(1, _HASH, size=int(own.shape[1]))]
    keys = [sum(int(a) * b for a, b in zip(row, functional, strict=True)) for row in own]
    by_sum: dict[int, list[Pair]] = defaultdict(list)
    for a, b in combinations(range(len(pareto)), 2):
        by_sum[keys[a] + keys[b]].append((a, b))
    apart = {}
    for pairs in by_sum.values():
        for a, b in pairs:
            for c, d in pairs:
                if (a, b) != (c, d) and (own[a] + own[b] == own[c] + own[d]).all():
                    one = Fraction(1)
                    apart[pareto[a], pareto[b]] = Mixture({pareto[c]: one, pareto[d]: one}, one)
                    break
    return apart


class _Crossing:
    """Cheap guesses at a point of the wall between two cells; what is not found this way may still be there."""

    def __init__(self, own: Whole, points: list[Point]) -> None:
        self.own = own
        self.P = np.array([[x / sum(p) for x in p] for p in points])
        low, high = own.min(), own.max()
        self.F = ((own - low) / (high - low or 1)).astype(np.float64)
        self.V = self.F @ self.P.T

    def between(self, a: int, b: int) -> Point | None:
        """A distribution in which a and b tie and beat all others, or None."""
        return next((point for p in self._guesses(a, b) if (point := self._confirmed(p, a, b))), None)

    def _guesses(self, a: int, b: int) -> Iterator[Floats]:
        lead_a, lead_b = self.V[b, a] - self.V[a, a], self.V[a, b] - self.V[b, b]
        if lead_a > 0 and lead_b > 0:
            t = lead_a / (lead_a + lead_b)  # where the way from the one cell to the other crosses
            yield (1 - t) * self.P[a] + t * self.P[b]
        for sharpness in _SHARPNESS:
            yield self._tilted(a, b, sharpness)

    def _tilted(self, a: int, b: int, sharpness: float) -> Floats:
        # Outcomes that are good for both, with a tilt towards one of them that makes the two tie.
        mean, gap = (self.F[a] + self.F[b]) / 2, self.F[a] - self.F[b]
        low, high = -_STEEPEST, _STEEPEST
        p = np.empty(len(mean))
        for _ in range(40):
            exponent = (low + high) / 2 * gap - sharpness * mean
            p = np.exp(exponent - exponent.max())
            low, high = ((low + high) / 2, high) if p @ gap < 0 else (low, (low + high) / 2)
        return np.asarray(np.maximum(p / p.sum(), 1e-9))

    def _confirmed(self, p: Floats, a: int, b: int) -> Point | None:
        values = self.F @ p
        others = np.arange(len(values)) != a
        others[b] = False
        if others.any() and (values[others] - values[a]).min() < 1e-6:
            return None
        D = self.own[others] - self.own[a]
        return confirm_point(p, D, self.F[others] - self.F[a], self.own[b] - self.own[a])


def _decide_pairs(own: Whole, pairs: list[Pair], jobs: int | None) -> Iterator[tuple[Pair, Point | Mixture]]:
    workers = jobs or (os.cpu_count() or 1)
    if workers == 1 or (jobs is None and len(pairs) < _WORTH_SHARING):
        yield from _decide_some(own, pairs)
        return
    share = max(1, len(pairs) // (8 * workers))
    parts = [pairs[i : i + share] for i in range(0, len(pairs), share)]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for done in pool.map(_decide_some, [own] * len(parts), parts):
            yield from done


def _decide_some(own: Whole, pairs: list[Pair]) -> list[tuple[Pair, Point | Mixture]]:
    decided = []
    for a, b in pairs:
        others = [c for c in range(len(own)) if c not in (a, b)]
        decided.append(((a, b), decide(own[others] - own[a], own[b] - own[a])))
    return decided


def on_segment(losses: Whole, i: int, j: int) -> list[int]:
    """The neighbourhood action set of i and j: all actions whose losses lie between theirs (2015, Definition 4)."""
    step = losses[j] - losses[i]
    at = int(np.flatnonzero(step != 0)[0])
    between = []
    for c in range(len(losses)):
        ahead = losses[c] - losses[i]
        part = Fraction(int(ahead[at]), int(step[at]))
        if 0 <= part <= 1 and (ahead * part.denominator == part.numerator * step).all():
            between.append(c)
    return between
