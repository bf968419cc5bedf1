"""FTRL-PBM: rank from position-based clicks, in stochastic and adversarial worlds (Chen, Zhao and Li 2022).

The leader of the next round is found when feedback comes, because `rank` may not change anything: it only draws. There
is a class for each way to find it. The default is `ftrl_pbm_plan.Planned`, whose kernels are in that file. Here are
those that write x out: `InFull` (other estimators, forgetting, all items shown), `Hybrid`, and the paper's own,
`FrankWolfe`. Arrays are position-major: L_hat[j, i] belongs to item i at position j.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rankloop import base
from rankloop.arguments import one_of, whole
from rankloop.base import Array, Floats, Ints, Memo, Ranking
from rankloop.compiled import Limits, RankerKernels
from rankloop.extras import require
from rankloop.kernels import hybrid, list_network, lists, tsallis
from rankloop.kernels.elementary import power
from rankloop.kernels.jit import hot
from rankloop.kernels.lists import best_list, in_order, show
from rankloop.kernels.random import uniform
from rankloop.ranges import OneOf, Range, Whole
from rankloop.rankers.click_ranker import ClickRanker, are_chances, same_positions
from rankloop.rankers.ftrl_pbm_plan import Planned
from rankloop.servable import carried_sums

LOSS, REDUCED_VARIANCE, MEAN = range(3)


class FTRLPBMParams(NamedTuple):
    """Which estimator of the losses, and what is left of them after a round."""

    estimator: int
    kept: float  # 1 where nothing is forgotten


class FTRLPBMState(NamedTuple):
    """What was learnt, the leader that follows from it, and how it was found."""

    t: Ints  # the round that is to come, counted from 1
    L_hat: Floats
    u: Floats  # multipliers of the items' row sums, warm for the next solve
    v: Floats  # ... and of the positions' column sums
    x: Floats  # the leader: the chance of item i at position j
    rows: Floats  # its sum over positions
    seen: Floats  # how often item i stood at position j; only for the running mean
    lost: Floats  # how often it was not clicked there
    fallbacks: Ints  # solves that needed the slow way; and those of them that ended inexact


@hot
def rank_in_full(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """Alg. 1, line 4."""
    return show(state.x, state.rows, key, scratch[1], items, propensities)


@hot
def learn_in_full(
    params: Any, state: Any, context: Any, scratch: Any, items: Any, propensities: Any, memo: Any, clicks: Any
) -> None:
    """Alg. 1, lines 5-7 and the next line 3."""
    estimate(params, state, items, propensities, clicks)
    state.t[0] += 1
    t, solver_scratch = rounds_kept(params, state), scratch[0]
    if not _is_warm(state, items) or (
        tsallis.newton(t, state.L_hat, state.u, state.v, state.x, state.rows, solver_scratch) < 0
    ):
        failure = tsallis.recover(t, state.L_hat, state.u, state.v, state.x, state.rows, solver_scratch)
        state.fallbacks[0] += 1
        state.fallbacks[1] += failure == 2


@hot
def rounds_kept(params: Any, state: Any) -> Any:
    """t; where rounds are forgotten, the sum of what each still counts for."""
    t = float(state.t[0])
    return t if params.kept == 1.0 else (1.0 - power(params.kept, t)) / (1.0 - params.kept)


@hot
def discount(params: Any, state: Any) -> None:
    """Forget a share of all sums; of the multipliers as well, so that they still nearly belong to L_hat."""
    kept = params.kept
    if kept == 1.0:
        return
    for i in range(len(state.u)):
        state.u[i] *= kept
    for j in range(len(state.v)):
        state.v[j] *= kept
        for i in range(len(state.u)):
            state.L_hat[j, i] *= kept
            if params.estimator == MEAN:
                state.lost[j, i] *= kept
                state.seen[j, i] *= kept


@hot
def _is_warm(state: Any, items: Any) -> bool:
    # A click that was less likely than its baseline allows for, as a late one may be, lowers L_hat by so much that D is
    # negative there. The sums of t / D^2 do not show it, and Newton's method would end with a leader who is none.
    least = 1.0
    for j in range(len(items)):
        least = min(least, state.L_hat[j, items[j]] + state.u[items[j]] + state.v[j])
    return least > 0.0


@hot
def estimate(params: Any, state: Any, items: Any, propensities: Any, clicks: Any) -> None:
    """Alg. 1, lines 6-7: add an unbiased estimate of the losses to L_hat.

    Every estimate is B + 1{shown} (loss - B) / x with a baseline B that does not depend on what was drawn: 0; 1/2
    where x >= eta_t^2; or the mean loss so far.
    """
    L_hat, m, n = state.L_hat, state.x.shape[0], state.x.shape[1]
    floor = 0.25 / rounds_kept(params, state)  # eta_t^2
    discount(params, state)
    if params.estimator == REDUCED_VARIANCE:
        for j in range(m):
            for i in range(n):
                L_hat[j, i] += 0.5 if state.x[j, i] >= floor else 0.0
    elif params.estimator == MEAN:
        for j in range(m):
            for i in range(n):
                L_hat[j, i] += (state.lost[j, i] + 0.5) / (state.seen[j, i] + 1.0)
    for j in range(m):
        i = items[j]
        loss, baseline = 1.0 - clicks[j], 0.0
        if params.estimator == REDUCED_VARIANCE:
            baseline = 0.5 if state.x[j, i] >= floor else 0.0
        elif params.estimator == MEAN:
            baseline = (state.lost[j, i] + 0.5) / (state.seen[j, i] + 1.0)
            state.lost[j, i] += loss
            state.seen[j, i] += 1.0
        L_hat[j, i] += (loss - baseline) / propensities[j]


# A click on an item that had little chance where it stood counts as a large negative loss where there is a baseline.
# One of more than an eighth of c / sqrt(x) would move that item's chance by more than the analysis allows for, and
# the ranker could stay with it for long. So the baseline ends there, which costs nothing where x is not small.
WEIGHT = 0.5  # c / sqrt(t)
GUARD = 0.125  # of c sqrt(x): the largest baseline


@hot
def learn_hybrid(
    params: Any, state: Any, context: Any, scratch: Any, items: Any, propensities: Any, memo: Any, clicks: Any
) -> None:
    """Alg. 1, lines 5-7 and the next line 3."""
    estimate_hybrid(params, state, items, propensities, clicks)
    state.t[0] += 1
    c, solver_scratch = WEIGHT * np.sqrt(rounds_kept(params, state)), scratch[0]
    if hybrid.newton(c, state.L_hat, state.u, state.v, state.x, state.rows, solver_scratch) < 0:
        failure = hybrid.recover(c, state.L_hat, state.u, state.v, state.x, state.rows, solver_scratch)
        state.fallbacks[0] += 1
        state.fallbacks[1] += failure == 2


@hot
def estimate_hybrid(params: Any, state: Any, items: Any, propensities: Any, clicks: Any) -> None:
    """Add B + 1{shown} (loss - B) / x to L_hat, unbiased because B does not depend on what was drawn."""
    most = GUARD * WEIGHT * np.sqrt(rounds_kept(params, state))
    discount(params, state)
    L_hat, x = state.L_hat, state.x
    for j in range(x.shape[0]):
        shown = items[j]
        loss, own = 1.0 - clicks[j], 0.0
        if params.estimator != LOSS:
            own = _baseline(params, state, j, shown, most)
            for i in range(x.shape[1]):
                L_hat[j, i] += _baseline(params, state, j, i, most)
        L_hat[j, shown] += (loss - own) / propensities[j]
        if params.estimator == MEAN:
            state.lost[j, shown] += loss
            state.seen[j, shown] += 1.0


@hot
def _baseline(params: Any, state: Any, j: int, i: int, most: float) -> Any:
    B = (state.lost[j, i] + 0.5) / (state.seen[j, i] + 1.0) if params.estimator == MEAN else 0.5
    return min(B, most * np.sqrt(state.x[j, i]))


_FLOOR = 1e-12  # where the gradient of -sqrt(x) is taken for x = 0 (erratum C1)


def frank_wolfe(x: Floats, L_hat: Floats, eta_t: float, K: int) -> Floats:
    """Algorithm 2, from x^(1) = `x`.

    Repairs (errata C1, C3, C4): k starts at 2, because the step 2 / (1 + 1) = 1 jumps to a vertex and forgets where it
    came from; the last iterate is returned; the linear subproblem is a weighted assignment, not a matching.
    """
    from scipy.optimize import (
        linear_sum_assignment,  # SciPy takes a while to import, and the default needs none
    )

    for k in range(2, K + 2):
        r = L_hat - 0.5 / eta_t / np.sqrt(np.maximum(x, _FLOOR))  # line 3
        positions, items = linear_sum_assignment(r)  # line 4
        gamma = 2.0 / (1.0 + k)  # line 5
        x = (1.0 - gamma) * x  # line 6
        x[positions, items] += gamma
    return x


def birkhoff(x: Floats) -> tuple[list[Ints], Floats]:
    """Algorithm 3, lines 1-7: lists of items and their weights, which sum to one; the mean of the lists is `x`."""
    require("scipy", extra="scipy", for_="FTRLPBM's sampler by Birkhoff")
    from scipy.sparse import csgraph, csr_array

    m, n = x.shape
    rest = 1.0 - x.sum(axis=0)
    # Line 1; nothing to complete for n = m (C6)
    W = np.vstack([x, np.tile(rest / max(n - m, 1), (n - m, 1))])
    W = np.maximum(W, 0.0)
    lists: list[Ints] = []
    weights: list[float] = []
    while True:  # line 2
        W[W < _FLOOR] = 0.0
        matching = csgraph.maximum_bipartite_matching(csr_array(W), perm_type="column")  # line 4
        if (matching < 0).any():
            break
        gamma = W[np.arange(n), matching].min()  # line 5
        lists.append(matching[:m].astype(np.int64))
        weights.append(gamma)
        W[np.arange(n), matching] -= gamma  # line 6
    if not lists:  # only where W is zero but for rounding errors, which no x is
        raise ValueError(f"x must have column sums of one and row sums of at most one, got {x!r}")
    return lists, np.array(weights) / np.sum(weights)


def rank_by_birkhoff(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """Algorithm 3, line 8."""
    lists, weights = birkhoff(state.x)
    drawn = int(np.searchsorted(np.cumsum(weights), uniform(key, 0), side="right"))
    items[:] = lists[min(drawn, len(lists) - 1)]
    propensities[:] = np.minimum(state.x[np.arange(len(items)), items], 1.0)
    return bool(propensities.sum() < 0.5 * len(items))


def learn_by_frank_wolfe(
    K: int,
    params: Any,
    state: Any,
    context: Any,
    scratch: Any,
    items: Any,
    propensities: Any,
    memo: Any,
    clicks: Any,
) -> None:
    """Algorithm 1, lines 5-7 and 3, with K Frank-Wolfe steps."""
    estimate(params, state, items, propensities, clicks)
    state.t[0] += 1
    eta_t = 1.0 / (2.0 * np.sqrt(state.t[0]))
    state.x[:] = np.maximum(frank_wolfe(state.x, state.L_hat, eta_t, K), _FLOOR)
    state.x[:] /= state.x.sum(axis=1, keepdims=True)
    state.rows[:] = state.x.sum(axis=0)


class InFull:
    """The leader with x written out, under Tsallis' entropy."""

    def __init__(self, n: int, m: int, params: FTRLPBMParams, steps: int) -> None:
        self.n, self.m, self.params, self.steps = n, m, params, steps

    def kernels(self) -> RankerKernels:
        return RankerKernels(rank_in_full, learn_in_full)

    def new_state(self) -> FTRLPBMState:
        n, m = self.n, self.m
        counted = (m, n) if self.params.estimator == MEAN else (0, 0)
        return FTRLPBMState(
            t=np.ones(1, np.int64),
            L_hat=np.zeros((m, n)),
            u=np.zeros(n),
            v=np.full(m, self._first_multiplier()),
            x=np.full((m, n), 1 / n),  # L_hat = 0, erratum C3
            rows=np.full(n, m / n),
            seen=np.zeros(counted),
            lost=np.zeros(counted),
            fallbacks=np.zeros(2, np.int64),
        )

    def _first_multiplier(self) -> float:
        return float(np.sqrt(self.n))

    def scratch(self) -> tuple[Any, ...]:
        return list_network.new_scratch(self.n, self.m), lists.sampling_scratch(self.m)

    def chances(self, state: FTRLPBMState) -> Floats:
        return state.x.copy()

    def is_former(self, saved: Mapping[str, Array]) -> bool:
        """Whether a state was saved by a version that found the leader in another way."""
        return False

    def check(self, saved: Mapping[str, Array], kernels: RankerKernels) -> None:
        """ValueError where arrays of the right shape are no state."""
        t, x, seen, lost = int(saved["t"][0]), *(np.asarray(saved[name]) for name in ("x", "seen", "lost"))
        if t < 1:
            raise ValueError(f"saved state 't' must be at least 1, got {t}")
        if not are_chances(x, saved["rows"]):
            raise ValueError(
                "saved state 'x' must be probabilities: columns that sum to 1, rows to at most 1, as 'rows' says"
            )
        D = np.asarray(saved["L_hat"]) + saved["u"] + np.asarray(saved["v"])[:, None]
        if kernels.learn is learn_in_full and not (D > 0).all():  # others leave other multipliers
            raise ValueError("saved state 'u' and 'v' must be multipliers for 'L_hat', with positive sums")
        if not ((lost >= 0) & (lost <= seen)).all():
            raise ValueError("saved state 'lost' must lie between 0 and 'seen'")

    def follow(self, state: FTRLPBMState, *, warm: bool) -> None:
        """Find the leader where losses were not learnt but written; `warm` where they are nearly the last ones."""
        kept: float = rounds_kept(self.params, state)
        solved = (state.L_hat, state.u, state.v, state.x, state.rows, self.scratch()[0])
        possible = (state.L_hat + state.u + state.v[:, None] > 0).all()
        if not possible or tsallis.newton(kept, *solved) < 0:
            tsallis.recover(kept, *solved)

    @classmethod
    def bytes(cls, n: int, m: int, estimator: str) -> int:
        """Of state and scratch."""
        tables = 4 if estimator == "mean" else 2
        solver = cls._solver_bytes(n, m)
        return 8 * (tables * m * n + 2 * n + m) + solver + lists.sampling_scratch_bytes(m)

    @staticmethod
    def _solver_bytes(n: int, m: int) -> int:
        return list_network.scratch_bytes(n, m)


