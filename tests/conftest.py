"""What holds for every test: figures go to files, Hypothesis tells the same story every time."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

os.environ.setdefault("MPLBACKEND", "Agg")
# Each worker is one thread: threads of matrix libraries that wait for each other cost more than they bring.
for _library in ("OMP", "OPENBLAS"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")
# numba colours the message of every mistake that it tries out while it compiles, though nobody sees most of them.
os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")

# The first example of a test may compile kernels, so no deadline; the same examples on every machine, so
# that a red test is red for everyone. `HYPOTHESIS_PROFILE=wander` looks for new ones.
settings.register_profile("steady", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("wander", deadline=None, max_examples=1_000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


LONGEST = (
    "test_docs.py",
    "test_quick_versions.py",
    "test_ftrl_pbm.py",
    "test_classify.py",
    "test_every_ranker.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest modules first, so that no worker is left alone with one at the end."""
    place = {name: i for i, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.name, len(LONGEST)))
