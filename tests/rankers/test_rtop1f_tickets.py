"""RTop-1F with rankings open at once, feedback late, tickets from elsewhere and tickets that lie."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rankloop import rankers
from rankloop.base import Ranking

State = dict[str, Any]


def assert_same(one: State, other: State) -> None:
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def find(ranker: rankers.RTop1F, wanted: Callable[[Ranking], bool]) -> Ranking:
    """A ranking that the ranker may show now, found by trying seeds; `rank` changes nothing."""
    shown = (ranker.rank(rng=np.random.default_rng(seed)) for seed in range(5_000))
    return next(filter(wanted, shown))


def exploring(ranker: rankers.RTop1F, item: int) -> Ranking:
    return find(ranker, lambda shown: shown.explored and shown.items[0] == item)


def not_exploring(ranker: rankers.RTop1F) -> Ranking:
    return find(ranker, lambda shown: not shown.explored)


def test_a_block_ends_only_when_every_slot_was_learnt() -> None:
    ranker = rankers.RTop1F(n_items=3, horizon=60, blocks=6, measure="sum_loss")
    explored = [exploring(ranker, item) for item in range(3)]
    others = [not_exploring(ranker)] * 30
    for shown in (explored[0], explored[1], *others):  # far beyond the ten rounds of the block
        ranker.learn(shown, [1.0])
    assert (ranker.state.block[0], ranker.state.n_open[0]) == (0, 1)
    assert ranker.state.s_hat.tolist() == [0, 0, 0]
    for seed in range(20):  # overdue: every round explores what is missing
        shown = ranker.rank(rng=np.random.default_rng(seed))
        assert shown.explored
        assert shown.items[0] == 2
    ranker.learn(explored[2], [1.0])
    assert ranker.state.s_hat.tolist() == [1, 1, 1]
    assert ranker.state.n_open[0] == 3
    # 33 rounds have passed, so the block that is now open is the one of rounds 31 to 40.
    assert (ranker.state.t[0], ranker.state.block[0]) == (33, 3)


def test_the_block_after_a_late_one_ends_on_time() -> None:
    ranker = rankers.RTop1F(n_items=2, horizon=60, blocks=6, measure="sum_loss")
    late = [exploring(ranker, item) for item in range(2)]
    waiting = not_exploring(ranker)
    for shown in (*[waiting] * 13, *late):
        ranker.learn(shown, [1.0])
    assert (ranker.state.t[0], ranker.state.block[0]) == (15, 1)
    rng = np.random.default_rng(3)
    for t in range(15, 60):
        assert ranker.state.block[0] == t // 10
        ranker.learn(ranker.rank(rng=rng), [1.0])
    assert ranker.state.s_hat.tolist() == [6, 6]


def test_a_slot_explored_twice_counts_once() -> None:
    ranker = rankers.RTop1F(n_items=3, horizon=60, blocks=6, measure="sum_loss")
    first, second = exploring(ranker, 1), exploring(ranker, 1)
    ranker.learn(first, [1.0])
    assert (ranker.state.n_open[0], ranker.state.r_hat[1]) == (2, 1.0)
    ranker.learn(second, [0.0])
    assert (ranker.state.n_open[0], ranker.state.r_hat[1]) == (2, 1.0)
    assert ranker.state.t[0] == 2
    assert sorted(ranker.state.slots.tolist()) == [0, 1, 2]


def test_a_ticket_that_comes_after_its_block_serves_the_present_one() -> None:
    ranker = rankers.RTop1F(n_items=2, horizon=40, blocks=10, measure="sum_loss")
    stale = exploring(ranker, 0)
    rng = np.random.default_rng(4)
    while ranker.state.block[0] == 0:
        ranker.learn(ranker.rank(rng=rng), [0.0])
    ranker.learn(stale, [1.0])
    assert ranker.state.n_open[0] == 1
    assert ranker.state.r_hat[0] == 1.0
    assert ranker.state.s_hat.tolist() == [0, 0]


@pytest.mark.parametrize("n_open", [2, 10, 100])
def test_with_many_rankings_open_every_block_still_sees_every_item(n_open: int) -> None:
    ranker = rankers.RTop1F(n_items=4, horizon=4000, blocks=100, measure="sum_loss")
    rng = np.random.default_rng(5)
    closed = 0
    for _ in range(4000 // n_open):
        shown = [ranker.rank(rng=rng) for _ in range(n_open)]
        for i in rng.permutation(n_open):
            before = ranker.state.s_hat.copy()
            ranker.learn(shown[i], [1.0])
            gained = ranker.state.s_hat - before
            assert gained.tolist() in ([0, 0, 0, 0], [1, 1, 1, 1])
            closed += int(gained[0])
    assert 0.9 * 4000 / max(40, n_open) <= closed <= 100


ELSEWHERE = """
import sys
import numpy as np
from rankloop import rankers
from rankloop.base import Ranking

