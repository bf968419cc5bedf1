"""Paths that were published before modules moved: they still open, and say where to go."""

from __future__ import annotations

import importlib
import sys

import pytest

import rankloop


@pytest.mark.parametrize("old", rankloop.MOVED)
def test_an_old_path_warns_and_gives_the_same_things(old: str) -> None:
    sys.modules.pop(old, None)
    new = rankloop.MOVED[old]
    with pytest.warns(DeprecationWarning, match=f"{old} has moved to {new}"):
        opened = importlib.import_module(old)
    # The module itself hangs in its package from then on.
    names = {name for name in vars(importlib.import_module(new)) if name[:2] != "__"} - {
        old.rpartition(".")[2]
    }
    assert names
    assert all(getattr(opened, name) is getattr(importlib.import_module(new), name) for name in names)


def test_a_path_that_never_was_is_still_missing() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("rankloop.no_such_module")