class Hybrid(InFull):
    """The leader with x written out, under the hybrid regulariser."""

    def kernels(self) -> RankerKernels:
        return RankerKernels(rank_in_full, learn_hybrid)

    def _first_multiplier(self) -> float:
        return float(WEIGHT * hybrid.even_multiplier(self.n))

    def scratch(self) -> tuple[Any, ...]:
        return hybrid.new_scratch(self.n, self.m), lists.sampling_scratch(self.m)

    def follow(self, state: FTRLPBMState, *, warm: bool) -> None:
        weight = WEIGHT * np.sqrt(rounds_kept(self.params, state))
        solved = (state.L_hat, state.u, state.v, state.x, state.rows, self.scratch()[0])
        if not warm or hybrid.newton(weight, *solved) < 0:
            hybrid.recover(weight, *solved)

    @staticmethod
    def _solver_bytes(n: int, m: int) -> int:
        return hybrid.scratch_bytes(n, m)


class FrankWolfe(InFull):
    """The paper's inexact leader, for experiments about it; many thousand times as slow."""

    def kernels(self) -> RankerKernels:
        return RankerKernels(rank_in_full, functools.partial(learn_by_frank_wolfe, self.steps))


_ESTIMATORS = {
    "loss": LOSS,
    "reduced-variance": REDUCED_VARIANCE,
    "mean": MEAN,
}
_AFRESH = 100  # rounds for each item that count where one of them is new
_LEAST_CHANCE = 1e-100  # a ticket with less was not issued by this ranker, and 1 / x squared would overflow


