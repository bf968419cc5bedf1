"""PBM-TS: Thompson sampling for position-based clicks.

Attractions and examinations are drawn by Metropolis-Hastings, one coordinate after the other, going on from the
last draw with feedback. The draw travels in the ticket, because `rank` may not store it. Arrays are position-major:
S[j, i] are the clicks on item i at position j, N[j, i] how often it stood there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankloop.arguments import shares, whole
from rankloop.base import Array, Floats, Ints, Memo, Ranking
from rankloop.compiled import RankerKernels
from rankloop.kernels import sorting
from rankloop.kernels.click_counts import clicks_and_looks, count
from rankloop.kernels.elementary import cos_turns, exp, log
from rankloop.kernels.jit import hot
from rankloop.kernels.random import uniform
from rankloop.kernels.sorting import by_falling_score
from rankloop.ranges import OneOf, Range, Whole
from rankloop.rankers.click_ranker import ClickRanker, check_counts

# Standard deviations of a proposal in those of what it is for: the usual choice in one dimension
_WIDTH = 2.4


class PBMTSParams(NamedTuple):
    """How the model is drawn."""

    sweeps: int  # turns over all coordinates in a round
    draws_kappa: bool  # whether examinations are drawn too
    kept: float  # what is left of a count after a round: 1 where nothing is forgotten


class PBMTSState(NamedTuple):
    """Clicks and displays, and the last draw with feedback."""

    t: Ints  # rounds with feedback
    S: Floats  # by position and item: clicks
    N: Floats  # by position and item: displays
    theta: Floats  # by item: drawn attractions
    kappa: Floats  # by position: drawn examinations


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """Draw a model and show its best list. Exploring: another list than that of the mean attractions."""
    theta, kappa = memo
    m, n = state.S.shape
    for i in range(n):
        theta[i] = state.theta[i]
    for j in range(m):
        kappa[j] = state.kappa[j]
    for sweep in range(params.sweeps):
        first = 3 * sweep * (n + m)
        for i in range(n):
            draw(state.S, state.N, theta, kappa, i, key, first + 3 * i)
        if params.draws_kappa:
            for j in range(m):
                draw(state.S.T, state.N.T, kappa, theta, j, key, first + 3 * (n + j))
    greedy, by_item, by_position, sort_scratch = scratch
    best_list(state, kappa, greedy, by_item, by_position, sort_scratch, items)
    explored = False
    for j in range(m):
        greedy[j] = items[j]
    by_falling_score(theta, n, by_item, sort_scratch)
    for place in range(m):
        j = by_position[place]
        items[j] = by_item[place]
        explored |= items[j] != greedy[j]
    return explored


@hot
def best_list(
    state: Any, kappa: Any, mean: Any, by_item: Any, by_position: Any, scratch: Any, items: Any
) -> None:
    """The list of the mean attractions under `kappa`: clicks by looks, one of each assumed beforehand."""
    m, n = state.S.shape
    for i in range(n):
        clicks, looks = clicks_and_looks(state.S, state.N, kappa, i, 0.5, 1.0)
        mean[i] = clicks / looks
    by_falling_score(mean, n, by_item, scratch)
    by_falling_score(kappa, m, by_position, scratch)
    for place in range(m):
        items[by_position[place]] = by_item[place]


@hot
def draw(S: Any, N: Any, theta: Any, kappa: Any, i: int, key: Any, first: int) -> None:
    """One Metropolis-Hastings step for the attraction of item i, given everything else.

    With S and N transposed, and `theta` and `kappa` in each other's place, the same for the examination of a position.
    """
    clicks, looks = clicks_and_looks(S, N, kappa, i, 0.0, 0.0)
    before = theta[i]
    after = before + _width(clicks, looks) * normal(key, first)
    if not 0.0 < after < 1.0:
        return
    change = clicks * log(after / before)
    for j in range(len(kappa)):
        if N[j, i] > S[j, i]:
            change += (N[j, i] - S[j, i]) * log((1.0 - after * kappa[j]) / (1.0 - before * kappa[j]))
    if change >= 0.0 or uniform(key, first + 2) < exp(change):
        theta[i] = after


@hot
def _width(clicks: float, looks: float) -> Any:
    # About the spread of what is being drawn; it may depend on everything but that itself.
    return _WIDTH * np.sqrt(clicks + 1.0) / (looks + 4.0)


@hot
def normal(key: Any, first: int) -> Any:
    """A standard normal number from the numbers of `key` at `first` and after it (Box and Muller)."""
    radius = np.sqrt(-2.0 * log(1.0 - uniform(key, first)))
    return radius * cos_turns(uniform(key, first + 1))


@hot
def learn(
    params: Any, state: Any, context: Any, scratch: Any, items: Any, propensities: Any, memo: Any, clicks: Any
) -> None:
    """Count clicks and displays, and go on from this draw."""
    theta, kappa = memo
    if params.kept < 1.0:
        for j in range(state.S.shape[0]):
            for i in range(state.S.shape[1]):
                state.S[j, i] *= params.kept
                state.N[j, i] *= params.kept
    count(state.S, state.N, items, clicks)
    for i in range(len(theta)):
        state.theta[i] = theta[i]
    for j in range(len(kappa)):
        state.kappa[j] = kappa[j]
    state.t[0] += 1


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
        How many Metropolis-Hastings turns over all coordinates are made for a list.
    forget : int, optional
        Clicks and displays of this many rounds ago count for about a third, 1/e, for users who change; None forgets
        nothing.

    Notation
    --------
    theta, kappa: the draw, in the ticket and, after feedback, in state.theta, state.kappa.

    Departures
    ----------
    Of PB-MHB: examinations are all free, not one of them fixed at 1, so that the first position need not be the best;
    the prior is uniform; and proposals are as wide as the posterior, not c / sqrt t.

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
        k = self.n_items
        return np.empty(k), np.empty(k, np.int64), np.empty(n, np.int64), sorting.scratch(k)

    def blank_memo(self, n: int) -> Memo:
        return np.empty(self.n_items), np.empty(n)

    def check_ticket(self, ranking: Ranking) -> None:
        for part in ranking.memo:
            if not ((part > 0) & (part <= 1)).all():
                raise ValueError(f"ranking.memo must hold probabilities, got {part}")

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
        """Of a new item nothing is known: the uniform prior, whose mean its next draw goes on from."""
        there, state = self.carry_counts(old, origin, positions), self.state
        state.theta[:] = np.where(origin >= 0, old.state.theta[np.maximum(origin, 0)], 0.5)
        if self.params.draws_kappa:
            state.kappa[:] = old.state.kappa[there]

    def absorb(self, part: Any, items: Ints, positions: Ints, ranking: Ranking, feedback: Floats) -> None:
        for known, new in ((self.state.S, part.state.S), (self.state.N, part.state.N)):
            known *= self.params.kept
            known[np.ix_(positions, items)] = new
        self.state.theta[items] = part.state.theta
        self.state.kappa[positions] = part.state.kappa
        self.state.t[0] += 1

    def translated_memo(self, ranking: Ranking, before: Ints) -> Memo:
        return self.state.theta.copy(), self.state.kappa.copy()  # go on from the draw that is there now

    def learn_shown(self, items: Ints, feedback: Any) -> bool:
        """Learns: its counts are of whatever was shown."""
        self.learn(Ranking(items, None, (self.state.theta.copy(), self.state.kappa.copy())), feedback)
        return True

    def current(self, context: Any = None) -> Ints:
        """The items with the largest mean attractions, on the positions most examined in the last draw."""
        self.read_context(context)
        items = np.empty(self.n_positions, np.int64)
        mean, by_item, by_position, scratch = self.scratch(self.n_positions)
        best_list(self.state, self.state.kappa, mean, by_item, by_position, scratch, items)
        return items

    @classmethod
    def bytes_of(cls, n: int, m: int) -> int:
        return 16 * m * n + 24 * n + 16 * m + sorting.scratch_bytes(n)
