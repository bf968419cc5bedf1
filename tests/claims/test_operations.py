"""O(m log m) a round (2015, Result 2; 2016, section 4.2), counted in lines of kernel code instead of seconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from math import log2
from pathlib import Path

import pytest

MOST = 40  # lines for each of m log m


@cache
def counts() -> dict[str, dict[int, int]]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.claims.operations"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return {name: {int(m): n for m, n in found.items()} for name, found in json.loads(done.stdout).items()}


def grows_as_m_log_m(found: dict[int, int]) -> bool:
    small = all(lines <= MOST * m * log2(m) for m, lines in found.items())
    # Longer lists are not sorted by comparing all pairs: twice the items take at most 2.3 times the lines.
    return small and all(found[2 * m] < 2.3 * found[m] for m in found if m >= 256 and 2 * m in found)


@pytest.mark.judges("2015-021", "2016-121")
@pytest.mark.parametrize("name", ["RTop1F", "RTopKF"])
def test_a_round_takes_m_log_m_operations(name: str) -> None:
    assert grows_as_m_log_m(counts()[name])
    assert not grows_as_m_log_m(counts()["every pair"])  # which takes m squared