class FTRLPBM(ClickRanker):
    """Follow the regularised leader over lists, from clicks at every position.

    Each round draws a list whose chances of having item i at position j are x_ij, the minimiser of the losses
    estimated so far plus a Tsallis entropy whose weight grows as sqrt(t). A position without a click counts as a loss
    of 1 / x_ij for the item that stood there. Regret O(log T) where users come from one population, O(m sqrt(nT))
    whatever they do. It needs to know neither which case holds nor the horizon.

    Parameters
    ----------
    n_items : int
        How many items there are, n.
    n_positions : int, optional
        How many of them are shown, m; None shows all.
    estimator : str, optional
        "loss" is the paper's; "reduced-variance" and "mean" weigh a loss against a baseline, one half or the
        mean of that item at that position so far. All are unbiased.
    regulariser : str, optional
        "tsallis" is the paper's; "hybrid" is that of Zimmert, Luo and Wei, with smaller baselines for unlikely items.
        With estimator="mean" it has the least regret.
    forget : int, optional
        What was learnt this many rounds ago counts for about a third, 1/e, for users who change; None forgets nothing.
    solver : str, optional
        "newton" finds the minimiser; "frank-wolfe" is the paper's Algorithm 2, slow and inexact, for reference.
    sampler : str, optional
        "lazy" takes matchings off x only until one is drawn; "birkhoff" is the paper's Algorithm 3, which takes
        x apart completely. Both have the same marginals.
    steps : int, optional
        How many steps "frank-wolfe" takes a round, K.

    Notation
    --------
    n: n_items, m: n_positions, L_hat: state.L_hat, x_t: x (position by item), eta_t = 1 / (2 sqrt t), with the
    hybrid regulariser 2 / sqrt t; N: forget, K: steps.

    Departures
    ----------
    The minimiser is exact (erratum C5). Lists are drawn from fewer matchings of merged rows, with the same marginals.
    t counts the rounds with feedback.

    References
    ----------
    C. Chen, C. Zhao and S. Li, Simultaneously learning stochastic and adversarial bandits under the position-based
    model, AAAI 2022.
    J. Zimmert, H. Luo and C.-Y. Wei, Beating stochastic and adversarial semi-bandits optimally and simultaneously,
    ICML 2019.

    Examples
    --------
    >>> ranker = FTRLPBM(n_items=10, n_positions=5)
    >>> rng = np.random.default_rng(1)
    >>> shown = ranker.rank(rng=rng)
    >>> shown.propensities.round(6)
    array([0.1, 0.1, 0.1, 0.1, 0.1])
    >>> ranker.learn(shown, [1, 0, 0, 1, 0])  # a click or none at each position
    >>> bool(ranker.x[0, shown.items[0]] > ranker.x[1, shown.items[1]])
    True
    """

    algorithm_version = 3
    _may_plan = True  # whether x need not be written out, where only the losses of what was shown change
    summary = "Observes clicks, and knows how likely each list was."

    def __init__(
        self,
        *,
        n_items: int,
        n_positions: int | None = None,
        estimator: str = "loss",
        regulariser: str = "tsallis",
        forget: int | None = None,
        solver: str = "newton",
        sampler: str = "lazy",
        steps: int = 1000,
    ) -> None:
        n, m = self.read_size(n_items, n_positions)
        one_of("estimator", estimator, tuple(_ESTIMATORS))
        one_of("regulariser", regulariser, ("tsallis", "hybrid"))
        one_of("solver", solver, ("newton", "frank-wolfe"))
        one_of("sampler", sampler, ("lazy", "birkhoff"))
        self.steps = whole("steps", steps, at_least=1)
        self.forget = None if forget is None else whole("forget", forget, at_least=2)
        if solver == "frank-wolfe" and (regulariser == "hybrid" or forget is not None):
            raise ValueError(
                "solver='frank-wolfe' is the paper's and needs regulariser='tsallis' and forget=None, got "
                f"regulariser={regulariser!r} and forget={forget!r}"
            )
        self.params = FTRLPBMParams(
            _ESTIMATORS[estimator], 1.0 if self.forget is None else 1.0 - 1.0 / self.forget
        )
        self._proved = solver == "newton" and (
            regulariser == "hybrid"
            or estimator == "loss"
            or (estimator == "reduced-variance" and m == 1 and forget is None)
        )
        algorithm = self._algorithm(n, m, estimator, regulariser, forget, solver, sampler)
        self._leader = algorithm(n, m, self.params, self.steps)
        self.kernels = self._leader.kernels()
        self.state = self._leader.new_state()
        if sampler == "birkhoff":
            self.kernels = RankerKernels(rank_by_birkhoff, self.kernels.learn)
        if (solver, sampler) != ("newton", "lazy"):
            self.fusable = False

    @classmethod
    def _algorithm(
        cls,
        n: int,
        m: int,
        estimator: str = "loss",
        regulariser: str = "tsallis",
        forget: int | None = None,
        solver: str = "newton",
        sampler: str = "lazy",
        **others: Any,
    ) -> type[InFull | Planned]:
        if solver == "frank-wolfe":
            return FrankWolfe
        if regulariser == "hybrid":
            return Hybrid
        # A plan needs that only the losses of what was shown change, and that there are rows that are not tight.
        few_change = estimator == "loss" and forget is None and sampler == "lazy"
        return Planned if cls._may_plan and few_change and n > m else InFull

    @property
    def x(self) -> Floats:
        """The chance of item i at position j in the next list, as a positions x items matrix."""
        return self._leader.chances(self.state)

    def tunable(self) -> Mapping[str, Range]:
        found: dict[str, Range] = {"estimator": OneOf(*_ESTIMATORS)}
        if self.get_params()["solver"] == "newton":
            found |= {
                "regulariser": OneOf("tsallis", "hybrid"),
                "forget": OneOf(None, Whole(1_000, 1_000_000)),
            }
        return found

    def scratch(self, n: int) -> tuple[Any, ...]:
        return self._leader.scratch()

    def blank_propensities(self, n: int) -> Floats:
        return np.empty(n)

    def ticket_limits(self, items: Ints, propensities: Floats, memo: Memo) -> list[Limits]:
        return [("propensities must be probabilities", propensities, _LEAST_CHANCE, 1.0 + 1e-9)]

    def load(self, saved: Mapping[str, Array] | str | os.PathLike[str]) -> None:
        if isinstance(saved, str | os.PathLike):
            saved = base.read_state(saved)
        if not self._leader.is_former(saved):
            super().load(saved)
            return
        base.check_origin(saved, self)
        first = WithoutPlan(**self.get_params())  # as it was in version 1
        first.load({name: value for name, value in saved.items() if name != base.ORIGIN})
        for name in ("t", "L_hat", "u", "v", "fallbacks"):
            getattr(self.state, name)[...] = getattr(first.state, name)
        self._leader.follow(self.state, warm=True)

    def check_state(self, saved: Mapping[str, Array]) -> None:
        self._leader.check(saved, self.kernels)

    def carry(self, old: Any, origin: Ints, positions: Ints | None = None) -> None:
        """A new item begins level with the best; with it, the steps become as large again as after few rounds.

        A leader depends on L_hat / sqrt(t) alone. With both made smaller the known items keep their chances, and what
        comes next counts for more; otherwise a new item that is bad would lose its lead in steps that have become tiny.
        """
        # Losses, so the best is the least. Where all items are shown, positions come and go with them.
        there = same_positions(positions, self.n_positions, old.n_positions)
        state = self.state
        state.L_hat[:] = -np.stack([carried_sums(-old.state.L_hat[j], origin) for j in there])
        for name in () if self.params.estimator != MEAN else ("seen", "lost"):
            known = getattr(old.state, name)
            if known.size:
                getattr(state, name)[:] = np.where(origin >= 0, known[there][:, np.maximum(origin, 0)], 0.0)
        state.t[:] = old.state.t
        afresh = _AFRESH * self.n_items
        if (origin < 0).any() and state.t[0] > afresh:
            before = rounds_kept(self.params, state)
            state.t[0] = afresh
            state.L_hat[:] -= state.L_hat.min(axis=1, keepdims=True)
            state.L_hat[:] *= np.sqrt(rounds_kept(self.params, state) / before)
        self._leader.follow(state, warm=False)

    def part_kind(self) -> type[FTRLPBM]:
        # For one list a plan does not pay.
        return WithoutPlan if isinstance(self._leader, Planned) else type(self)

    def absorb(self, part: Any, items: Ints, positions: Ints, ranking: Ranking, feedback: Floats) -> None:
        # What was no candidate is charged what its position lost, so that the round counts neither for nor against it.
        state, here = self.state, np.ix_(positions, items)
        for name in ("L_hat", "seen", "lost") if self.params.estimator == MEAN else ("L_hat",):
            table = getattr(state, name)
            table *= self.params.kept
            if name == "L_hat":
                table[positions] += (1.0 - feedback)[:, None]
            table[here] = getattr(part.state, name)
        state.t[0] += 1
        state.fallbacks[:] += part.state.fallbacks
        self._leader.follow(state, warm=True)

    def learn_logged(
        self, items: Ints, feedback: Any, *, propensities: Floats | None = None, features: Any = None
    ) -> None:
        """Learns where the log has propensities: its estimates are weighed by those of whoever drew the list."""
        if propensities is None:
            raise ValueError("FTRLPBM needs the propensity of each shown item to learn from a log")
        self.learn(Ranking(items, propensities, ()), feedback)

    def counters(self) -> dict[str, int]:
        slow, inexact = self.state.fallbacks.tolist()
        return {"solver_fallbacks": slow, "solver_inexact": inexact}

    def current(self, context: Any = None) -> Ints:
        """The likeliest list: the assignment of items to positions with the largest sum of probabilities."""
        self.read_context(context)
        items = np.empty(self.n_positions, np.int64)
        x = self.x
        best_list(x, items)
        return in_order(x, items)

    def regret_bound(self, rounds: int) -> float:
        """Theorem 1 with its lower terms (erratum C8), or what is proved for the hybrid and for forgetting.

        Parameters
        ----------
        rounds : int
            The number of rounds, T.

        Returns
        -------
        float
            The bound on the expected regret against the best list that never changes, where no feedback is late. Each
            further list that the regret is measured against costs at most m `forget` more.

        Raises
        ------
        ValueError
            Where nothing is proved for these settings.

        Examples
        --------
        >>> round(FTRLPBM(n_items=10, n_positions=5).regret_bound(1_000_000))
        95021
        >>> round(FTRLPBM(n_items=10, n_positions=5, regulariser="hybrid").regret_bound(1_000_000))
        134397
        """
        T = whole("rounds", rounds, at_least=1)
        if not self._proved:
            raise ValueError(
                "regret_bound is proved for solver='newton' with regulariser='hybrid' or estimator='loss' (or "
                f"'reduced-variance' with one position and forget=None), got {self!r}"
            )
        m, n, kept = self.n_positions, self.n_items, self.params.kept
        of_hybrid = isinstance(self._leader, Hybrid)
        if self.forget is None and not of_hybrid:
            return float(3 * m + 2 * m * np.log(T) + 6 * m * np.sqrt(float(n) * T))
        weight = WEIGHT if of_hybrid else 2.0
        # By how much a negative estimate may be worse than a positive one.
        factor = 1.0 if self.params.estimator == LOSS else 1.0 / (1.0 - 2 * GUARD / kept)
        unit = m * np.sqrt(float(n)) * (weight * kept + 4.0 * factor / (weight * kept))
        if self.forget is None:
            return float(unit * np.sqrt(T))
        return float((T / self.forget + kept) * unit * np.sqrt(min(T, self.forget)))

    @classmethod
    def bytes_for(
        cls, *, n_items: int = 0, n_positions: int | None = None, estimator: str = "loss", **parameters: Any
    ) -> int:
        n, m = n_items, n_positions or n_items
        return cls._algorithm(n, m, estimator, **parameters).bytes(n, m, estimator)


class WithoutPlan(FTRLPBM):
    """FTRL-PBM with x written out in its state every round, for those who read it there."""

    _may_plan = False
