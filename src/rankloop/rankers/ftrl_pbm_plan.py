"""FTRL-PBM's default (2022, Algorithm 1): by a plan, so that a round hardly costs more where there are more items.

With the paper's estimate only the losses of what was shown change, and all other items move together with the
multipliers of the positions. So x is not written out: most items are summed in bulk (`list_plan`). Where the plan does
not hold any longer, x is found anew in full, and a new plan is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rankloop.base import Array, Floats, Ints
from rankloop.compiled import RankerKernels
from rankloop.kernels import list_plan, lists, tsallis
from rankloop.kernels.jit import apart, hot


class PlannedState(NamedTuple):
    """What was learnt, the multipliers of the leader that follows from it, and the plan: see `list_plan.Plan`."""

    t: Ints  # the round that is to come, counted from 1
    L_hat: Floats
    u: Floats  # multipliers of the items' row sums
    v: Floats  # ... and of the positions' column sums
    fallbacks: Ints  # solves that needed the slow way; and those of them that ended inexact
    counts: Ints
    kept: Ints
    place: Ints
    slot_L: Floats
    slot_lines: Floats
    slot_u: Floats
    slot_x: Floats
    slot_rows: Floats
    sums: Floats
    table: Floats
    bounds: Ints
    edge: Floats
    matchings: Ints
    whole: Floats


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """Alg. 1, line 4."""
    t = float(state.t[0])
    return list_plan.show(t, state.L_hat, state.v, state, key, scratch[1], items, propensities)


@hot
def learn(
    params: Any, state: Any, context: Any, scratch: Any, items: Any, propensities: Any, memo: Any, clicks: Any
) -> None:
    """Alg. 1, lines 5-7 and the next line 3."""
    for j in range(len(items)):
        if clicks[j] < 1.0:
            list_plan.add_loss(state, j, items[j], (1.0 - clicks[j]) / propensities[j])
    state.t[0] += 1
    t = float(state.t[0])
    found = state.counts[list_plan.EXACT] and list_plan.newton(t, state.v, state, scratch[0])
    holds = found and list_plan.weigh(t, state.v, state)
    due = state.t[0] >= state.counts[list_plan.LISTED]
    if not holds or (due and state.counts[list_plan.SLOT_BINS] == state.counts[list_plan.BINS]):
        plan_anew(state, scratch)
    elif due:
        list_plan.list_matchings(t, state, scratch[1])


@apart
def plan_anew(state: Any, scratch: Any) -> None:
    """The leader in full, from the present multipliers, and a plan for it."""
    t, own = float(state.t[0]), scratch[0]
    L, u, v, x, rows = state.L_hat, state.u, state.v, state.table, own.work[2]
    solver_scratch = list_plan.scratch_in_full(len(v), own)
    state.counts[list_plan.EXACT] = 1
    if tsallis.newton(t, L, u, v, x, rows, solver_scratch) < 0:
        failure = tsallis.recover(t, L, u, v, x, rows, solver_scratch)
        state.fallbacks[0] += 1
        state.fallbacks[1] += failure == 2
        state.counts[list_plan.EXACT] = failure != 2
    list_plan.make(L, u, v, rows, state)
    if state.counts[list_plan.EXACT]:
        list_plan.evaluate(t, v, state)
    list_plan.weigh(t, v, state)
    list_plan.list_matchings(t, state, scratch[1])


# Fields of a state of the first version, which had x in place of a plan
_WITHOUT = {"x", "rows", "seen", "lost"}


class Planned:
    """The leader by a plan, as the ranker sees it."""

    def __init__(self, n: int, m: int, params: Any, steps: int) -> None:
        self.n, self.m = n, m

    def kernels(self) -> RankerKernels:
        return RankerKernels(rank, learn)

    def new_state(self) -> PlannedState:
        n, m = self.n, self.m
        state = PlannedState(
            t=np.ones(1, np.int64),
            L_hat=np.zeros((m, n)),  # erratum C3
            u=np.zeros(n),
            v=np.full(m, np.sqrt(n)),
            fallbacks=np.zeros(2, np.int64),
            **list_plan.blank(n, m)._asdict(),
        )
        plan_anew(state, self.scratch())
        return state

    def scratch(self) -> tuple[Any, ...]:
        n, m = self.n, self.m
        return list_plan.step_scratch(n, list_plan.slots(n, m), m), lists.matching_scratch(m)

    def chances(self, state: PlannedState) -> Floats:
        return _chances(state._asdict())

    def is_former(self, saved: Mapping[str, Array]) -> bool:
        """Whether a state was saved by a version that found the leader in another way."""
        return set(saved) >= _WITHOUT

    def follow(self, state: PlannedState, *, warm: bool) -> None:
        """The leader and a plan, where losses were not learnt but written."""
        if not (state.L_hat + state.u + state.v[:, None] > 0).all():
            state.u[:] = 0.0
            state.v[:] = np.sqrt(float(self.n) * state.t[0]) - state.L_hat.min(axis=1)
        plan_anew(state, self.scratch())

    def check(self, saved: Mapping[str, Array], kernels: RankerKernels) -> None:
        """ValueError where arrays of the right shape are neither a leader nor a plan that kernels can follow."""
        m, n = saved["L_hat"].shape
        t, x = int(saved["t"][0]), _chances(saved)
        if t < 1:
            raise ValueError(f"saved state 't' must be at least 1, got {t}")
        D = np.asarray(saved["L_hat"]) + saved["u"] + np.asarray(saved["v"])[:, None]
        exact = bool(saved["counts"][list_plan.EXACT])
        if not ((D > 0).all() or not exact) or not (
            (x >= 0).all()
            and np.allclose(x.sum(axis=1), 1, rtol=0, atol=1e-8)
            and x.sum(axis=0).max() <= 1 + 1e-8
        ):
            raise ValueError(
                "saved state 'u' and 'v' must be multipliers for 'L_hat': chances that sum to 1 over the items and "
                "to at most 1 over the positions"
            )
        slot_bins, bins, matchings, _, _ = np.asarray(saved["counts"]).tolist()
        kept, place = np.asarray(saved["kept"]), np.asarray(saved["place"])
        used = np.flatnonzero(kept >= 0)
        bounds = np.asarray(saved["bounds"])[:bins] if 0 <= bins <= len(saved["bounds"]) else None
        if (
            bounds is None
            or not 0 <= slot_bins <= bins
            or not 0 <= matchings <= len(saved["matchings"])
            or not ((kept >= -1) & (kept < n)).all()
            or not np.array_equal(np.sort(used), np.sort(place[kept[used]]))
            or not ((place >= 0) | ((place < -slot_bins) & (place >= -bins))).all()
            or np.count_nonzero(place >= 0) != len(used)
            or not ((bounds[:, 0] >= 0) & (bounds[:, 0] < bounds[:, 1])).all()
            or not (bounds[:slot_bins, 1] <= len(used)).all()
            or not (bounds[slot_bins:, 1] <= n).all()
            or not (np.sort(saved["matchings"][:matchings, :bins], axis=1) == np.arange(bins)).all()
        ):
            raise ValueError("saved state 'counts', 'kept', 'place', 'bounds' and 'matchings' must be a plan")
        slots = np.asarray(saved["slot_L"])[:, used]
        if not (
            np.array_equal(slots, np.asarray(saved["L_hat"])[:, kept[used]])
            and np.array_equal(slots.T, np.asarray(saved["slot_lines"])[used, :m])
            and np.array_equal(np.asarray(saved["slot_u"])[used], np.asarray(saved["u"])[kept[used]])
            and np.allclose(np.asarray(saved["slot_x"])[:, used], x[:, kept[used]], rtol=0, atol=1e-8)
            and np.allclose(np.asarray(saved["whole"])[:m, :bins].sum(axis=1), 1, rtol=0, atol=1e-8)
            and (np.diff(saved["table"], prepend=0.0) >= 0).all()
            and (np.asarray(saved["edge"])[list_plan.LEAST_D, :m] > 0).all()
            and (np.isfinite(beyond := np.asarray(saved["edge"])[:, m:]) & (beyond > 0)).all()
        ):
            raise ValueError("saved state 'slot_L', 'slot_u', 'slot_x' and 'whole' must be of its leader")

    @staticmethod
    def bytes(n: int, m: int, estimator: str) -> int:
        """Of state and scratch."""
        slots, bins, width = list_plan.slots(n, m), lists.most_bins(m), 8 * ((m + 7) // 8)
        most = min(slots, 2 * m)
        plan = slots * (2 * m + width + 3) + bins * (m * 9 + 3 + list_plan.MOST_MATCHINGS) + 4 * width + 8
        own = most * (2 * width + most + 3) + 9 * width
        return 8 * (2 * m * n + 5 * n + plan + own) + lists.sampling_scratch_bytes(m)


def _chances(saved: Mapping[str, Array]) -> Floats:
    """x, written out."""
    D = np.asarray(saved["L_hat"]) + saved["u"] + np.asarray(saved["v"])[:, None]
    x: Floats = np.float64(saved["t"][0]) / (D * D)
    if not saved["counts"][list_plan.EXACT]:
        x = np.diff(np.asarray(saved["table"]), prepend=0.0)
        used = np.asarray(saved["kept"]) >= 0
        x[:, np.asarray(saved["kept"])[used]] = np.asarray(saved["slot_x"])[:, used]
    return x
