"""rankloop.load: a ranker back from its file in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankloop
from rankloop import base
from rankloop.rankers import Uniform
from tests.examples import every_ranker

RANKERS = dict(every_ranker())


class Theirs(Uniform):
    """A ranker of somebody else's, with an argument that JSON cannot hold."""

    def __init__(self, *, n_items: int, colour: Any = None) -> None:
        super().__init__(n_items=n_items)


@pytest.mark.parametrize("name", RANKERS)
def test_every_ranker_comes_back(name: str, tmp_path: Path) -> None:
    ranker = RANKERS[name]()
    rng = np.random.default_rng(1)
    for _ in range(5):
        ranking = ranker.rank(ranker.example_context(rng), rng=rng)
        ranker.learn(ranking, np.ones(ranker.feedback.length(len(ranking.items))))
    ranker.save(tmp_path / "file")
    back = rankloop.load(tmp_path / "file")
    assert type(back) is type(ranker)
    request = ranker.example_context(rng)
    shown = [one.rank(request, rng=np.random.default_rng(7)).items for one in (ranker, back)]
    np.testing.assert_array_equal(*shown)
    for part, value in ranker.save().items():
        np.testing.assert_array_equal(back.save()[part], value)


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
