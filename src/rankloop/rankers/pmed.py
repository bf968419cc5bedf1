"""PMED: show what an optimisation requires to rule out every other model (Komiyama, Honda and Takeda 2017)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankloop.arguments import number, one_of, share, whole
from rankloop.base import Array, Ranking
from rankloop.compiled import RankerKernels
from rankloop.kernels import sorting
from rankloop.kernels.rankers import pmed
from rankloop.ranges import Between, Range
from rankloop.rankers.click_ranker import ClickRanker, carried_table, check_counts, same_positions


class PMED(ClickRanker):
    """Fits the position-based model, and shows lists until no model with another best list is likely enough.

    How often which item must stand where is the solution of a linear program with infinitely many constraints, one for
    each alternative model. It is solved with SciPy between rounds, when the number of rounds has grown by a
    factor. In between lists are taken from a queue. Examination probabilities need not be known, but must fall from
    position to position.

    Parameters
    ----------
    n_items : int
        How many items there are, K.
    n_positions : int, optional
        How many of them are shown, L; None shows all.
    alpha : float, optional
        Every item must have stood at every position alpha sqrt(log t) times.
    growth : float, optional
        The plan is made anew when the number of rounds has grown by this factor, ...
    every : int, optional
        ... but not before so many more rounds. `growth=1, every=10` comes close to the paper.
    tolerance : float, optional
        The cost of a plan may be so much above the least, relatively.
    refit : int, optional
        Every how many rounds the model is fitted, after the first 100.
    rates : str, optional
        The click rates that alternatives are held against: "seen", the paper's, or "fitted", those of the
        model.

    Notation
    --------
    theta_hat, kappa_hat: state.theta, state.kappa; L_C: state.queue; q: state.plan, each list state.required times.

    Departures
    ----------
    The plan is not made in every round. Lists of the queue are shown in random order. Items closer than 0.001
    count as that far apart in the optimisation, which has no solution for equal ones. This is PMED, not PMED-Hinge.

    References
    ----------
    J. Komiyama, J. Honda and A. Takeda, Position-based multiple-play bandit problem with unknown position bias,
    NeurIPS 2017.

    Examples
    --------
    >>> ranker = PMED(n_items=4, n_positions=2)
    >>> rng = np.random.default_rng(1)
    >>> for _ in range(4):  # each item once at every position
    ...     shown = ranker.rank(rng=rng)
    ...     ranker.learn(shown, shown.items < 2)
    >>> ranker.counters()["plans"]
    1
    """

    summary = "Observes clicks, and plans how often each list must be shown to rule out the others."
    no_candidates = "its plan is made of lists of all items"
    kernels = RankerKernels(pmed.rank, pmed.learn)

    algorithm_version = 3
    portable = False  # its plans come from HiGHS, whose last digits depend on the machine

    def __init__(
        self,
        *,
        n_items: int,
        n_positions: int | None = None,
        alpha: float = 1.0,
        growth: float = 1.1,
        every: int = 1,
        tolerance: float = 0.01,
        refit: int = 20,
        rates: str = "seen",
    ) -> None:
        n, m = self.read_size(n_items, n_positions)
        self.alpha = number("alpha", alpha, at_least=0, below=1e6)
        self.growth = number("growth", growth, at_least=1, below=1e6)
        self.every = whole("every", every, at_least=1)
        self.tolerance = share("tolerance", tolerance)
        self.rates = one_of("rates", rates, ("seen", "fitted"))
        self.params = pmed.PMEDParams(self.alpha, whole("refit", refit, at_least=1))
        circular = (np.arange(n)[:, None] + np.arange(m)[None, :]) % n
        self.state = pmed.PMEDState(
            t=np.zeros(1, np.int64),
            S=np.zeros((m, n)),
            N=np.zeros((m, n)),
            theta=np.full(n, 0.5),
            kappa=np.ones(m),
            best=np.arange(m),
            queue=np.vstack([circular, np.zeros((n * n + 1, m), np.int64)]),
            n_queue=np.array([n]),
            plan=np.zeros((n * n, m), np.int64),
            required=np.zeros(n * n),
            n_plan=np.zeros(1, np.int64),
            due=np.array([n]),
            starts=np.zeros((n, m)),
            solves=np.zeros(3, np.int64),
        )

    def until_pause(self) -> int | None:
        return max(int(self.state.due[0] - self.state.t[0]), 0) if self.n_items > 1 else None

    def pause(self) -> None:
        """Renew the plan: the optimisation of Alg. 1, line 12, and its Birkhoff decomposition."""
        from rankloop.rankers import pmed_plan  # SciPy takes a while to import, and most uses need no plan
        from rankloop.rankers.ftrl_pbm_reference import birkhoff

        state = self.state
        order = np.empty(self.n_items, np.int64)
        scratch = self.scratch(self.n_positions)
        pmed.by_estimate(state, scratch[1], order, scratch[3])
        model = pmed_plan.read_model(state.theta, state.kappa, state.S, state.N, order)
        if self.rates == "fitted":
            model = model.smoothed()
        starts = np.where(state.starts == 0.0, np.nan, state.starts)
        plan = pmed_plan.make_plan(model, starts, tolerance=self.tolerance)
        # Rounded, so that two machines whose exponentials differ in the last digit give the same run.
        state.starts[...] = plan.starts.round(4)
        state.starts[0] = 0.0
        total = float(plan.q.sum(axis=1).mean())
        lists, weights = birkhoff(plan.q / total)
        state.n_plan[0] = len(lists)
        state.plan[: len(lists)] = lists
        state.required[: len(lists)] = _rounded_up(weights * total)
        state.solves[...] += np.array([1, plan.programs, plan.share < 1 - self.tolerance])
        t = int(state.t[0])
        state.due[0] = max(t + self.every, math.ceil(self.growth * t))

    def tunable(self) -> Mapping[str, Range]:
        return {"alpha": Between(0.1, 10.0), "growth": Between(1.01, 2.0)}

    def scratch(self, n: int) -> tuple[Any, ...]:
        k = self.n_items
        return np.empty((self.n_positions, k)), np.empty(k), np.empty(k, np.int64), sorting.scratch(k)

    def blank_propensities(self, n: int) -> NDArray[np.float64]:
        return np.empty(n)

    def check_state(self, saved: Mapping[str, Array]) -> None:
        check_counts(saved["S"], saved["N"])
        n_queue, n_plan = int(saved["n_queue"][0]), int(saved["n_plan"][0])
        if not 0 < n_queue <= len(saved["queue"]) or not 0 <= n_plan <= len(saved["plan"]):
            raise ValueError(
                f"saved state 'n_queue' and 'n_plan' must count lists, got {n_queue} and {n_plan}"
            )
        for name in ("queue", "plan", "best"):
            if saved[name].min(initial=0) < 0 or saved[name].max(initial=0) >= self.n_items:
                raise ValueError(f"saved state {name!r} must name items below {self.n_items}")
        if self.n_items > 1 and saved["due"][0] <= saved["t"][0]:
            raise ValueError(f"saved state 'due' must be after round {saved['t'][0]}, got {saved['due'][0]}")

    def counters(self) -> dict[str, int]:
        plans, programs, inexact = self.state.solves.tolist()
        return {"plans": plans, "linear_programs": programs, "plans_inexact": inexact}

    def carry(self, old: Any, origin: NDArray[np.int64], positions: NDArray[np.int64] | None = None) -> None:
        """A new item was never shown: the circular lists are shown once again, then a new plan is made."""
        there = same_positions(positions, self.n_positions, old.n_positions)
        state = self.state
        state.S[:] = carried_table(old.state.S, origin, there)
        state.N[:] = carried_table(old.state.N, origin, there)
        state.theta[:] = np.where(origin >= 0, old.state.theta[np.maximum(origin, 0)], 0.5)
        state.kappa[:] = old.state.kappa[there]
        state.t[:] = old.state.t
        state.due[0] = int(old.state.t[0]) + self.n_items
        order, scratch = np.empty(self.n_items, np.int64), self.scratch(self.n_positions)
        pmed.by_estimate(state, scratch[1], order, scratch[3])
        state.best[:] = order[: self.n_positions]

    def learn_logged(
        self,
        items: NDArray[np.int64],
        feedback: Any,
        *,
        propensities: NDArray[np.float64] | None = None,
        features: Any = None,
    ) -> None:
        """Learns: its counts are of whatever was shown."""
        self.learn(Ranking(items, np.ones(len(items)), ()), feedback)

    def current(self, context: Any = None) -> NDArray[np.int64]:
        """The best list of the fitted model."""
        self.read_context(context)
        order, scratch = np.empty(self.n_items, np.int64), self.scratch(self.n_positions)
        pmed.by_estimate(self.state, scratch[1], order, scratch[3])
        return order[: self.n_positions]

    @classmethod
    def bytes_of(cls, n: int, m: int) -> int:
        lists = 2 * n * n + n + 1
        return 8 * (lists * m + n * n + 4 * n * m + 3 * n + 2 * m) + sorting.scratch_bytes(n)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(n_items=5, n_positions=3, growth=4.0, tolerance=0.3)
        yield cls(n_items=3, growth=4.0, every=20, tolerance=0.3)
        yield cls(n_items=3, n_positions=1, growth=2.0, every=20, tolerance=0.3)
        yield cls(n_items=1)


def _rounded_up(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """To three digits."""
    unit = 10.0 ** (np.floor(np.log10(np.maximum(values, 1e-300))) - 2)
    return np.ceil(values / unit - 1e-6) * unit
