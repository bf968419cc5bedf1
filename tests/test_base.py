"""The contracts themselves: tickets and state."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rankloop.base import Array, Ranker, Ranking, draw_key
from rankloop.feedback import TopK


def through_a_file(saved: dict[str, Any]) -> dict[str, Any]:
    file = io.BytesIO()
    np.savez(file, **saved)
    file.seek(0)
    with np.load(file, allow_pickle=False) as loaded:
        return dict(loaded)


@given(
    st.permutations(range(5)),
    st.none() | st.lists(st.floats(1e-9, 1), min_size=5, max_size=5),
    st.integers(0, 12),
    st.booleans(),
)
def test_a_ticket_comes_back_from_a_file_as_it_was(
    items: list[int], propensities: list[float] | None, n_parts: int, explored: bool
) -> None:
    memo = tuple(np.full(i, i, dtype=[np.int64, np.float64, np.bool_][i % 3]) for i in range(n_parts))
    chances = None if propensities is None else np.array(propensities)
    ticket = Ranking(np.array(items), chances, memo, explored)
    back = Ranking.load(through_a_file(ticket.save()))
    np.testing.assert_array_equal(back.items, ticket.items)
    assert back.items.dtype == np.int64
    assert back.explored is explored
    if chances is None:
        assert back.propensities is None
    else:
        np.testing.assert_array_equal(back.propensities, chances)
    assert len(back.memo) == n_parts
    # Of twelve parts, memo.10 must not sort before memo.2.
    for mine, theirs in zip(memo, back.memo, strict=True):
        np.testing.assert_array_equal(mine, theirs)
        assert mine.dtype == theirs.dtype


def test_a_ticket_loads_straight_from_an_open_file(tmp_path: Path) -> None:
    ticket = Ranking(np.array([1, 0]), np.array([0.5, 0.5]), (np.array([3]),), True)
    np.savez(tmp_path / "ticket.npz", **ticket.save())
    with np.load(tmp_path / "ticket.npz") as saved:
        back = Ranking.load(saved)
    assert back.items.tolist() == [1, 0]
    assert back.memo[0].tolist() == [3]
    assert back.propensities is not None
    assert back.propensities.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("missing", ["items", "explored", "memo.0"])
def test_half_a_ticket_is_refused_by_name(missing: str) -> None:
    saved = Ranking(np.array([1, 0]), None, (np.array([3]), np.array([4]))).save()
    del saved[missing]
    with pytest.raises(ValueError, match=missing):
        Ranking.load(saved)


@pytest.mark.parametrize(
    "items", [np.array([0.5, 1.7]), np.array([[0, 1]]), np.array(["a", "b"]), np.array(3)]
)
def test_items_that_are_none_are_refused(items: Any) -> None:
    saved = Ranking(np.array([1, 0])).save() | {"items": items}
    with pytest.raises(ValueError, match="items"):
        Ranking.load(saved)


def test_a_ranking_is_frozen() -> None:
    with pytest.raises(AttributeError):
        Ranking(np.array([0])).explored = True  # type: ignore[misc]


def test_rankings_can_be_compared_and_kept_in_a_set() -> None:
    # A list of open rankings is searched with `in`, and removed from; that must not compare arrays.
    one, other = Ranking(np.array([0, 1])), Ranking(np.array([0, 1]))
    waiting = [one, other]
    waiting.remove(other)
    assert waiting == [one]
    assert len({one, other}) == 2


class Counts(NamedTuple):
    n: NDArray[np.int64]
    mean: NDArray[np.float64]


class Remembers(Ranker):
    """The least a ranker can be."""

    def __init__(self, m: int = 3) -> None:
        self.n_positions = m
        self.feedback = TopK(1)
        self.state = Counts(np.zeros(1, np.int64), np.zeros(m))

    def rank(self, context: Any = None, *, rng: np.random.Generator) -> Ranking:
        return Ranking(rng.permutation(self.n_positions))

    def learn(self, ranking: Ranking, feedback: Array) -> None:
        self.state.n[0] += 1

    def current(self, context: Any = None) -> NDArray[np.int64]:
        return np.argsort(-self.state.mean, kind="stable")


def test_what_is_saved_is_a_copy() -> None:
    ranker = Remembers()
    saved = ranker.save()
    ranker.state.n[0] = 7
    assert saved["n"][0] == 0
    saved["mean"][:] = 9
    assert ranker.state.mean.tolist() == [0, 0, 0]


def test_load_writes_into_the_arrays_that_are_there() -> None:
    ranker = Remembers()
    n, mean = ranker.state
    ranker.load({"n": np.array([4]), "mean": np.array([1.0, 2.0, 3.0])})
    assert ranker.state.n is n
    assert ranker.state.mean is mean
    assert (n.tolist(), mean.tolist()) == ([4], [1, 2, 3])


@pytest.mark.parametrize(
    "saved",
    [
        {},
        {"n": np.zeros(1, np.int64)},
        {"n": np.zeros(1, np.int64), "mean": np.zeros(3), "more": np.zeros(1)},
        {"n": np.zeros(2, np.int64), "mean": np.zeros(3)},
        {"n": np.ones(1, np.int64), "mean": np.zeros(4)},
        {"n": np.ones(1, np.int32), "mean": np.zeros(3)},
        {"n": np.ones(1), "mean": np.zeros(3)},
        {"n": np.ones(1, np.int64), "mean": np.zeros(3, np.float32)},
        {"n": np.ones(1, np.int64), "mean": np.zeros((1, 3))},
        {"n": np.ones(1, np.int64), "mean": np.array(["a", "b", "c"])},
        {"n": np.ones(1, np.int64), "mean": None},
    ],
)
def test_a_state_of_another_shape_is_refused_and_changes_nothing(saved: Any) -> None:
    ranker = Remembers()
    ranker.state.mean[:] = [1, 2, 3]
    with pytest.raises(ValueError, match="saved state"):
        ranker.load(saved)
    assert (ranker.state.n.tolist(), ranker.state.mean.tolist()) == ([0], [1, 2, 3])


def test_a_key_is_one_word_of_the_generator() -> None:
    rng, other = np.random.default_rng(1), np.random.default_rng(1)
    keys = [draw_key(rng) for _ in range(5)]
    assert all(isinstance(key, np.uint64) for key in keys)
    assert [int(key) for key in keys] == other.bit_generator.random_raw(5).tolist()
