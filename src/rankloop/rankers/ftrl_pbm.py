"""FTRL-PBM: rank from position-based clicks, in stochastic and adversarial worlds (Chen, Zhao and Li 2022)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankloop import state_file
from rankloop.arguments import one_of, whole
from rankloop.base import Array, Ranking
from rankloop.compiled import RankerKernels, read_positions
from rankloop.feedback import Clicks
from rankloop.kernels.call_checks import within
from rankloop.kernels.rankers import ftrl_pbm, ftrl_pbm_hybrid, ftrl_pbm_planned
from rankloop.kernels.solvers import hybrid, list_network, list_sampling, tsallis
from rankloop.kernels.solvers.assignment import best_list
from rankloop.kernels.solvers.ties import in_order
from rankloop.ranges import OneOf, Range, Whole
from rankloop.rankers import ftrl_pbm_plan, ftrl_pbm_state
from rankloop.rankers.click_ranker import same_positions
from rankloop.rankers.ftrl_pbm_bound import bound
from rankloop.rankers.some_items import SomeItems
from rankloop.servable import carried_sums

_ESTIMATORS = {
    "loss": ftrl_pbm.LOSS,
    "reduced-variance": ftrl_pbm.REDUCED_VARIANCE,
    "mean": ftrl_pbm.MEAN,
}
_LEAST_CHANCE = 1e-100  # a ticket with less was not issued by this ranker, and 1 / x squared would overflow


class FTRLPBM(SomeItems):
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

    n_items: int
    n_positions: int
    algorithm_version = 2
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
        n = whole("n_items", n_items, at_least=1)
        m = read_positions(n_positions, n) or n
        one_of("estimator", estimator, tuple(_ESTIMATORS))
        one_of("regulariser", regulariser, ("tsallis", "hybrid"))
        one_of("solver", solver, ("newton", "frank-wolfe"))
        one_of("sampler", sampler, ("lazy", "birkhoff"))
        self.n_items, self.n_positions = n, m
        self.steps = whole("steps", steps, at_least=1)
        self.feedback = Clicks()
        self.forget = None if forget is None else whole("forget", forget, at_least=2)
        self.hybrid = regulariser == "hybrid"
        if solver == "frank-wolfe" and (self.hybrid or forget is not None):
            raise ValueError(
                "solver='frank-wolfe' is the paper's and needs regulariser='tsallis' and forget=None, got "
                f"regulariser={regulariser!r} and forget={forget!r}"
            )
        self.kernels = RankerKernels(ftrl_pbm.rank, ftrl_pbm_hybrid.learn if self.hybrid else ftrl_pbm.learn)
        if (solver, sampler) != ("newton", "lazy"):
            self._take_reference(solver, sampler)
        self.params = ftrl_pbm.FTRLPBMParams(
            _ESTIMATORS[estimator], 1.0 if self.forget is None else 1.0 - 1.0 / self.forget
        )
        self._proved = solver == "newton" and (
            self.hybrid
            or estimator == "loss"
            or (estimator == "reduced-variance" and m == 1 and forget is None)
        )
        self._planned = self._plans(
            n, m, estimator=estimator, regulariser=regulariser, forget=forget, solver=solver, sampler=sampler
        )
        if self._planned:
            self.kernels = RankerKernels(ftrl_pbm_planned.rank, ftrl_pbm_planned.learn)
            self.state = ftrl_pbm_plan.new_state(n, m)
            return
        counted = (m, n) if estimator == "mean" else (0, 0)
        self.state = ftrl_pbm.FTRLPBMState(
            t=np.ones(1, np.int64),
            L_hat=np.zeros((m, n)),
            u=np.zeros(n),
            v=np.full(m, ftrl_pbm_hybrid.WEIGHT * hybrid.even_multiplier(n) if self.hybrid else np.sqrt(n)),
            x=np.full((m, n), 1 / n),  # L_hat = 0, erratum C3
            rows=np.full(n, m / n),
            seen=np.zeros(counted),
            lost=np.zeros(counted),
            fallbacks=np.zeros(2, np.int64),
        )

    @classmethod
    def _plans(cls, n: int, m: int, **arguments: Any) -> bool:
        # Only the losses of what was shown change, and there are rows that are not tight.
        usual = {
            "estimator": "loss",
            "regulariser": "tsallis",
            "forget": None,
            "solver": "newton",
            "sampler": "lazy",
        }
        return (
            cls._may_plan and n > m and all(arguments.get(name, usual[name]) == usual[name] for name in usual)
        )

    def _take_reference(self, solver: str, sampler: str) -> None:
        from rankloop.rankers import ftrl_pbm_reference as reference

        self.fusable = False
        rank: Any = reference.rank if sampler == "birkhoff" else ftrl_pbm.rank
        learn: Any = self.kernels.learn if solver == "newton" else reference.learner(self.steps)
        self.kernels = RankerKernels(rank, learn)

    @property
    def x(self) -> NDArray[np.float64]:
        """The chance of item i at position j in the next list, as a positions x items matrix."""
        if self._planned:
            return ftrl_pbm_plan.chances(self.state._asdict())
        chances: NDArray[np.float64] = self.state.x.copy()
        return chances

    def tunable(self) -> Mapping[str, Range]:
        found: dict[str, Range] = {"estimator": OneOf(*_ESTIMATORS)}
        if self.get_params()["solver"] == "newton":
            found |= {
                "regulariser": OneOf("tsallis", "hybrid"),
                "forget": OneOf(None, Whole(1_000, 1_000_000)),
            }
        return found

    def scratch(self, n: int) -> tuple[Any, ...]:
        if self._planned:
            return ftrl_pbm_plan.scratch(self.n_items, self.n_positions)
        make = hybrid.room if self.hybrid else list_network.room
        return make(self.n_items, self.n_positions), list_sampling.room(self.n_positions)

    def blank_propensities(self, n: int) -> NDArray[np.float64]:
        return np.empty(n)

    def check_ticket(self, ranking: Ranking) -> None:
        chances = ranking.propensities
        assert chances is not None
        if not within(chances, _LEAST_CHANCE, 1.0 + 1e-9):
            raise ValueError(f"ranking.propensities must be probabilities, got {chances}")

    def load(self, saved: Mapping[str, Array] | str | os.PathLike[str]) -> None:
        if isinstance(saved, str | os.PathLike):
            saved = state_file.read(saved)
        if not (self._planned and ftrl_pbm_plan.is_without(saved)):
            super().load(saved)
            return
        state_file.check_origin(saved, self)
        first = WithoutPlan(**self.get_params())  # as it was in version 1
        first.load({name: value for name, value in saved.items() if name != state_file.ORIGIN})
        ftrl_pbm_plan.take(self.state, first.state_arrays())

    def check_state(self, saved: Mapping[str, Array]) -> None:
        if self._planned:
            ftrl_pbm_plan.check(saved)
            return
        ftrl_pbm_state.check(saved, positive=self.kernels.learn is ftrl_pbm.learn)

    def carry(self, old: Any, origin: NDArray[np.int64], positions: NDArray[np.int64] | None = None) -> None:
        # Losses, so the best is the least. Where all items are shown, positions come and go with them.
        there = same_positions(positions, self.n_positions, old.n_positions)
        state = self.state
        state.L_hat[:] = -np.stack([carried_sums(-old.state.L_hat[j], origin) for j in there])
        for name in () if self.params.estimator != ftrl_pbm.MEAN else ("seen", "lost"):
            known = getattr(old.state, name)
            if known.size:
                getattr(state, name)[:] = np.where(origin >= 0, known[there][:, np.maximum(origin, 0)], 0.0)
        state.t[:] = old.state.t
        self._follow(warm=False)

    def _follow(self, *, warm: bool) -> None:
        """The leader that follows from the losses, where `learn` did not find it."""
        state = self.state
        if self._planned:
            ftrl_pbm_plan.follow(state)
            return
        kept: float = ftrl_pbm.rounds_kept(self.params, state)
        found = (state.L_hat, state.u, state.v, state.x, state.rows, self.scratch(self.n_positions)[0])
        if self.hybrid:
            weight = ftrl_pbm_hybrid.WEIGHT * np.sqrt(kept)
            if not warm or hybrid.newton(weight, *found) < 0:
                hybrid.recover(weight, *found)
        elif not (state.L_hat + state.u + state.v[:, None] > 0).all() or tsallis.newton(kept, *found) < 0:
            tsallis.recover(kept, *found)

    def among(self, items: NDArray[np.int64], positions: NDArray[np.int64]) -> Any:
        if not self._planned:
            return super().among(items, positions)
        part = WithoutPlan(**self.part_arguments(len(items), positions))  # for one list a plan does not pay
        part.carry(self, items, positions)
        return part

    def absorb(
        self,
        part: Any,
        items: NDArray[np.int64],
        positions: NDArray[np.int64],
        ranking: Ranking,
        feedback: NDArray[np.float64],
    ) -> None:
        # What was no candidate is charged what its position lost, so that the round counts neither for nor against it.
        state, here = self.state, np.ix_(positions, items)
        for name in ("L_hat", "seen", "lost") if self.params.estimator == ftrl_pbm.MEAN else ("L_hat",):
            table = getattr(state, name)
            table *= self.params.kept
            if name == "L_hat":
                table[positions] += (1.0 - feedback)[:, None]
            table[here] = getattr(part.state, name)
        state.t[0] += 1
        state.fallbacks[:] += part.state.fallbacks
        self._follow(warm=True)

    def translate(self, ranking: Ranking, before: NDArray[np.int64]) -> Ranking | None:
        """As it is, as long as all shown items and positions are still there."""
        if len(before) != self.n_positions or (before < 0).any():
            return None
        return Ranking(before, ranking.propensities, ranking.memo, ranking.explored)

    def learn_logged(
        self,
        items: NDArray[np.int64],
        feedback: Any,
        *,
        propensities: NDArray[np.float64] | None = None,
        features: Any = None,
    ) -> None:
        """Learns where the log has propensities: its estimates are weighed by those of whoever drew the list."""
        if propensities is None:
            raise ValueError("FTRLPBM needs the propensity of each shown item to learn from a log")
        self.learn(Ranking(items, propensities, ()), feedback)

    def counters(self) -> dict[str, int]:
        slow, inexact = self.state.fallbacks.tolist()
        return {"solver_fallbacks": slow, "solver_inexact": inexact}

    def current(self, context: Any = None) -> NDArray[np.int64]:
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
        unbiased = self.params.estimator == ftrl_pbm.LOSS
        return bound(
            self.n_positions,
            self.n_items,
            T,
            hybrid=self.hybrid,
            forget=self.forget,
            kept=self.params.kept,
            never_negative=unbiased,
        )

    @classmethod
    def bytes_for(
        cls,
        *,
        n_items: int = 0,
        n_positions: int | None = None,
        n_features: int = 0,
        estimator: str = "loss",
        regulariser: str = "tsallis",
        **parameters: Any,
    ) -> int:
        n, m = n_items, n_positions or n_items
        if cls._plans(n, m, estimator=estimator, regulariser=regulariser, **parameters):
            return ftrl_pbm_plan.state_bytes(n, m)
        tables = 4 if estimator == "mean" else 2
        room = hybrid.room_bytes(n, m) if regulariser == "hybrid" else list_network.room_bytes(n, m)
        return 8 * (tables * m * n + 2 * n + m) + room + list_sampling.room_bytes(m)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(n_items=6, n_positions=3)
        yield cls(n_items=4, estimator="reduced-variance")
        yield cls(n_items=5, n_positions=2, estimator="mean")
        yield cls(n_items=3, n_positions=1)
        yield cls(n_items=1)
        yield cls(n_items=4, n_positions=2, solver="frank-wolfe", sampler="birkhoff", steps=20)
        yield cls(n_items=6, n_positions=3, regulariser="hybrid", estimator="mean")
        yield cls(n_items=3, regulariser="hybrid", forget=10)
        yield cls(n_items=4, n_positions=2, forget=20)


class WithoutPlan(FTRLPBM):
    """FTRL-PBM with x written out in its state every round, for those who read it there."""

    _may_plan = False
