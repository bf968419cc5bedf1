"""repr, get_params and clone, over rankers, environments and somebody else's."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from rankloop import environments, measures, rankers
from rankloop.base import Constructed, import_path, plain
from rankloop.environments import ClickMatrix, FixedItems, Periodic, PositionBased
from rankloop.rankers import FTRLPBM, BestInHindsight, Fixed, RTop1F, Uniform
from tests.examples import same

NAMES = {name: getattr(room, name) for room in (rankers, environments) for name in room.__all__}


def test_only_what_was_given_is_written() -> None:
    assert repr(FTRLPBM(n_items=10, n_positions=5)) == "FTRLPBM(n_items=10, n_positions=5)"
    assert repr(Uniform()) == "Uniform()"
    assert repr(RTop1F(n_items=np.int64(3), measure=measures.dcg)) == "RTop1F(n_items=3, measure='dcg')"


def test_get_params_has_the_defaults_too() -> None:
    assert FTRLPBM(n_items=10).get_params() == {
        "n_items": 10,
        "n_positions": None,
        "estimator": "loss",
        "regulariser": "tsallis",
        "forget": None,
        "solver": "newton",
        "sampler": "lazy",
        "steps": 1000,
    }


def test_arrays_are_written_as_lists_where_they_are_short() -> None:
    assert repr(Fixed(order=np.array([1, 0]))) == "Fixed(order=[1, 0])"
    assert repr(FixedItems(np.zeros((20, 10)))) == "FixedItems(relevance=<20x10 float64>)"
    world = PositionBased(attraction=[0.5, 0.1], examination=(1.0, np.float64(0.5)))
    assert repr(world) == "PositionBased(attraction=[0.5, 0.1], examination=(1.0, 0.5))"
    assert same(eval(repr(world), NAMES), world)
    both = Periodic([world, world.reversed()], phase=5)
    assert same(eval(repr(both), NAMES), both)


def test_the_outermost_constructor_counts() -> None:
    best = BestInHindsight(relevance=[[0, 1]], measure="dcg")
    assert best.get_params() == {"relevance": [[0, 1]], "measure": "dcg"}


def test_what_the_caller_changes_later_is_not_seen() -> None:
    chances = np.array([[0.1, 0.9]])
    order = [1, 0]
    world, fixed = ClickMatrix(chances), Fixed(order=order)
    chances[...], order[:] = 0.5, [0, 1]
    assert world.clone().clicks.tolist() == [[[0.1, 0.9]]]
    assert fixed.clone().current().tolist() == [1, 0]
    fixed.clone().get_params()["order"][:] = [0, 1]
    assert fixed.clone().current().tolist() == [1, 0]


class Theirs(Uniform):
    """Somebody else's, with a signature of its own."""

    def __init__(self, size: int, /, *extra: int, colour: str = "red", **more: Any) -> None:
        super().__init__(n_items=size)
        self.more = (extra, colour, more)


def test_somebody_elses_ranker_has_it_too() -> None:
    theirs = Theirs(3, 1, 2, speed=4)
    assert theirs.clone().more == ((1, 2), "red", {"speed": 4})
    assert theirs.clone().n_items == 3
    assert theirs.get_params() == {"size": 3, "extra": (1, 2), "colour": "red", "speed": 4}


def test_a_wrong_call_gives_pythons_own_error() -> None:
    with pytest.raises(TypeError, match=r"__init__\(\) missing 1 required keyword-only argument: 'n_items'"):
        FTRLPBM()  # type: ignore[call-arg]


def test_copies_and_pickles_keep_it() -> None:
    ranker = RTop1F(n_items=4, horizon=9)
    for other in (copy.deepcopy(ranker), pickle.loads(pickle.dumps(ranker))):
        assert repr(other) == repr(ranker)
        assert same(other, ranker)


def test_without_arguments_there_is_nothing_to_remember() -> None:
    class Bare(Constructed):
        pass

    assert repr(Bare()) == "Bare()"
    assert Bare().get_params() == {}
    assert isinstance(Bare().clone(), Bare)


def test_plain_values() -> None:
    given = {"a": (1, np.float64(0.5)), "b": np.array([[1, 2]]), "c": None, "d": measures.get("ndcg@10")}
    assert plain(given) == {"a": [1, 0.5], "b": [[1, 2]], "c": None, "d": "ndcg@10"}
    for wrong in (object(), {1: 2}, np.array([None]), lambda: 3):
        with pytest.raises(TypeError, match="cannot be written as JSON"):
            plain(wrong)


def test_import_paths_are_the_short_ones() -> None:
    assert import_path(FTRLPBM) == "rankloop.rankers:FTRLPBM"
    assert import_path(Theirs) == f"{__name__}:Theirs"
    assert import_path(Constructed) == "rankloop.base:Constructed"
