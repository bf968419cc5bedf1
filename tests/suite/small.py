"""Two small worlds and a submission from them, for the tests."""

from __future__ import annotations

from pathlib import Path

from rankloop import environments
from rankloop.base import Environment
from rankloop.suite import Entry, Submission, World, run


def _still(rounds: int) -> Environment:
    return environments.PositionBased(attraction=[0.2, 0.9, 0.5, 0.1], examination=[1.0, 0.5])


def _turning(rounds: int) -> Environment:
    world = environments.PositionBased(attraction=[0.2, 0.9, 0.5, 0.1], examination=[1.0, 0.5])
    return environments.Periodic([world, world.exchanged()], phase=rounds // 2)


def _relevant(rounds: int) -> Environment:
    return environments.FixedItems(environments.users.bernoulli([0.2, 0.9, 0.5]), measure="dcg")


STILL = World("still", "noise", "users who stay", _still, quick=300, full=600)
TURNING = World("turning", "reversal", "users who change", _turning, quick=400, full=800, by_phase=True)
LATE = World("late", "delay", "feedback comes late", _still, quick=60, full=60, delay=5)
RELEVANT = World("relevant", "noise", "users who tell", _relevant, quick=200, full=200)
WORLDS = (STILL, TURNING, LATE, RELEVANT)
ENTRIES = [Entry("FTRLPBM"), Entry("CascadeKLUCB")]


def submission(folder: Path | None = None, *, seeds: int = 2, workers: int | None = None) -> Submission:
    return run(ENTRIES, worlds=WORLDS, seeds=seeds, folder=folder, workers=workers, progress=False)
