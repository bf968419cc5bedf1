"""What holds for every test: figures go to files, Hypothesis tells the same story every time."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

os.environ.setdefault("MPLBACKEND", "Agg")

# The first example of a test may compile kernels, so no deadline; the same examples on every machine, so
# that a red test is red for everyone. `HYPOTHESIS_PROFILE=wander` looks for new ones.
settings.register_profile("steady", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("wander", deadline=None, max_examples=1_000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest modules first, so that no worker is left alone with one at the end."""
    items.sort(key=lambda item: ("portability" not in item.path.parts, item.path.name != "test_docs.py"))
