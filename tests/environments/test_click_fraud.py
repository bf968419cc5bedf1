"""Click fraud: fake users and an attacker, each against its definition."""

from __future__ import annotations

import numpy as np
import pytest

from rankloop import rankers, simulation
from rankloop.base import Ranking
from rankloop.checks import check_same_story
from rankloop.environments import Attacked, ClickUsers, Promoted
from rankloop.feedback import CascadeModel, UserBrowsingModel

ATTRACTION = np.array([0.3, 0.28, 0.26, 0.24, 0.22, 0.1, 0.09, 0.08, 0.07, 0.06])
MODEL = CascadeModel(ATTRACTION)


def attacked() -> Attacked:
    return Attacked(MODEL, item=9, victims=[0, 1, 2], budget=200, n_positions=5)


def test_a_share_of_the_users_clicks_one_item_wherever_it_is_shown() -> None:
    people = Promoted(MODEL, item=9, share=0.25, n_positions=5)
    rng, shown = np.random.default_rng(1), Ranking(np.array([0, 7, 9, 8, 1]))
    fake = 0
    genuine_value = ClickUsers(MODEL, n_positions=5).value(shown)
    for _ in range(4_000):
        people.arrive(rng=rng)
        clicks = people.respond(shown, rng=rng)
        if people.state.fake[0]:
            fake += 1
            assert clicks.tolist() == [0, 0, 1, 0, 0]
            assert people.value(shown) == 0.0
        else:
            assert people.value(shown) == pytest.approx(genuine_value)
    assert abs(fake - 1_000) < 4 * np.sqrt(4_000 * 0.25 * 0.75)
    assert people.hindsight() == pytest.approx((4_000 - fake) * people.params.best)


def test_genuine_users_click_as_without_fraud() -> None:
    plain, people = ClickUsers(MODEL, n_positions=5), Promoted(MODEL, item=9, share=0.0, n_positions=5)
    shown = Ranking(np.array([4, 0, 9, 8, 1]))
    for seed in range(50):
        answers = []
        for world in (plain, people):
            rng = np.random.default_rng(seed)
            world.arrive(rng=rng)
            answers.append(world.respond(shown, rng=rng).tolist())
        assert answers[0] == answers[1]
    assert people.best().items.tolist() == plain.best().items.tolist() == [0, 1, 2, 3, 4]


def test_the_attacker_hides_clicks_on_its_victims_while_the_budget_lasts() -> None:
    people = Attacked(CascadeModel([1.0, 1.0, 0.0]), item=2, victims=[0], budget=3, n_positions=2)
    rng = np.random.default_rng(1)
    seen = []
    for items in ([1, 0], [0, 2], [0, 1], [2, 0], [0, 2]):
        people.arrive(rng=rng)
        shown = Ranking(np.array(items))
        seen.append(people.respond(shown, rng=rng).tolist())
        assert people.value(shown) == 1.0, "the user was there, whatever the ranker observes"
    # The first user clicks item 1 and never gets to the victim; the last comes when the budget is spent.
    assert seen == [[1, 0], [0, 1], [0, 0], [1, 0], [1, 0]]
    assert people.state.spent[0] == 3


def test_the_compiled_loop_tells_the_same_story() -> None:
    for make in (attacked, lambda: Promoted(MODEL, item=9, share=0.2, n_positions=5)):
        check_same_story(lambda: rankers.CascadeRobustUCB(n_items=10, n_positions=5, budget=5), make)
        check_same_story(lambda: rankers.Uniform(n_items=10, n_positions=5), make)


def test_without_room_for_fraud_the_attack_succeeds_and_with_it_it_fails() -> None:
    scores = {}
    for name, budget in (("wrong", 0), ("robust", 200)):
        scores[name] = []
        for seed in range(3):
            ranker = rankers.CascadeRobustUCB(n_items=10, n_positions=5, budget=budget)
            trace = simulation.play(ranker, attacked(), rounds=50_000, seed=seed, points=1)
            scores[name].append(trace.mean_value)
    best = attacked().params.best
    random = np.mean(
        [
            simulation.play(
                rankers.Uniform(n_items=10, n_positions=5), attacked(), rounds=5_000, seed=seed
            ).mean_value
            for seed in range(3)
        ]
    )
    assert max(scores["wrong"]) < random, "worse than random lists"
    assert min(scores["robust"]) > random + 0.8 * (best - random)


def test_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="model must be a click model"):
        Promoted("cascade", item=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"item must be a whole number .*got 10"):
        Promoted(MODEL, item=10)
    with pytest.raises(ValueError, match=r"share must be .*got 1.5"):
        Promoted(MODEL, item=1, share=1.5)
    with pytest.raises(ValueError, match="n_positions must be at most n_items=10, got 11"):
        Promoted(MODEL, item=1, n_positions=11)
    with pytest.raises(ValueError, match=r"victims\[1\] must be .*got -1"):
        Attacked(MODEL, item=1, victims=[0, -1], budget=1)
    with pytest.raises(ValueError, match="victims must not have the promoted item 1"):
        Attacked(MODEL, item=1, victims=[0, 1], budget=1)
    with pytest.raises(ValueError, match=r"budget must be .*got -1"):
        Attacked(MODEL, item=1, victims=[0], budget=-1)
    many = UserBrowsingModel(np.full(30, 0.5), np.ones((6, 6)) * np.linspace(0.1, 1, 6))
    with pytest.raises(ValueError, match="whose best list of 6 of 30 items can be found"):
        Promoted(many, item=1)
