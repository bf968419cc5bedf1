"""Worlds of clicks: how often each position is clicked, which world is there when, and what lists are worth."""

from __future__ import annotations

import functools
import json
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankloop import checks, environments, rankers, simulation
from rankloop.base import Floats, Ints, Ranking
from rankloop.environments import ClickMatrix, Corrupted, Drifting, LowerBound, Periodic, PositionBased
from rankloop.environments.click_worlds import ClickWorlds
from rankloop.feedback import Clicks
from tests.examples import every_environment
from tests.kernels.splitmix import uniforms

CLICK_WORLDS = {name: make for name, make in every_environment() if isinstance(make(), ClickWorlds)}
PEOPLE = PositionBased(attraction=[0.9, 0.1, 0.5, 0.6, 0.3], examination=[1.0, 0.5, 0.2])


class Heard(rankers.Fixed):
    """A fixed list whose clicks come back."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.feedback = Clicks()


def _lists(world: ClickWorlds) -> Ints:
    return np.array(list(permutations(range(world.n_items), world.n_positions)))


def _values(world: ClickWorlds) -> Floats:
    """What each list is worth in each world, by definition."""
    places = np.arange(world.n_positions)
    return np.array([world.clicks[:, places, items].sum(axis=1) for items in _lists(world)]).T


def _worlds(world: ClickWorlds, rounds: int, seed: int) -> list[int]:
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(rounds):
        assert world.arrive(rng=rng) is None
        found.append(world.world)
        world.respond(world.best(), rng=rng)
    return found


@pytest.mark.parametrize("name", CLICK_WORLDS)
def test_both_loops_tell_the_same_story(name: str) -> None:
    make = CLICK_WORLDS[name]
    m, n = make().n_positions, make().n_items
    checks.check_same_story(functools.partial(rankers.Uniform, n_items=n, n_positions=m), make)
    checks.check_same_story(functools.partial(Heard, order=np.arange(m)[::-1], n_items=n), make)


# Clicks


@pytest.mark.parametrize("name", CLICK_WORLDS)
def test_a_list_is_worth_its_expected_clicks(name: str) -> None:
    world = CLICK_WORLDS[name]()
    rng = np.random.default_rng(1)
    for _ in range(12):
        world.arrive(rng=rng)
        items = rng.permutation(world.n_items)[: world.n_positions]
        chances = world.clicks[world.world, np.arange(world.n_positions), items]
        outcomes = np.array(list(product((0, 1), repeat=world.n_positions)))
        weights = np.where(outcomes, chances, 1 - chances).prod(axis=1)
        expected = weights @ outcomes.sum(axis=1)
        assert world.value(Ranking(items)) == pytest.approx(expected, abs=1e-12)


def test_each_position_is_clicked_by_a_number_of_its_own() -> None:
    # Exactly: position j is clicked where the j-th number of the round's key lies below its probability.
    rng, keys = np.random.default_rng(5), np.random.default_rng(5)
    items = np.array([3, 0, 4])
    chances = PEOPLE.clicks[0, [0, 1, 2], items]
    for _ in range(50):
        clicks = PEOPLE.respond(Ranking(items), rng=rng)
        drawn = uniforms(int(keys.bit_generator.random_raw()), 3)
        assert clicks.tolist() == [float(u < p) for u, p in zip(drawn, chances, strict=True)]


@pytest.mark.judges("2022-160")
def test_clicks_come_as_often_as_they_should_and_independently() -> None:
    rng = np.random.default_rng(2)
    ranking = Ranking(np.array([0, 3, 2]))
    clicks = np.array([PEOPLE.respond(ranking, rng=rng) for _ in range(20_000)])
    chances = np.array([0.9, 0.3, 0.1])
    assert clicks.mean(axis=0) == pytest.approx(chances, abs=4 * 0.5 / np.sqrt(20_000))
    for pattern in product((0, 1), repeat=3):
        expected = np.where(pattern, chances, 1 - chances).prod()
        assert (clicks == pattern).all(axis=1).mean() == pytest.approx(
            expected, abs=4 * 0.5 / np.sqrt(20_000)
        )


def test_certain_and_impossible_clicks() -> None:
    world = ClickMatrix([[1.0, 0.0], [1.0, 0.0]])
    rng = np.random.default_rng(1)
    for _ in range(200):
        assert world.respond(Ranking(np.array([0, 1])), rng=rng).tolist() == [1.0, 0.0]


# Which world is there


@pytest.mark.judges("2022-158")
def test_phases_follow_each_other() -> None:
    worlds = [ClickMatrix(matrix) for matrix in np.random.default_rng(1).random((3, 2, 4))]
    assert _worlds(Periodic(worlds, phase=2), 9, 1) == [0, 0, 1, 1, 2, 2, 0, 0, 1]
    assert _worlds(Periodic(worlds[:1], phase=2), 5, 1) == [0] * 5


@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
def test_liars_come_in_their_share(share: float) -> None:
    came = np.array(_worlds(Corrupted(PEOPLE, share=share), 4_000, 3))
    assert came.mean() == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / 4_000))
    if 0 < share < 1:  # no round tells anything about the next
        together = (came[1:] * came[:-1]).mean()
        assert together == pytest.approx(share**2, abs=0.02)


def test_liars_come_in_other_rounds_with_another_seed() -> None:
    world = Corrupted(PEOPLE, share=0.5)
    first = _worlds(world, 100, 1)
    world.restart()
    assert first == _worlds(Corrupted(PEOPLE, share=0.5), 100, 1) != _worlds(world, 100, 2)


def test_the_drift_goes_there_and_back() -> None:
    world = Drifting(PEOPLE, to=PEOPLE.exchanged(), steps=4, phase=3)
    here, there = PEOPLE.clicks[0], PEOPLE.exchanged().clicks[0]
    for world_number, share in enumerate([0, 1 / 4, 2 / 4, 3 / 4, 1, 3 / 4, 2 / 4, 1 / 4]):
        assert world.clicks[world_number] == pytest.approx((1 - share) * here + share * there)
    assert _worlds(world, 27, 1) == [i // 3 % 8 for i in range(27)]


@pytest.mark.judges("2022-158")
def test_worlds_change_into_their_relatives() -> None:
    alpha, beta = PEOPLE.attraction, PEOPLE.examination
    assert PEOPLE.reversed().clicks[0] == pytest.approx(np.outer(beta[::-1], alpha[::-1]))
    assert PEOPLE.exchanged().attraction.tolist() == [0.6, 0.3, 0.5, 0.9, 0.1]
    assert PEOPLE.exchanged().examination.tolist() == beta.tolist()
    matrix = ClickMatrix(PEOPLE.clicks[0])
    for change in ("reversed", "exchanged"):
        assert (getattr(matrix, change)().clicks == getattr(PEOPLE, change)().clicks).all()


# What is best


@pytest.mark.judges("2022-159")
@pytest.mark.parametrize("name", CLICK_WORLDS)
def test_the_best_lists_beat_all_others(name: str) -> None:
    world = CLICK_WORLDS[name]()
    values = _values(world)
    assert world.params.best == pytest.approx(values.max(axis=1))
    chosen = np.take_along_axis(world.clicks, world.best_lists[:, :, None], axis=2).sum(axis=(1, 2))
    assert chosen == pytest.approx(values.max(axis=1))
    shares = np.full(len(values), 1 / len(values))
    if isinstance(world, Corrupted):
        shares = np.array([1 - world.params.share, world.params.share])
    place = np.flatnonzero((_lists(world) == world.best().items).all(axis=1))
    assert (shares @ values)[place] == pytest.approx((shares @ values).max())


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_position_based_is_best_sorted(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    alpha, beta = rng.random(n), rng.random(int(rng.integers(1, n + 1)))
    world = PositionBased(attraction=alpha, examination=beta)
    assert world.params.best[0] == pytest.approx(np.sort(alpha)[::-1][: len(beta)] @ np.sort(beta)[::-1])


@pytest.mark.judges("2022-159")
@pytest.mark.parametrize("name", CLICK_WORLDS)
@pytest.mark.parametrize("before", [0, 13])
def test_regret_against_the_best_fixed_list_and_the_best_of_each_phase(name: str, before: int) -> None:
    world = CLICK_WORLDS[name]()
    player = rankers.Uniform(n_items=world.n_items, n_positions=world.n_positions)
    if before:
        simulation.play(player, world, rounds=before, seed=9)
    twin = CLICK_WORLDS[name]()  # the same rounds once more, watching which world is there
    rng = np.random.default_rng(np.random.SeedSequence(9 if before else 4).spawn(2)[1])
    came = []
    for t in range(before + 90):
        if before and t == before:
            rng = np.random.default_rng(np.random.SeedSequence(4).spawn(2)[1])
        twin.arrive(rng=rng)
        twin.respond(twin.best(), rng=rng)
        came.append(twin.world)
    trace = simulation.play(player, world, rounds=90, seed=4)
    values = _values(world)[came[before:]]
    fixed = np.cumsum(values, axis=0).max(axis=1)
    assert trace.regret == pytest.approx(fixed - trace.total, abs=1e-9)
    ideal = np.cumsum(values.max(axis=1))
    assert world.ideal(trace.rounds) == pytest.approx(ideal, abs=1e-9)
    assert (world.ideal(trace.rounds) - trace.total >= trace.regret - 1e-9).all()
    assert world.ideal([[3, 1], [0, 3]]) == pytest.approx(np.array([[ideal[2], ideal[0]], [0.0, ideal[2]]]))


def test_the_best_list_of_the_present_world_has_no_regret_there() -> None:
    world = Periodic.reversing(PEOPLE, phase=50)
    trace = simulation.play(rankers.Fixed(order=world.best_lists[0], n_items=5), world, rounds=50, seed=1)
    assert trace.regret == pytest.approx(0.0, abs=1e-9)


def test_what_is_ideal_can_be_told_of_rounds_to_come_unless_worlds_are_drawn() -> None:
    world = Periodic.exchanging(PEOPLE, phase=3)
    assert world.ideal(10**12) == pytest.approx(10**12 * world.params.best[0])
    drawn = Corrupted(PEOPLE)
    assert drawn.ideal(0) == 0.0
    with pytest.raises(ValueError, match=r"rounds must be at most the 0 that were played, got 1"):
        drawn.ideal(1)
    for wrong in (-1, 0.5, np.nan, "many"):
        with pytest.raises(ValueError, match="rounds must be"):
            world.ideal(wrong)


# The lower bound


@pytest.mark.judges("2022-189")
def test_the_world_of_theorem_3() -> None:
    world = LowerBound(n_items=8, n_positions=3, horizon=2_400, best=[5, 0, 7])
    assert world.delta == pytest.approx(np.sqrt(6 / 2_400) / 8)
    assert world.least_regret == pytest.approx(3 * np.sqrt(6 * 2_400) / 16)
    expected = np.full((3, 8), 0.5)
    expected[[0, 1, 2], [5, 0, 7]] += world.delta
    assert (world.clicks[0] == expected).all()
    assert world.best().items.tolist() == [5, 0, 7]
    assert np.linalg.matrix_rank(world.clicks[0]) > 1  # not of product form (C11)


def test_whoever_learns_nothing_regrets_more_than_the_bound() -> None:
    world = LowerBound(n_items=8, n_positions=3, horizon=2_000)
    trace = simulation.play(rankers.Uniform(n_items=8, n_positions=3), world, rounds=2_000, seed=1)
    # A random list hits each position's better item one time in eight.
    assert trace.total_regret == pytest.approx(2_000 * 3 * world.delta * 7 / 8, rel=0.02)
    assert trace.total_regret > world.least_regret


# Parameters from a file, and mistakes


def test_parameters_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "clicks.json"
    file.write_text(json.dumps({"attraction": [0.2, 0.8], "examination": [0.9], "query": 7}))
    for path in (file, str(file)):
        world = PositionBased.read(path)
        assert (world.attraction.tolist(), world.examination.tolist()) == ([0.2, 0.8], [0.9])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "path must be JSON"),
        ("[1, 2]", "path must tell 'attraction'"),
        ('{"attraction": [1]}', "path must tell 'examination'"),
        ('{"attraction": [1], "examination": [1, 1]}', r"clicks\.json: examination must have no more"),
        ('{"attraction": [NaN], "examination": [1]}', r"clicks\.json: attraction must lie between 0 and 1"),
        ('{"attraction": "high", "examination": [1]}', r"clicks\.json: attraction must be numbers"),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "clicks.json"
    file.write_text(text)
    with pytest.raises(ValueError, match=says):
        PositionBased.read(file)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"path must be a file.*nowhere\.json"):
        PositionBased.read(tmp_path / "nowhere.json")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: ClickMatrix([0.1]), r"probabilities must be a matrix.*\(1,\)"),
        (lambda: ClickMatrix([[0.1, 1.1]]), r"probabilities must lie between 0 and 1, got 1.1"),
        (
            lambda: ClickMatrix([[0.1], [0.2]]),
            "probabilities must have no more positions than items, got 2 x 1",
        ),
        (lambda: ClickMatrix([["a"]]), "probabilities must be numbers"),
        (lambda: PositionBased(attraction=[], examination=[1]), "attraction must be a list"),
        (lambda: PositionBased(attraction=[0.5], examination=[-1]), r"examination must lie.*got -1"),
        (lambda: PositionBased(attraction=[0.5], examination=[1, 1]), "examination must have no more"),
        (lambda: Periodic([]), "worlds must be a list of at least one"),
        (lambda: Periodic(PEOPLE), "worlds must be a list"),
        (lambda: Periodic([PEOPLE, 3]), r"worlds\[1\] must be a world that does not change.*got 3"),
        (lambda: Periodic([Corrupted(PEOPLE)]), r"worlds\[0\] must be a world that does not change"),
        (lambda: Periodic([PEOPLE, ClickMatrix([[0.1]])]), r"worlds must agree.*\(3, 5\), \(1, 1\)"),
        (lambda: Periodic([PEOPLE], phase=0), "phase must be.*got 0"),
        (lambda: Periodic.reversing(3), "world must be a world.*got 3"),
        (lambda: Corrupted(PEOPLE, share=1.5), r"share must lie between 0 and 1, got 1.5"),
        (lambda: Corrupted(PEOPLE, share=[0.1]), "share must be one number"),
        (
            lambda: Corrupted(PEOPLE, against=ClickMatrix([[0.1]])),
            r"against must agree.*\(3, 5\), got \(1, 1\)",
        ),
        (lambda: Drifting(PEOPLE, to=ClickMatrix([[0.1]])), r"to must agree.*got \(1, 1\)"),
        (lambda: Drifting(PEOPLE, steps=0), "steps must be.*got 0"),
        (lambda: Drifting(PEOPLE, phase=1.5), "phase must be.*got 1.5"),
        (lambda: LowerBound(n_items=5, n_positions=3, horizon=100), "n_items must be at least.*6.*got 5"),
        (lambda: LowerBound(n_items=3, n_positions=1, horizon=100), "n_items must be at least.*4.*got 3"),
        (lambda: LowerBound(n_items=6, n_positions=3, horizon=5), "horizon must be.*6, got 5"),
        (
            lambda: LowerBound(n_items=6, n_positions=3, horizon=9, best=[1, 1, 2]),
            "best must be 3 of 6.*repeat",
        ),
        (lambda: LowerBound(n_items=6, n_positions=3, horizon=9, best=[0.5, 1, 2]), "best must be 3 of 6"),
    ],
)
def test_arguments_that_make_no_sense_are_named(make: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()


def test_an_own_array_is_kept() -> None:
    given = np.array([[0.1, 0.2]])
    world = environments.ClickMatrix(given)
    given[...] = 0.9
    assert world.clicks.tolist() == [[[0.1, 0.2]]]
