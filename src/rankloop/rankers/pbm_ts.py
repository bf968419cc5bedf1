"""PBM-TS: Thompson sampling for position-based clicks.

Each list is drawn from the posterior by itself (`kernels.click_draws`), around attractions and examinations that are
fitted as feedback comes. Arrays are position-major: S[j, i] are the clicks on item i at position j, N[j, i] how often
it stood there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankloop.arguments import shares, whole
from rankloop.base import Array, Floats, Ints, Memo, Ranking
from rankloop.compiled import RankerKernels
from rankloop.kernels import click_draws
from rankloop.kernels.click_counts import count
from rankloop.kernels.click_draws import draw_list, fit_turn, place_items
from rankloop.kernels.jit import hot
from rankloop.ranges import OneOf, Range, Whole
from rankloop.rankers.click_ranker import ClickRanker, check_counts


class PBMTSParams(NamedTuple):
    """How the model is fitted and drawn."""

    sweeps: int  # turns of the fit after a round
    draws_kappa: bool  # whether examinations are drawn too
    kept: float  # what is left of a count after a round: 1 where nothing is forgotten


class PBMTSState(NamedTuple):
    """Clicks and displays, and the model that fits them."""

    t: Ints  # rounds with feedback
    S: Floats  # by position and item: clicks
    N: Floats  # by position and item: displays
    theta: Floats  # by item: attractions
    kappa: Floats  # by position: examinations


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """Draw a model and show its best list. Exploring: another list than that of the fitted model."""
    greedy, draw_scratch = scratch
    place_items(state.theta, state.kappa, draw_scratch, greedy)
    mean = mean_attraction(state.theta)
    draw_list(
        state.S,
        state.N,
        state.theta,
        state.kappa,
        mean,
        params.draws_kappa,
        1.0,
        key,
        0,
        draw_scratch,
        items,
    )
    explored = False
    for j in range(len(items)):
        explored |= items[j] != greedy[j]
    return explored


@hot
def mean_attraction(theta: Any) -> Any:
    """What is expected of an item of which nothing is known: at most one half, the mean of the even prior."""
    total = 0.5
    for i in range(len(theta)):
        total += theta[i]
    return min(total / (len(theta) + 1.0), 0.5)


@hot
def learn(
    params: Any, state: Any, context: Any, scratch: Any, items: Any, propensities: Any, memo: Any, clicks: Any
) -> None:
    """Count clicks and displays, and fit the model."""
    if params.kept < 1.0:
        for j in range(state.S.shape[0]):
            for i in range(state.S.shape[1]):
                state.S[j, i] *= params.kept
                state.N[j, i] *= params.kept
    count(state.S, state.N, items, clicks)
    improve(params, state, scratch)
    state.t[0] += 1


@hot
def improve(params: Any, state: Any, scratch: Any) -> None:
    """So many turns of the fit."""
    for _ in range(params.sweeps):
        mean = mean_attraction(state.theta)
        fit_turn(state.S, state.N, state.theta, state.kappa, mean, params.draws_kappa, scratch[1])


class PBMTS(ClickRanker):
    """Draws attractions and examinations that fit all clicks so far, and shows the best list for them.

    What is uncertain varies from draw to draw and is thereby explored. No constants to set, no horizon,
    and positions may be looked at in any order. There is no regret bound for unknown examinations.

    Parameters
    ----------
    n_items : int
        How many items there are.
    n_positions : int, optional
        How many of them are shown; None shows all.
    examination : array_like, optional
        For each position, how likely it is looked at, in any order; None draws them too.
    sweeps : int, optional
        How many turns over all attractions and examinations the fit makes after each feedback.
    forget : int, optional
        Clicks and displays of this many rounds ago count for about a third, 1/e, for users who change; None forgets
        nothing.

    Notation
    --------
    theta, kappa: state.theta and state.kappa are what lists are drawn around.

    Departures
    ----------
    Of PB-MHB: no Markov chain, so that lists that wait for their feedback are independent; log kappa is drawn from
    Laplace's approximation with theta integrated out, theta from a Beta of the same mean and information. The position
    with the largest fit has examination 1. The prior of an attraction is Beta(1, 1 / mean - 1), even at mean 1/2.

    References
    ----------
    P. Lagrée, C. Vernade and O. Cappé, Multiple-play bandits in the position-based model, NeurIPS 2016.
    C. Gauthier, R. Gaudel and E. Fromont, Bandit algorithm for both unknown best position and best item display on web
    pages, IDA 2021.

    Examples
    --------
    >>> ranker = PBMTS(n_items=5, n_positions=2)
    >>> rng = np.random.default_rng(1)
    >>> for _ in range(300):
    ...     shown = ranker.rank(rng=rng)
    ...     ranker.learn(shown, shown.items == 3)
    >>> bool((ranker.current() == 3).any())
    True
    """

    summary = "Observes clicks, and ranks by attractions drawn from their posterior."
    kernels = RankerKernels(rank, learn)
    algorithm_version = 2

    def __init__(
        self,
        *,
        n_items: int,
        n_positions: int | None = None,
        examination: ArrayLike | None = None,
        sweeps: int = 1,
        forget: int | None = None,
    ) -> None:
        n, m = self.read_size(n_items, n_positions)
        kappa = np.full(m, 0.5)
        if examination is not None:
            kappa = shares("examination", examination, length=m, positive=True)
        self.informed = examination is not None  # the first item on the position that is examined most
        kept = 1.0 if forget is None else 1.0 - 1.0 / whole("forget", forget, at_least=2)
        self.params = PBMTSParams(whole("sweeps", sweeps, at_least=1), examination is None, kept)
        self.state = PBMTSState(
            t=np.zeros(1, np.int64),
            S=np.zeros((m, n)),
            N=np.zeros((m, n)),
            theta=np.full(n, 0.5),
            kappa=kappa,
        )

    def tunable(self) -> Mapping[str, Range]:
        return {"sweeps": Whole(1, 8), "forget": OneOf(None, Whole(1_000, 1_000_000))}

    def scratch(self, n: int) -> tuple[Any, ...]:
        return np.empty(n, np.int64), click_draws.scratch(self.n_items, n)

    def learn(self, ranking: Ranking, feedback: ArrayLike) -> None:
        # Tickets of version 1 have the draw, which nobody needs any more.
        drawn = [np.shape(part) for part in ranking.memo] == [(self.n_items,), (self.n_positions,)]
        super().learn(Ranking(ranking.items) if drawn else ranking, feedback)

    def check_state(self, saved: Mapping[str, Array]) -> None:
        check_counts(saved["S"], saved["N"])
        for name in ("theta", "kappa"):
            if not ((saved[name] > 0) & (saved[name] <= 1)).all():
                raise ValueError(f"saved state {name!r} must be probabilities, got {saved[name]}")

    def part_arguments(self, n_items: int, positions: Ints) -> dict[str, Any]:
        given = super().part_arguments(n_items, positions)
        if given["examination"] is not None:
            given["examination"] = np.asarray(given["examination"], np.float64)[positions]
        return given

    def carry(self, old: Any, origin: Ints, positions: Ints | None = None) -> None:
        """Of a new item nothing is known: it is expected to be like the others."""
        there, state = self.carry_counts(old, origin, positions), self.state
        expected = float(mean_attraction(old.state.theta))
        state.theta[:] = np.where(origin >= 0, old.state.theta[np.maximum(origin, 0)], expected)
        if self.params.draws_kappa:
            state.kappa[:] = old.state.kappa[there]

    def absorb(self, part: Any, items: Ints, positions: Ints, ranking: Ranking, feedback: Floats) -> None:
        # The counts alone: the smaller ranker has examinations of another scale.
        for known, new in ((self.state.S, part.state.S), (self.state.N, part.state.N)):
            known *= self.params.kept
            known[np.ix_(positions, items)] = new
        improve(self.params, self.state, self.scratch(self.n_positions))
        self.state.t[0] += 1

    def translated_memo(self, ranking: Ranking, before: Ints) -> Memo:
        return ()

    def learn_shown(self, items: Ints, feedback: Any) -> bool:
        """Learns: its counts are of whatever was shown."""
        self.learn(Ranking(items), feedback)
        return True

    def current(self, context: Any = None) -> Ints:
        """The items with the largest attractions, on the positions that are examined most."""
        self.read_context(context)
        items = np.empty(self.n_positions, np.int64)
        place_items(self.state.theta, self.state.kappa, self.scratch(self.n_positions)[1], items)
        return items

    @classmethod
    def bytes_of(cls, n: int, m: int) -> int:
        return 16 * m * n + 8 * (n + 2 * m) + click_draws.scratch_bytes(n, m)
