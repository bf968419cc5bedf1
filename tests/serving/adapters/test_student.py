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
    # Compiled kernels may bring SciPy along, through numba; the quantile of an interval does not.
    story = """
import sys
from rankloop.serving.adapters import estimates, student
print(student.quantile(7) > 2, "scipy.special" in sys.modules)
"""
    told = subprocess.run([sys.executable, "-c", story], capture_output=True, text=True, check=False)
    assert told.stdout.split() == ["True", "False"], told.stderr
