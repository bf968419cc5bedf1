"""Paths that were published before the packages were split: they still open, and say where to go."""

from __future__ import annotations

import importlib
import sys

import pytest


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("rankloop.serving.checking", "rankloop.serving.stores.checks", "check_store"),
        ("rankloop.serving.memory", "rankloop.serving.stores.memory", "MemoryStore"),
        ("rankloop.serving.store", "rankloop.serving.stores.contract", "Store"),
    ],
)
def test_an_old_path_warns_and_gives_the_same_thing(old: str, new: str, name: str) -> None:
    sys.modules.pop(old, None)
    with pytest.warns(DeprecationWarning, match=f"{old} has moved to {new}"):
        found = importlib.import_module(old)
    assert getattr(found, name) is getattr(importlib.import_module(new), name)
