"""A short soak: users and faults at once."""

from __future__ import annotations

from pathlib import Path

from tests.serving import soak


def test_nothing_is_lost_while_faults_come(tmp_path: Path) -> None:
    done, problems = soak.run(tmp_path, events=400, every=0.2, seed=1, least_faults=2)
    assert problems == []
    assert done.acknowledged >= 400
    assert min(done.faults["kill"], done.faults["restart"]) >= 1


def test_growth_compares_the_ends() -> None:
    assert soak.growth([(1, 100.0), (2, 120.0), (3, 150.0)]) == 1.5
