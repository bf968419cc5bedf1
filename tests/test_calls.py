"""What people call wrongly in Python: a sentence that names the argument and the value."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from rankloop import simulation
from rankloop.base import Ranker, with_sentences
from rankloop.environments import FixedItems
from rankloop.rankers import FTPL, FTRLPBM, FeedExp3, RTop1F, Uniform


def test_an_environment_says_so_too() -> None:
    with pytest.raises(ValueError, match=r"rng must be a generator, .*, got 3"):
        FixedItems([[1, 0]]).arrive(rng=3)  # type: ignore[arg-type]


def test_feedback_may_be_a_list() -> None:
    ranker = RTop1F(n_items=3)
    ranker.learn(ranker.rank(rng=np.random.default_rng(1)), [1.0])
    assert ranker.state.t[0] == 1


@pytest.mark.parametrize(
    ("ranker", "environment", "sentence"),
    [
        (FixedItems([[1, 0]]), FTPL(n_items=2), "; the ranker comes first, got FixedItems and FTPL"),
        (FTPL(n_items=2), FTPL(n_items=2), ", got FTPL and FTPL"),
        (FTPL, FixedItems([[1, 0]]), ", got ABCMeta and FixedItems"),
        ("FTPL", None, ", got str and NoneType"),
    ],
)
def test_what_cannot_play(ranker: Any, environment: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=f"play needs a ranker and an environment.*{sentence}"):
        simulation.play(ranker, environment, rounds=1, seed=1)
    with pytest.raises(ValueError, match="play needs a ranker and an environment"):
        simulation.play_many([(ranker, environment)], rounds=1, seeds=[1])


def test_signatures_and_docstrings_stay() -> None:
    assert list(inspect.signature(FTRLPBM.rank).parameters) == ["self", "context", "rng"]
    assert list(inspect.signature(FeedExp3.learn).parameters) == ["self", "ranking", "feedback"]
    assert Ranker.rank.__doc__ is not None


def test_what_a_class_does_not_define_is_left_alone() -> None:
    class Plain:
        pass

    with_sentences(Plain)
    assert not {"rank", "learn"} & set(vars(Plain))
    assert "rank" not in vars(Uniform)
