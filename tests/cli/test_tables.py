"""Lists of what there is: complete even where something of somebody else's is broken or an extra is missing."""

from __future__ import annotations

import pytest

from rankloop import experiments
from rankloop.cli import tables
from rankloop.extras import MissingExtra
from rankloop.rankers import registry


@pytest.mark.parametrize("kind", ["rankers", "environments", "measures", "experiments"])
def test_everything_has_a_description(kind: str) -> None:
    found = tables.describe(kind)
    assert found
    assert all(found.values())


def test_registered_rankers_are_listed_even_when_they_are_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    known = registry.find
    monkeypatch.setattr(registry, "names", lambda: ["Uniform", "mine", "broken"])

    def find(name: str) -> type:
        if name == "broken":
            raise ValueError("cannot be imported")
        return known("FTPL" if name == "mine" else name)

    monkeypatch.setattr(registry, "find", find)
    found = tables.describe("rankers")
    assert found["mine"] == tables._ranker_line("FTPL")
    assert found["broken"] == "cannot be used: cannot be imported"


def test_experiments_are_listed_without_their_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    def get(name: str) -> object:
        raise MissingExtra('an experiment needs polars: pip install "rankloop[data]"')

    monkeypatch.setattr(experiments, "get", get)
    found = tables.describe("experiments")
    assert list(found) == experiments.names()
    assert set(found.values()) == {'an experiment needs polars: pip install "rankloop[data]"'}


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match=r"kind must be one of rankers, .*got 'people'"):
        tables.describe("people")
