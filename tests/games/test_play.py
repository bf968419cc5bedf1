"""Player: unbiased estimates, the least variance, bounds that hold, and rates by the class of the game."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from rankloop import checks, games, simulation
from rankloop.base import Ranking
from rankloop.games import near_wall
from rankloop.games.play import plan

GAMES = {
    "err": games.ranking_game(measure="err", n_items=3, k=2),
    "dcg@2": games.ranking_game(measure="dcg@2", n_items=3, k=2),
    "precision@2": games.ranking_game(measure="precision@2", n_items=3, k=1),
    "noisy clicks": games.ranking_game(measure="precision@1", n_items=3, feedback="noisy clicks 1 4/5 1/5"),
    "apple tasting": games.zoo.apple_tasting(),
    "dcg": games.ranking_game(measure="dcg", n_items=3, k=1),
    "sum_loss": games.ranking_game(measure="sum_loss", n_items=3, k=1),
    "ndcg": games.ranking_game(measure="ndcg", n_items=3, k=2),
    "first click": games.ranking_game(measure="dcg", n_items=3, feedback="first click"),
    "pricing": games.zoo.dynamic_pricing(),
}
EASY = ("err", "dcg@2", "precision@2", "noisy clicks", "apple tasting")
HARD = ("dcg", "sum_loss", "ndcg", "first click", "pricing")
VERDICTS = {name: games.classify(game, route="cells") for name, game in GAMES.items()}


def made(name: str) -> games.Player:
    return games.Player(GAMES[name], verdict=VERDICTS[name])


def played(name: str, *, rounds: int = 200, share: float = 0.2) -> games.Player:
    player = made(name)
    world = games.GameWorld(GAMES[name], chances=near_wall(GAMES[name], VERDICTS[name], share))
    simulation.play(player, world, rounds=rounds, seed=1, points=1)
    return player


@pytest.mark.parametrize("name", GAMES)
def test_estimates_are_unbiased(name: str) -> None:
    # Over every action and signal, in every outcome: what each choice loses beyond the first, in units of the range.
    player, game = played(name), GAMES[name]
    pareto, loss = list(VERDICTS[name].pareto), game.loss
    mean = np.zeros((len(pareto), game.n_outcomes))
    for row, action in enumerate(player.params.owner):
        weight = player.state.p[action] * player.params.chance[row]
        mean += np.outer(player.state.estimate[row], weight)
    np.testing.assert_allclose(mean, (loss[pareto] - loss[pareto[0]]) / np.ptp(loss), atol=1e-6)


@pytest.mark.parametrize("name", ["err", "dcg", "noisy clicks"])
def test_no_other_unbiased_estimate_has_less_variance(name: str) -> None:
    # Against the pseudo-inverse of the weighted signal matrices.
    player = played(name)
    chance, owner = player.params.chance, player.params.owner
    pareto, loss = list(VERDICTS[name].pareto), player.params.loss
    root = np.sqrt(player.state.p[owner])[:, None]
    smallest = np.linalg.pinv((root * chance).T, rcond=1e-12) @ (loss[pareto] - loss[pareto[0]]).T
    np.testing.assert_allclose(player.state.estimate * root, smallest, atol=1e-5)


@pytest.mark.parametrize("name", ["err", "dcg", "noisy clicks", "apple tasting"])
def test_the_bound_of_a_round_is_what_the_analysis_says(name: str) -> None:
    player = played(name)
    before = player.state.total.copy()
    plan(player.params, player.state, player.scratch(player.n_positions))
    p, pareto = player.state.p, list(VERDICTS[name].pareto)
    eta = min(1.0, math.sqrt(math.log(len(pareto)) / before[0]))
    q = np.exp(-eta * (player.state.L_hat - player.state.L_hat.min()))
    q /= q.sum()
    y = player.state.estimate
    price = np.log(np.exp(-eta * y) @ q) / eta + y @ q
    bound = p @ player.params.loss - q @ player.params.loss[pareto]
    bound += (p[player.params.owner] * price) @ player.params.chance
    assert player.state.total[1] - before[1] == pytest.approx(max(bound.max(), 0), rel=1e-6, abs=1e-12)
    assert player.state.total[0] - before[0] == pytest.approx(max(bound.max(), 0) / eta, rel=1e-6, abs=1e-12)
    assert p.sum() == pytest.approx(1)
    assert player.state.w.min() >= eta / (2 * len(p)) * (1 - 1e-9) * min(1, 0.5 / player.state.w.sum())
    assert player.state.w.sum() < 0.6


@pytest.mark.parametrize("name", GAMES)
def test_regret_stays_below_the_bound_when_worlds_take_turns(name: str) -> None:
    verdict, player = VERDICTS[name], made(name)
    worlds = [near_wall(GAMES[name], verdict, 0.9, side=side) for side in (0, 1)]
    world = games.GameWorld(GAMES[name], chances=worlds, period=700)
    trace = simulation.play(player, world, rounds=4_000, seed=2, points=1)
    assert trace.total_regret < player.regret_bound()


# Games of other shapes than those on which the bar for hard games was set: a probe that errs and costs twice what a
# mistake does, actions on a circle, two probes for one question, and more prices.
NOISY = [{"a": "3/4", "b": "1/4"}, {"a": "1/4", "b": "3/4"}]
BLIND = ["?"] * 4
SHAPES = {
    "costly probe": games.Game([[0, 1], [1, 0], [2, 2]], [["?", "?"], ["?", "?"], NOISY]),
    "circle": games.Game(
        [[0, 1, 2, 1], [1, 0, 1, 2], [2, 1, 0, 1], [1, 2, 1, 0], [3, 3, 3, 3]], [*[BLIND] * 4, list("abcd")]
    ),
    "two probes": games.Game(
        [[0, 0, 1, 1], [1, 1, 0, 0], [0, 1, 0, 1], [2, 2, 2, 2], [3, 3, 3, 3]],
        [*[BLIND] * 3, list("aabb"), list("abab")],
    ),
    "five prices": games.zoo.dynamic_pricing(n_prices=5),
}
GAMES |= SHAPES
VERDICTS |= {name: games.classify(game, route="cells") for name, game in SHAPES.items()}


def exponent(name: str, *, rounds: int = 10_000, runs: int = 2) -> float:
    """Of the largest mean regret over worlds, between a thousand rounds and all."""
    worst = np.zeros(2)
    for share, wall in product((0.5, 0.25, 0.12, 0.06), (0, None)):
        regrets = []
        for seed in range(runs):
            chances = near_wall(GAMES[name], VERDICTS[name], share, wall=wall, side=seed % 2)
            world = games.GameWorld(GAMES[name], chances=chances)
            trace = simulation.play(made(name), world, rounds=rounds, seed=seed, points=rounds // 1_000)
            regrets.append(trace.regret[[0, -1]])
        worst = np.maximum(worst, np.mean(regrets, axis=0))
    return math.log(worst[1] / worst[0]) / math.log(rounds / 1_000)


@pytest.mark.parametrize(
    ("name", "class_"), [(name, "easy") for name in EASY] + [(name, "hard") for name in HARD]
)
def test_the_classes_are_what_they_are_played_for(name: str, class_: str) -> None:
    assert VERDICTS[name].class_ == class_


@pytest.mark.parametrize("name", EASY + HARD)
def test_regret_grows_as_the_class_of_the_game_says(name: str) -> None:
    rounds = 40_000 if name == "noisy clicks" else 10_000
    assert exponent(name, rounds=rounds) <= (0.55 if name in EASY else 0.70)


@pytest.mark.parametrize("name", SHAPES)
def test_regret_grows_as_it_should_in_hard_games_of_other_shapes(name: str) -> None:
    assert VERDICTS[name].class_ == "hard"
    assert exponent(name, runs=6) <= 0.70


@pytest.mark.parametrize("name", SHAPES)
def test_the_mean_over_runs_stays_below_the_mean_bound(name: str) -> None:
    # The bound holds in expectation: single runs pass their own.
    lost, bounds = [], []
    for seed in range(40):
        player = made(name)
        world = games.GameWorld(GAMES[name], chances=near_wall(GAMES[name], VERDICTS[name], 0.5))
        lost.append(simulation.play(player, world, rounds=300, seed=seed, points=1).total_regret)
        bounds.append(player.regret_bound())
    assert np.mean(lost) < np.mean(bounds)


@pytest.mark.parametrize("name", ["dcg", "noisy clicks"])
def test_the_contracts_hold(name: str) -> None:
    def make() -> Any:
        return made(name)

    checks.check_signature(make)
    checks.check_rankings_are_valid(make)
    checks.check_rank_changes_nothing(make)
    checks.check_tickets_travel(make)
    checks.check_state_is_everything(make)
    checks.check_randomness_is_given(make)
    checks.check_bad_feedback_changes_nothing(make)
    checks.check_ties_keep_the_order(make)
    checks.check_same_story(
        make,
        lambda: games.GameWorld(GAMES[name], chances=near_wall(GAMES[name], VERDICTS[name], 0.5)),
        rounds=100,
    )


@pytest.mark.parametrize("example", range(3))
def test_the_worlds_keep_their_contracts(example: int) -> None:
    def make() -> Any:
        return list(games.GameWorld.examples())[example]

    checks.check_answers_change_nothing(make)
    checks.check_same_seed_same_users(make)
    checks.check_hindsight_is_best(make)


def test_a_trivial_game_is_played_by_its_best_action() -> None:
    game = games.zoo.dominated()
    player = games.Player(game)
    trace = simulation.play(player, games.GameWorld(game, chances=[0.5, 0.5]), rounds=50, seed=1)
    assert trace.total_regret == 0
    assert player.regret_bound() == 0
    assert player.current().tolist() == [0]


def test_what_cannot_be_played_is_refused() -> None:
    with pytest.raises(ValueError, match="the game is hopeless: regret grows linearly"):
        games.Player(games.ranking_game(measure="ndcg", n_items=3, k=1))
    with pytest.raises(ValueError, match="n_items=5 is too large to be played: at most 4 items"):
        games.Player(games.ranking_game(measure="dcg", n_items=5, k=4))
    with pytest.raises(ValueError, match="too large to be played"):
        games.Player(games.Game(np.eye(65, dtype=int), np.eye(65, dtype=int)))
    with pytest.raises(ValueError, match="verdict must be of"):
        games.Player(GAMES["dcg"], verdict=games.classify(GAMES["dcg"]))


def test_signals_tickets_and_states_are_checked() -> None:
    player = made("err")
    shown = player.rank(rng=np.random.default_rng(1))
    assert player.signal(shown, (0, 0)).tolist() == [0.0]
    with pytest.raises(ValueError, match=r"symbol must be one of .* got \(2, 0\)"):
        player.signal(shown, (2, 0))
    for bad in ([4.0], [0.5], [-1.0], [np.nan], [0.0, 0.0]):
        with pytest.raises(ValueError, match="feedback"):
            player.learn(shown, bad)
    other = Ranking(np.roll(shown.items, 1), shown.propensities, shown.memo)
    with pytest.raises(ValueError, match="number of the action that was shown"):
        player.learn(other, [0.0])
    huge = Ranking(shown.items, shown.propensities, (shown.memo[0], shown.memo[1] + 1e13))
    with pytest.raises(ValueError, match="estimates"):
        player.learn(huge, [0.0])
    saved = player.save()
    with pytest.raises(ValueError, match="must be chances"):
        player.load(saved | {"p": saved["p"] * 2})
    with pytest.raises(ValueError, match="not be negative"):
        player.load(saved | {"total": saved["total"] - 5})


def test_worlds_are_checked() -> None:
    game = GAMES["apple tasting"]
    for arguments, complaint in (
        ({}, "either outcomes or chances"),
        ({"outcomes": [0], "chances": [0.5, 0.5]}, "either outcomes or chances"),
        ({"outcomes": [0, 2]}, "numbers from 0 to 1"),
        ({"chances": [0.5, 0.4]}, "sum to 1"),
        ({"chances": [0.5, 0.25, 0.25]}, "2 numbers for each world"),
        ({"chances": [0.5, 0.5], "period": 0}, "period"),
    ):
        with pytest.raises(ValueError, match=complaint):
            games.GameWorld(game, **arguments)
    listed = games.GameWorld(game, outcomes=[0, 1, 1])
    with pytest.raises(ValueError, match="rounds must be at most 3"):
        simulation.play(made("apple tasting"), listed, rounds=4, seed=1)
    trace = simulation.play(made("apple tasting"), listed, rounds=3, seed=1)
    assert trace.rounds[-1] == 3
    with pytest.raises(ValueError, match="restart"):
        listed.arrive(rng=np.random.default_rng(1))


def test_a_world_reveals_signals_with_their_chances() -> None:
    game = GAMES["noisy clicks"]
    world = games.GameWorld(game, outcomes=[game.outcomes.index((1, 0, 0))] * 2)
    rng = np.random.default_rng(1)
    world.arrive(rng=rng)
    for action, order in enumerate(game.orders):
        shown = Ranking(np.array(order))
        assert world.value(shown) == game.loss[action, game.outcomes.index((1, 0, 0))]
        codes = [world.respond(shown, rng=rng)[0] for _ in range(2_000)]
        clicked = np.mean([game.observations.symbols[action][int(code)] == (1,) for code in codes])
        assert abs(clicked - (0.8 if order[0] == 0 else 0.2)) < 0.045


def test_worlds_near_a_wall() -> None:
    verdict, game = VERDICTS["dcg"], GAMES["dcg"]
    for side in (0, 1):
        best = verdict.neighbours[1][side]
        losses = game.loss @ near_wall(game, verdict, 0.05, wall=1, side=side)
        assert int(np.argmin(losses)) == best
    tie = game.loss[list(verdict.neighbours[1])] @ near_wall(game, verdict, 0.0, wall=1)
    assert tie[0] == pytest.approx(tie[1])
    lead = game.loss[verdict.neighbours[0][1]] - game.loss[verdict.neighbours[0][0]]
    assert lead @ near_wall(game, verdict, 1.0) == pytest.approx(lead.max())
    for bad in ({"share": 1.5}, {"share": 0.5, "wall": 99}, {"share": 0.5, "side": 2}):
        with pytest.raises(ValueError, match=next(iter(set(bad) - {"share"}), "share")):
            near_wall(game, verdict, **bad)
    with pytest.raises(ValueError, match="must be about cells"):
        near_wall(game, games.classify(game), 0.5)
