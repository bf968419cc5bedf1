"""The 2022 experiments: what they are made of is what they say."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from rankloop import environments, rankers, simulation
from rankloop.experiments.pbm_2022.bounds import best_so_far, gaps, lemma_2, theorem_2
from rankloop.experiments.pbm_2022.estimators import variances
from rankloop.experiments.pbm_2022.rankers import FrankWolfeFTRLPBM, RewardFTRLPBM, SummedFTRLPBM, steps_from
from rankloop.experiments.pbm_2022.setting import PERIODIC_1, STOCHASTIC, WORLDS, World
from rankloop.experiments.pbm_2022.solver import objective
from rankloop.rankers import ftrl_pbm as reference
from rankloop.rankers.ftrl_pbm import WithoutPlan


def test_the_worlds_are_those_that_have_names() -> None:
    for world in WORLDS:
        suffix = "" if world.kind == STOCHASTIC else "-" + world.kind.replace(" ", "-")
        named, own = environments.named(world.source + suffix), world.environment()
        np.testing.assert_array_equal(named.clicks, own.clicks)
        assert named.params.phase == own.params.phase


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.label)
def test_levels_are_what_lists_are_worth_over_whole_phases(world: World) -> None:
    people, levels, rounds = world.environment(phase=50), world.levels(), 1_000
    best = people.best()
    trace = simulation.play(
        rankers.Fixed(order=best.items, n_items=10), people, rounds=rounds, seed=1, points=1
    )
    assert trace.mean_value == pytest.approx(levels.fixed)
    assert people.ideal(rounds) / rounds == pytest.approx(levels.each_phase)
    assert levels.random == pytest.approx(people.clicks.mean(axis=(0, 2)).sum())


def test_sums_are_those_of_the_leaders_that_were_played() -> None:
    marks = np.array([1, 7, 40])
    summed, plain = (
        SummedFTRLPBM(n_items=6, n_positions=3, marks=marks),
        WithoutPlan(n_items=6, n_positions=3),
    )
    people = environments.PositionBased(attraction=np.linspace(0.9, 0.1, 6), examination=[1, 0.6, 0.3])
    theirs = simulation.play(summed, people, rounds=40, seed=3)
    people.restart()
    x_sum, root_sum, expected = np.zeros((3, 6)), np.zeros((3, 6)), []
    ranker_rng, people_rng = (np.random.default_rng(child) for child in np.random.SeedSequence(3).spawn(2))
    for t in range(1, 41):
        x_sum += plain.x
        root_sum += np.sqrt(plain.x / t)
        if t in marks:
            expected.append((x_sum.copy(), root_sum.copy()))
        people.arrive(rng=people_rng)
        shown = plain.rank(rng=ranker_rng)
        plain.learn(shown, people.respond(shown, rng=people_rng))
    np.testing.assert_allclose(summed.kept, expected, rtol=1e-12)
    np.testing.assert_array_equal(summed.x, plain.x)
    assert len(theirs.regret) == 40


def test_the_best_list_so_far_counts_each_phase() -> None:
    people = World("yandex", PERIODIC_1).environment(phase=10)
    lists = np.array(list(permutations(range(10), 5)))
    for rounds in (1, 10, 14, 20, 29, 35):
        counts = np.zeros(2)
        for t in range(rounds):
            counts[(t // 10) % 2] += 1
        gains = np.tensordot(counts, people.clicks, axes=1)
        found = best_so_far(people, rounds, phase=10)
        best = gains[np.arange(5), lists].sum(axis=1).max()
        assert gains[np.arange(5), found].sum() == pytest.approx(best)
        if rounds == 10:
            assert found.tolist() == [0, 1, 2, 3, 4]


def test_the_gaps_are_those_of_the_definition() -> None:
    alpha, beta = np.array([0.9, 0.7, 0.4, 0.3]), np.array([1.0, 0.6, 0.5])
    delta = gaps(alpha, beta)
    assert delta.shape == (4, 3)
    assert (np.diag(delta) == 0).all()
    assert delta[3, 2] == pytest.approx((0.5 - 0.0) * (0.4 - 0.3))  # the last position, beta_4 = 0
    assert delta[0, 1] == pytest.approx((1.0 - 0.6) * (0.9 - 0.7))
    assert delta[2, 0] == pytest.approx((1.0 - 0.6) * (0.9 - 0.4))


def test_lemma_2_is_tight_for_neighbours_and_breaks_with_a_larger_constant() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        alpha, beta = np.sort(rng.random(5))[::-1], np.sort(rng.random(3))[::-1]
        found = lemma_2(alpha, beta)
        assert found.lists == 60
        assert found.least >= -1e-15
        assert found.least_ratio == pytest.approx(0.5)


def test_theorem_2_at_a_million_rounds() -> None:
    for source, expected in (("gap-0.03", 1.7e6), ("gap-0.01", 5.0e6), ("yandex", 2.2e7)):
        still = World(source, STOCHASTIC).still()
        assert theorem_2(still.attraction, still.examination, 1e6) == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(("n", "m"), [(6, 3), (4, 4), (5, 1)])
def test_compiled_steps_are_those_of_the_reference(n: int, m: int) -> None:
    rng = np.random.default_rng(n)
    L_hat, x = rng.exponential(30, (m, n)), np.full((m, n), 1 / n)
    for K in (1, 5, 60):
        ours = steps_from(50.0, K, L_hat, x)
        np.testing.assert_allclose(
            ours, reference.frank_wolfe(x, L_hat, 1 / (2 * np.sqrt(50.0)), K), atol=1e-12
        )
        np.testing.assert_allclose(ours.sum(axis=1), 1)


def test_frank_wolfe_learns_what_the_reference_learns() -> None:
    people, rng = environments.named("gap-0.03"), np.random.default_rng(1)
    ours = FrankWolfeFTRLPBM(n_items=10, n_positions=5, K=12)
    slow = rankers.FTRLPBM(n_items=10, n_positions=5, solver="frank-wolfe", steps=12)
    # No two assignments equally good: both solvers take the same.
    slow.state.L_hat[:] = ours.state.L_hat[:] = rng.exponential(3, (5, 10))
    for _ in range(60):
        people.arrive(rng=rng)
        shown = ours.rank(rng=rng)
        clicks = people.respond(shown, rng=rng)
        for ranker in (ours, slow):
            ranker.learn(shown, clicks)
    np.testing.assert_allclose(ours.x, slow.x, atol=1e-9)
    np.testing.assert_allclose(ours.state.L_hat, slow.state.L_hat, rtol=1e-9)


def test_no_frank_wolfe_steps_go_below_the_minimum() -> None:
    ranker = rankers.FTRLPBM(n_items=10, n_positions=5)
    simulation.play(ranker, environments.named("gap-0.03"), rounds=2_000, seed=1)
    t, L_hat = float(ranker.state.t[0]), ranker.state.L_hat
    least = objective(t, L_hat, ranker.x)
    above = [objective(t, L_hat, steps_from(t, K, L_hat, ranker.x)) - least for K in (10, 100, 1_000)]
    assert above[0] > above[1] > above[2] > -1e-7


def test_the_reward_form_estimates_the_losses_up_to_a_constant() -> None:
    ranker, rng = RewardFTRLPBM(n_items=4, n_positions=2), np.random.default_rng(1)
    people = environments.PositionBased(attraction=[0.9, 0.5, 0.3, 0.1], examination=[1.0, 0.5])
    total = np.zeros((2, 4))
    rounds = 2_000
    for _ in range(rounds):
        ranker.state.L_hat[:] = 0.0
        ranker.state.t[:] = 1
        ranker.state.x[:] = 0.25
        ranker.state.rows[:] = 0.5
        people.arrive(rng=rng)
        shown = ranker.rank(rng=rng)
        ranker.learn(shown, people.respond(shown, rng=rng))
        total += ranker.state.L_hat
    np.testing.assert_allclose(total / rounds, -people.clicks[0], atol=4 * np.sqrt(4 / rounds))


def test_variances_are_those_of_draws() -> None:
    click = World("yandex", STOCHASTIC).still().clicks[0]
    rng, draws, x = np.random.default_rng(2), 20_000, 0.1
    shown = rng.random((draws, *click.shape)) < x
    loss = (rng.random((draws, *click.shape)) >= click).astype(float)
    for name, baseline in (
        ("loss", 0.0),
        ("reduced-variance", 0.5),
        ("mean", 1 - click),
        ("bare reward", 1.0),
    ):
        drawn = (baseline + shown * (loss - baseline) / x).var(axis=0).mean()
        assert variances("yandex", x)[name] == pytest.approx(drawn, rel=0.05)
