"""Every kind of fault of `make torture`, a few times each."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.serving.faults import kinds
from tests.serving.faults.outcome import Outcome

FEW: dict[str, Callable[[], Outcome]] = {
    "power": lambda: kinds.power_losses(6, seed=2),
    "full": lambda: kinds.failing_writes(4, error="full", seed=2),
    "broken": lambda: kinds.failing_writes(4, error="broken", seed=2),
    "locks": lambda: kinds.locks(3, seed=2),
    "hanging": lambda: kinds.hanging_disks(8, seed=2),
    "slow": lambda: kinds.slow_disks(3, seed=2),
    "clocks": lambda: kinds.clock_jumps(10, seed=2),
    "requests": lambda: kinds.hostile_requests(12, seed=2),
    "ends": lambda: kinds.cut_ends(2, seed=2),
    "flips": lambda: kinds.flipped_bits(6, seed=2),
}


@pytest.mark.parametrize("kind", FEW)
def test_nothing_is_lost_doubled_or_undetected(kind: str) -> None:
    outcome = FEW[kind]()
    assert outcome.tried > 0
    assert (outcome.lost, outcome.doubled, outcome.undetected) == (0, 0, 0), outcome.notes
    if kind in ("broken", "hanging", "requests", "ends", "flips"):
        assert outcome.refused > 0
