"""Kernels that come from numba's cache are loaded without its compiler, and are the same."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from rankloop.kernels.call_checks import within
from rankloop.kernels.jit import apart
from rankloop.light_loading import LightCache, lighten
from rankloop.rankers import RTop1F

_STORY = """
import sys
import numpy as np
from rankloop.rankers import RTop1F
ranker, rng = RTop1F(n_items=5), np.random.default_rng(1)
for _ in range(20):
    ranker.learn(ranker.rank(rng=rng), [1.0])
print(ranker.current().tolist(), "numba.np.linalg" in sys.modules)
"""


def test_a_ranker_whose_kernels_are_cached_plays_without_the_compiler() -> None:
    ranker, rng = RTop1F(n_items=5), np.random.default_rng(1)
    for _ in range(20):
        ranker.learn(ranker.rank(rng=rng), [1.0])  # in the cache from here on
    told = subprocess.run([sys.executable, "-c", _STORY], capture_output=True, text=True, check=True)
    assert told.stdout.split("\n")[0] == f"{ranker.current().tolist()} False"


def test_what_is_not_in_the_cache_is_compiled_as_ever() -> None:
    again = apart(within.py_func)  # type: ignore[attr-defined]
    lighten(again)
    assert isinstance(again._cache, LightCache)
    assert not again(np.array([0.5, np.nan]), 0.0, 1.0)
    assert again(np.array([1, 2], np.int16), 1, 2)  # of types that nobody else asks for
    assert sum(again.stats.cache_misses.values()) <= 2  # in an older cache it may be there


def test_functions_of_other_kinds_stay_as_they_are() -> None:
    def plain() -> None:
        return None

    lighten(plain)
    assert not hasattr(plain, "_cache")
