"""The quantile of Student's t is SciPy's, and the service does without SciPy."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy.special import stdtrit

from rankloop.serving.adapters.student import quantile


def test_it_is_scipys() -> None:
    freedom = np.concatenate([np.arange(1, 2_000), 10 ** np.arange(4, 13)])
    assert [quantile(int(n)) for n in freedom] == pytest.approx(stdtrit(freedom, 0.975), rel=2e-8)


def test_there_must_be_freedom() -> None:
    with pytest.raises(ValueError, match="freedom must be at least 1, got 0"):
        quantile(0)


def test_an_interval_does_not_import_scipy() -> None:
    story = """
import asyncio, sys
from rankloop.serving.engine import Engine
from rankloop.serving.schemas import CreateRequest, FeedbackRequest, RankRequest
from rankloop.serving.stores.memory import MemoryStore

async def story():
    engine = Engine(MemoryStore())
    await engine.open()
    await engine.create(CreateRequest("a", "RTop1F", items=["x", "y", "z"], seed=1))
    for _ in range(60):
        shown = await engine.rank("a", RankRequest())
        await engine.feedback("a", [FeedbackRequest(shown.decision_id, relevance=[1.0])])
    print(engine.rankers["a"].fold.estimates.value(0) is not None, "scipy.special" in sys.modules)
    await engine.close()

asyncio.run(story())
"""
    told = subprocess.run([sys.executable, "-c", story], capture_output=True, text=True, check=False)
    assert told.stdout.split() == ["True", "False"], told.stderr
