"""ClickMix: its weights are those of the fixed share, it follows users who change, and late feedback costs little."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest

from rankloop import environments, rankers, simulation
from rankloop.base import Ranking
from rankloop.rankers import click_mix
from tests.rankers.odd_positions import regret_where_the_middle_is_seen_first

SIZE = {"n_items": 10, "n_positions": 5}
BEST = np.array([0.8, 0.73, 0.66, 0.59, 0.52, 0.45, 0.38, 0.31, 0.24, 0.17])
LOOKS = 1 / np.arange(1, 6)


def played(ranker: rankers.ClickMix, rounds: int, *, seed: int = 1) -> rankers.ClickMix:
    world = environments.PositionBased(attraction=BEST[::-1], examination=LOOKS)
    simulation.play(ranker, world, rounds=rounds, seed=seed)
    return ranker


def test_a_weight_grows_by_the_chance_that_its_reading_gave_to_the_clicks() -> None:
    ranker = played(rankers.ClickMix(**SIZE), 500)
    state, before = ranker.state, {name: value.copy() for name, value in ranker.state_arrays().items()}
    items, clicks = np.array([3, 8, 0, 5, 9]), np.array([0.0, 1.0, 0.0, 1.0, 0.0])
    expected = np.empty_like(before["weight"])
    for h in range(len(expected)):
        theta = [
            click_mix.weigh_item(
                before["S"][h],
                before["N"][h],
                before["theta"][h, i],
                before["kappa"][h],
                before["mean"][h],
                i,
            )
            for i in items
        ]
        fit = np.minimum(np.array(theta) * before["kappa"][h], 0.999)
        places = np.arange(5), items
        cell = (before["S"][h][places] + 3) / (before["N"][h][places] + 3 / fit)
        goes_on = min((before["after"][h, 0] + 0.1) / (before["after"][h, 1] + 0.2), 1.0)
        read = (before["clicks"][h, items] + 1) / (before["reads"][h, items] + 1 / before["mean_read"][h])
        read *= np.where(np.arange(5) > 1, goes_on, 1.0)  # the first click is at the second position
        for r, p in enumerate((fit, cell, read)):
            expected[h, r] = before["weight"][h, r] * np.prod(np.where(clicks > 0, p, 1 - p))
    expected = (1 - 1e-5) * expected / expected.sum() + 1e-5 * ranker.params.first
    ranker.learn_shown(items, clicks)
    np.testing.assert_allclose(state.weight, expected, rtol=1e-9)


def test_each_memory_keeps_what_its_length_says() -> None:
    ranker = rankers.ClickMix(**SIZE)
    for _ in range(3_000):
        ranker.learn_shown(np.arange(5), np.zeros(5))
    shown = ranker.state.N[:, 0, 0]
    assert shown[0] == 3_000
    for h, length in enumerate((16_000, 4_000, 1_000, 300), start=1):
        assert shown[h] == pytest.approx(length * (1 - np.exp(-3_000 / length)), rel=0.02)


def test_it_forgets_where_items_change_places() -> None:
    world = environments.PositionBased(attraction=BEST, examination=LOOKS)
    turned = environments.PositionBased(attraction=BEST[::-1].copy(), examination=LOOKS)
    people = environments.Periodic([world, turned], phase=10_000)
    trace = simulation.play(rankers.ClickMix(**SIZE), people, rounds=40_000, seed=1)
    lost = float(people.ideal(40_000)) - trace.total_value
    random = 40_000 * (world.value(world.best()) - BEST.mean() * LOOKS.sum())
    assert lost < 0.2 * random
    # The one that never forgets is the wrong version.
    slow = simulation.play(rankers.PBMTS(**SIZE), people, rounds=40_000, seed=1)
    assert float(people.ideal(40_000)) - slow.total_value > 0.4 * random


def test_lists_that_wait_for_feedback_are_independent() -> None:
    ranker = rankers.ClickMix(**SIZE)
    rng = np.random.default_rng(1)
    lists = {tuple(ranker.rank(rng=rng).items.tolist()) for _ in range(50)}
    assert len(lists) >= 45  # a chain that waits for feedback would show one


def test_feedback_a_thousand_rounds_late_costs_a_thousand_rounds() -> None:
    world = environments.PositionBased(attraction=BEST, examination=LOOKS)
    random = world.value(world.best()) - BEST.mean() * LOOKS.sum()
    ranker, rng, waiting, lost = (
        rankers.ClickMix(**SIZE),
        np.random.default_rng(2),
        deque[tuple[Ranking, np.ndarray]](),
        0.0,
    )
    for _ in range(8_000):
        shown = ranker.rank(rng=rng)
        lost += world.value(world.best()) - world.value(shown)
        world.arrive(rng=rng)
        waiting.append((shown, world.respond(shown, rng=rng)))
        if len(waiting) > 1_000:
            ranker.learn(*waiting.popleft())
    assert lost < 2_000 * random


def test_the_insurance_learns_from_its_own_lists_alone() -> None:
    ranker = rankers.ClickMix(**SIZE, insurance=5.0)
    rng, own = np.random.default_rng(3), 0
    ranker.state.changed[0] = 1
    for _ in range(500):
        shown = ranker.rank(rng=rng)
        insured = bool(shown.memo[0][0] > 0)
        if insured:
            np.testing.assert_allclose(shown.memo[0], ranker.state.x[np.arange(5), shown.items])
            assert shown.explored
        before = ranker.state.L_hat.copy()
        ranker.learn(shown, np.zeros(5))
        assert bool((ranker.state.L_hat != before).any()) == insured
        own += insured
    assert ranker.state.rounds[0] == 1 + own
    assert 50 < own < 150  # a fifth at first, then 5 / sqrt t


def test_insurance_costs_nothing_until_users_change() -> None:
    people = [
        environments.PositionBased(attraction=attraction, examination=LOOKS)
        for attraction in (BEST, BEST[::-1].copy())
    ]
    ranker = rankers.ClickMix(**SIZE)
    simulation.play(ranker, people[0], rounds=5_000, seed=1)
    assert ranker.state.changed[0] == 0
    assert ranker.state.rounds[0] == 1
    without = rankers.ClickMix(**SIZE, insurance=0.0)
    simulation.play(without, people[0], rounds=5_000, seed=1)
    np.testing.assert_array_equal(ranker.state.S, without.state.S)
    simulation.play(ranker, people[1], rounds=5_000, seed=2)
    assert ranker.state.changed[0] == 1
    assert ranker.state.rounds[0] > 50


def test_a_second_look_is_at_what_was_left_out_and_costs_little() -> None:
    kappa, order = np.array([1.0, 0.2, 0.5]), [4, 0, 2]
    for key in np.random.default_rng(4).bit_generator.random_raw(50):
        items = np.array(order)
        assert click_mix._look_again(kappa, 6, key, items)
        assert items[[0, 2]].tolist() == [4, 2]
        assert items[1] in (1, 3, 5)
    assert not click_mix._look_again(kappa, 3, np.uint64(1), np.array([2, 0, 1]))


def test_where_its_lists_get_more_clicks_the_insurance_takes_over() -> None:
    ranker = rankers.ClickMix(**SIZE, insurance=2.0)
    ranker.state.t[0] = 10**6
    ranker.state.changed[0] = 1
    ranker.state.duel[...] = [[1_000, 1_000, 2_000], [300, 600, 1_800]]
    rng = np.random.default_rng(1)
    insured = [ranker.rank(rng=rng).memo[0][0] > 0 for _ in range(300)]
    assert 0.8 < np.mean(insured) < 0.97
    ranker.state.duel[1] = [300, 310, 700]
    assert np.mean([ranker.rank(rng=rng).memo[0][0] > 0 for _ in range(300)]) < 0.05


def test_readers_who_leave_at_a_click_are_recognised() -> None:
    from rankloop.feedback import CascadeModel

    users = environments.ClickUsers(
        CascadeModel([0.5, 0.4, 0.3, 0.3, 0.2, 0.2, 0.1, 0.1, 0.1, 0.1]), n_positions=5
    )
    ranker = rankers.ClickMix(**SIZE)
    simulation.play(ranker, users, rounds=3_000, seed=1)
    assert ranker.state.weight[:, click_mix.TO_CLICK].sum() > 0.9
    assert played(rankers.ClickMix(**SIZE), 3_000).state.weight[:, click_mix.BY_POSITION].sum() > 0.9


def test_it_learns_positions_in_any_order_and_little_is_lost() -> None:
    assert regret_where_the_middle_is_seen_first(rankers.ClickMix(n_items=5, n_positions=3)) < 250


def test_a_new_item_is_expected_to_be_like_the_others() -> None:
    old = played(rankers.ClickMix(**SIZE), 2_000)
    new = rankers.ClickMix(**SIZE)
    origin = np.array([0, 1, 2, -1, 4, 5, 6, 7, 8, 9])
    new.carry(old, origin)
    np.testing.assert_array_equal(new.state.S[:, :, 3], 0)
    np.testing.assert_array_equal(new.state.theta[:, 3], old.state.mean)
    np.testing.assert_array_equal(new.state.S[:, :, 4], old.state.S[:, :, 4])
    np.testing.assert_array_equal(new.state.weight, old.state.weight)
    assert new.state.rounds[0] == 1


def test_bad_arguments_and_states_are_named() -> None:
    with pytest.raises(ValueError, match="memory must be"):
        rankers.ClickMix(n_items=3, memory=1)
    with pytest.raises(ValueError, match="insurance must be"):
        rankers.ClickMix(n_items=3, insurance=-1.0)
    ranker = rankers.ClickMix(n_items=2)
    with pytest.raises(ValueError, match="must hold probabilities"):
        ranker.learn(Ranking(np.arange(2), None, (np.array([0.5, 0.0]),)), [0, 1])
    saved = ranker.save()
    for name, wrong in (
        ("theta", 0.0),
        ("weight", 0.5),
        ("after", -1.0),
        ("x", 0.9),
        ("reads", -1.0),
        ("lost", 1.0),
        ("changed", 2),
    ):
        with pytest.raises(ValueError, match=f"saved state '{name}'|'clicks'|click counts"):
            ranker.load(saved | {name: np.full_like(saved[name], wrong)})
