import importlib
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from rankloop import base, rankers
from rankloop.rankers import registry

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
