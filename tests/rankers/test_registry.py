"""Rankers by name, and back from their files."""

from __future__ import annotations

import importlib
import json
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankloop
from rankloop import base, rankers
from rankloop.rankers import Uniform, registry

MODULE = """
from rankloop.rankers import Uniform


class Mine(Uniform):
    '''A ranker of somebody else's.'''


class Shelf:
    '''A place for another one.'''

    class Inner(Uniform):
        '''Found below another name.'''


NUMBER = 3
"""


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A package of its own with a ranker, installed: on the path, with the metadata that installers write."""
    package = tmp_path / "elsewhere_rankers"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "own.py").write_text(MODULE)
    (package / "broken.py").write_text("1 / 0\n")
    info = tmp_path / "elsewhere_rankers-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere-rankers\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        textwrap.dedent(
            """
            [rankloop.rankers]
            mine = elsewhere_rankers.own:Mine
            number = elsewhere_rankers.own:NUMBER
            gone = elsewhere_rankers.nowhere:Mine
            FTRLPBM = elsewhere_rankers.own:Mine
            """
        )
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield "elsewhere_rankers.own"
    for name in [name for name in sys.modules if name.startswith("elsewhere_rankers")]:
        del sys.modules[name]


def test_every_packaged_ranker_is_found() -> None:
    for name in rankers.__all__:
        assert registry.find(name) is getattr(rankers, name)
    assert registry.names()[: len(rankers.__all__)] == rankers.__all__


def test_a_class_by_its_path(elsewhere: str) -> None:
    kind = registry.find(f"{elsewhere}:Mine")
    assert issubclass(kind, base.Ranker)
    assert (kind.__module__, kind.__name__) == (elsewhere, "Mine")
    assert registry.find(f"{elsewhere}:Shelf.Inner").__name__ == "Inner"
    assert registry.find("rankloop.rankers.ftrl_pbm:FTRLPBM") is rankers.FTRLPBM


def test_a_registered_name(elsewhere: str) -> None:
    assert "mine" in registry.names()
    assert registry.find("mine") is registry.find(f"{elsewhere}:Mine")


def test_names_without_the_other_package_do_not_have_it() -> None:
    assert "mine" not in registry.names()
    with pytest.raises(ValueError, match="got 'mine'"):
        registry.find("mine")


def test_the_package_wins_over_a_registered_name(elsewhere: str) -> None:
    assert registry.find("FTRLPBM") is rankers.FTRLPBM
    assert registry.names().count("FTRLPBM") == 1


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "FTRLBPM",
            r"ranker must be one of .*FTPL, .*, Uniform, .*mine.*, or 'package\.module:Class', got 'FTRLBPM'",
        ),
        ("", "got ''"),
        (3, "ranker must be a name or 'package.module:Class', got 3"),
        ("number", r"ranker 'number' must be a subclass of rankloop\.base\.Ranker, got 3"),
        ("gone", r"ranker 'gone' \(registered as 'elsewhere_rankers\.nowhere:Mine'\) cannot be imported"),
        ("elsewhere_rankers.own:NUMBER", r"'elsewhere_rankers\.own:NUMBER' must be a subclass"),
        ("elsewhere_rankers.own:Theirs", r"'elsewhere_rankers\.own' has no 'Theirs'"),
        ("elsewhere_rankers.broken:Mine", "cannot be imported: ZeroDivisionError: division by zero"),
        ("nowhere_at_all:Mine", "cannot be imported: ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("elsewhere_rankers.own:", "must be given as 'package.module:Class', got 'elsewhere_rankers.own:'"),
        (":Mine", "must be given as 'package.module:Class', got ':Mine'"),
        ("a.py:Mine(3)", "must be given as 'package.module:Class'"),
        ("builtins:dict", "must be a subclass"),
        ("rankloop.base:Ranker", "is abstract: it does not define .*rank"),
        ("rankloop.rankers.ftrl_pbm:whole", "must be a subclass"),
    ],
)
def test_what_is_no_ranker_is_refused_in_a_sentence(elsewhere: str, name: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        registry.find(name)


class Theirs(Uniform):
    """A ranker of somebody else's, with an argument that JSON cannot hold."""

    def __init__(self, *, n_items: int, colour: Any = None) -> None:
        super().__init__(n_items=n_items)


def test_what_was_not_given_is_not_written(tmp_path: Path) -> None:
    Uniform(n_items=4).save(tmp_path / "file")
    assert repr(rankloop.load(str(tmp_path / "file"))) == "Uniform(n_items=4)"


def test_somebody_elses_ranker_comes_back(tmp_path: Path) -> None:
    Theirs(n_items=3, colour="red").save(tmp_path / "file")
    back = rankloop.load(tmp_path / "file")
    assert isinstance(back, Theirs)
    assert back.get_params() == {"n_items": 3, "colour": "red"}


def write(path: Path, **origin: Any) -> None:
    told = {"class": "rankloop.rankers:Uniform", "parameters": {"n_items": 3}, "left_out": {}} | origin
    base.write_state(path, Uniform(n_items=3).state_arrays() | {base.ORIGIN: np.array(json.dumps(told))})


@pytest.mark.parametrize(
    ("origin", "sentence"),
    [
        (
            {"class": "subprocess:Popen", "parameters": {"args": "true"}},
            r"must be a subclass of rankloop\.base\.Ranker",
        ),
        ({"class": "builtins:eval"}, "must be a subclass"),
        ({"class": "rankloop.environments:FixedItems"}, "must be a subclass"),
        ({"class": "nowhere_at_all:Mine"}, "cannot be imported"),
        ({"class": "no class"}, "ranker must be one of"),
        ({"parameters": {"speed": 3}}, "cannot be built: .*speed"),
        ({"parameters": {"n_items": 0}}, "n_items must be a whole number of at least 1, got 0"),
        ({"left_out": {"colour": "Colour"}}, r"a file cannot hold are missing: colour \(Colour\)"),
    ],
)
def test_what_is_no_ranker_is_refused(origin: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    write(tmp_path / "file", **origin)
    with pytest.raises(ValueError, match=f"file: .*{sentence}"):
        rankloop.load(tmp_path / "file")


def test_a_file_with_state_alone_says_what_to_do(tmp_path: Path) -> None:
    base.write_state(tmp_path / "old", Uniform(n_items=3).state_arrays())
    with pytest.raises(ValueError, match="old: does not say which ranker it is; build one"):
        rankloop.load(tmp_path / "old")


def test_a_missing_file_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        rankloop.load(tmp_path / "nothing")