folder = sys.argv[1]
ranker = rankers.RTop1F(n_items=5, horizon=200, measure="dcg", max_grade=3, k=2)
with np.load(f"{folder}/state.npz") as saved:
    ranker.load(saved)
for i in (2, 0, 1):
    with np.load(f"{folder}/ticket{i}.npz") as ticket:
        ranker.learn(Ranking.load(ticket), [i, 3 - i])
np.savez(f"{folder}/after.npz", **ranker.save())
"""


def test_tickets_are_learnt_in_another_process(tmp_path: Path) -> None:
    ranker = rankers.RTop1F(n_items=5, horizon=200, measure="dcg", max_grade=3, k=2)
    rng = np.random.default_rng(6)
    for _ in range(23):
        ranker.learn(ranker.rank(rng=rng), [1.0, 2.0])
    np.savez(tmp_path / "state.npz", **ranker.save())
    tickets = [not_exploring(ranker), find(ranker, lambda shown: shown.explored), ranker.rank(rng=rng)]
    for i, ticket in enumerate(tickets):
        np.savez(tmp_path / f"ticket{i}.npz", **ticket.save())
    subprocess.run([sys.executable, "-c", ELSEWHERE, str(tmp_path)], check=True)
    for i in (2, 0, 1):
        ranker.learn(tickets[i], [i, 3 - i])
    with np.load(tmp_path / "after.npz") as after:
        assert_same(ranker.save(), dict(after))


def _items(*items: float, dtype: Any = np.int64) -> Callable[[Ranking], Ranking]:
    return lambda ticket: dataclasses.replace(ticket, items=np.array(items, dtype=dtype))


def _memo(change: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> Callable[[Ranking], Ranking]:
    return lambda ticket: dataclasses.replace(ticket, memo=change(ticket.memo))


@pytest.mark.parametrize(
    "tamper",
    [
        pytest.param(_items(0, 1, 2, 4), id="item out of range"),
        pytest.param(_items(0, 1, 2, -1), id="negative item"),
        pytest.param(_items(0, 1, 2, 2), id="repeated item"),
        pytest.param(_items(0, 1, 2), id="too short"),
        pytest.param(_items(0, 1, 2, 3, 4), id="too long"),
        pytest.param(_items(), id="empty"),
        pytest.param(_items(0, 1, 2, 3, dtype=np.int32), id="int32"),
        pytest.param(_items(0, 1, 2, 3, dtype=np.float64), id="floats"),
        pytest.param(lambda t: dataclasses.replace(t, items=t.items.reshape(2, 2)), id="two dimensions"),
        pytest.param(_memo(lambda memo: ()), id="no memo"),
        pytest.param(_memo(lambda memo: (*memo, np.zeros(1))), id="one part too many"),
        pytest.param(_memo(lambda memo: tuple(part[:0] for part in memo)), id="empty memo"),
        pytest.param(_memo(lambda memo: tuple(part.astype(np.float32) for part in memo)), id="float32 memo"),
        pytest.param(_memo(lambda memo: tuple(np.append(part, part) for part in memo)), id="long memo"),
    ],
)
def test_a_ticket_that_was_tampered_with_is_refused_and_changes_nothing(
    tamper: Callable[[Ranking], Ranking],
) -> None:
    ranker = rankers.RTop1F(n_items=4, horizon=100)
    ticket = exploring(ranker, 2)
    before = ranker.save()
    with pytest.raises(ValueError, match=r"ranking|items"):
        ranker.learn(tamper(ticket), [1.0])
    assert_same(ranker.save(), before)
    ranker.learn(ticket, [1.0])  # the ticket itself is still good
    assert ranker.state.r_hat[2] == 1.0


@pytest.mark.parametrize(
    "other",
    [
        rankers.FTPL(n_items=4, horizon=100),
        rankers.Uniform(n_items=4),
        rankers.Fixed(order=[3, 1, 0, 2]),
        rankers.RTop1F(n_items=3, horizon=100),
        rankers.RTop1F(n_items=5, horizon=100),
    ],
    ids=["FTPL", "Uniform", "Fixed", "fewer items", "more items"],
)
def test_the_ticket_of_another_ranker_is_refused_and_changes_nothing(other: Any) -> None:
    ranker = rankers.RTop1F(n_items=4, horizon=100)
    before = ranker.save()
    with pytest.raises(ValueError, match="ranking"):
        ranker.learn(other.rank(rng=np.random.default_rng(1)), [1.0])
    assert_same(ranker.save(), before)


def test_an_exploring_ticket_whose_front_is_no_slot_is_refused_and_changes_nothing() -> None:
    # As if issued by a ranker with k=1: on top stands one item of the slot, behind it one of another slot.
    ranker = rankers.RTop1F(n_items=4, horizon=100, k=2, measure="sum_loss")
    ticket = find(ranker, lambda shown: shown.explored)
    lie = dataclasses.replace(ticket, items=np.array([1, 2, 0, 3]))
    before = ranker.save()
    with pytest.raises(ValueError, match=r"ranking|items"):
        ranker.learn(lie, [1.0, 1.0])
    assert_same(ranker.save(), before)


@pytest.mark.parametrize(
    "feedback",
    [[], [1.0, 0.0], [np.nan], [np.inf], [-1.0], [[1.0]], 1.0, ["x"], [None], None],
    ids=repr,
)
def test_feedback_that_makes_no_sense_is_refused_and_changes_nothing(feedback: Any) -> None:
    ranker = rankers.RTop1F(n_items=4, horizon=100)
    before = ranker.save()
    with pytest.raises(ValueError, match="feedback"):
        ranker.learn(exploring(ranker, 2), feedback)
    assert_same(ranker.save(), before)


def _learnt(**arguments: Any) -> rankers.RTop1F:
    ranker = rankers.RTop1F(**arguments)
    rng = np.random.default_rng(7)
    for _ in range(200):
        ranker.learn(ranker.rank(rng=rng), np.ones(ranker.feedback.length(ranker.n_positions)))
    return ranker


@pytest.mark.parametrize(
    "saved",
    [
        pytest.param(_learnt(n_items=5, horizon=100).state_arrays(), id="more items"),
        pytest.param(_learnt(n_items=4, horizon=100, k=2).state_arrays(), id="fewer slots"),
        pytest.param(rankers.FTPL(n_items=4).state_arrays(), id="another ranker"),
        pytest.param({}, id="nothing"),
        pytest.param(
            {n: v.astype(np.float32) for n, v in _learnt(n_items=4, horizon=100).state_arrays().items()},
            id="float32",
        ),
    ],
)
def test_a_state_that_does_not_fit_is_refused_and_changes_nothing(saved: State) -> None:
    ranker = _learnt(n_items=4, horizon=400)
    before = ranker.save()
    with pytest.raises(ValueError, match="saved state"):
        ranker.load(saved)
    assert_same(ranker.save(), before)


def test_a_state_without_a_horizon_is_refused_by_a_ranker_with_one() -> None:
    # Same shapes, but its epoch points beyond the only horizon there is: kernels do not check bounds.
    anytime = _learnt(n_items=2)
    assert anytime.state.epoch[0] > 0
    ranker = rankers.RTop1F(n_items=2, horizon=100)
    before = ranker.save()
    with pytest.raises(ValueError, match="epoch"):
        ranker.load(anytime.state_arrays())
    assert_same(ranker.save(), before)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epoch", [1]),
        ("epoch", [-1]),
        ("n_open", [5]),
        ("n_open", [-1]),
        ("slots", [0, 1, 2, 9]),
        ("slots", [0, 1, 2, 2]),
        ("slots", [0, 1, 2, -1]),
        ("s_hat", [0.0, np.nan, 0.0, 0.0]),
        ("r_hat", [0.0, np.inf, 0.0, 0.0]),
    ],
)
def test_a_damaged_state_is_refused_and_changes_nothing(name: str, value: list[float]) -> None:
    # An index out of range would be read, and written, outside of the arrays; with NaN there is no order to show.
    ranker = _learnt(n_items=4, horizon=400)
    before = ranker.save()
    damaged = ranker.state_arrays()
    damaged[name] = np.array(value, dtype=damaged[name].dtype)
    with pytest.raises(ValueError, match=name):
        ranker.load(damaged)
    assert_same(ranker.save(), before)


def test_load_takes_over_and_does_not_share() -> None:
    one, other = _learnt(n_items=4, horizon=400), rankers.RTop1F(n_items=4, horizon=400)
    saved = one.save()
    other.load(saved)
    assert_same(other.save(), saved)
    other.learn(other.rank(rng=np.random.default_rng(1)), [1.0])
    assert_same(one.save(), saved)
    with pytest.raises(AssertionError):
        assert_same(other.save(), saved)
