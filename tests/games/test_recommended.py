"""Every ranker that is recommended is made as the text says, and plays the game it is recommended for."""

from __future__ import annotations

import re

import numpy as np
import pytest

from rankloop import environments, games, rankers, simulation
from rankloop.games.explain import constructor, learner
from rankloop.games.rates import usual_measures

CASES = [
    *((name, m, 2) for m in (2, 3, 4, 10) for name in [*usual_measures(m), "average_precision@1"]),
    *((name, m, 3) for m in (2, 3, 10) for name in usual_measures(m, grades=3)),
]


@pytest.mark.parametrize(("name", "m", "grades"), sorted(set(CASES)))
def test_what_is_recommended_can_be_played(name: str, m: int, grades: int) -> None:
    rng = np.random.default_rng(1)
    for k in range(1, m + 1):
        verdict = games.classify(games.ranking_game(measure=name, n_items=m, k=k, grades=grades))
        text, call = learner(verdict), constructor(verdict)
        if call is None:
            known = "games.Player(game)" in text or "no ranker of the package" in text
            assert verdict.class_ in ("trivial", "hopeless") or known
            if "games.Player" in text and m <= 3:
                _play(name, m, k, grades)
            continue
        assert f"rankers.{call}" in text
        class_, arguments = re.fullmatch(r"(\w+)\((.*)\)", call).groups()
        ranker = getattr(rankers, class_)(**eval(f"dict({arguments})"))
        labels = rng.integers(0, grades, (20, m))
        labels[0, 0] = grades - 1
        people = environments.FixedItems(labels, measure=name)
        result = simulation.play(ranker, people, rounds=20, seed=1, points=1)
        assert np.isfinite(result.total_regret)
        shown = ranker.feedback.length(m)
        assert shown <= k  # it asks for no more labels than the game reveals


def _play(name: str, m: int, k: int, grades: int) -> None:
    game = games.ranking_game(measure=name, n_items=m, k=k, grades=grades)
    world = games.GameWorld(game, outcomes=np.random.default_rng(1).integers(0, game.n_outcomes, 20))
    assert np.isfinite(simulation.play(games.Player(game), world, rounds=20, seed=1).total_regret)


@pytest.mark.parametrize("name", ["dcg@1", "ndcg@1", "err@1"])
def test_the_first_item_alone_is_precision_at_1(name: str) -> None:
    verdict = games.classify(games.ranking_game(measure=name, n_items=10, k=3))
    assert learner(verdict) == "Use: rankers.PrecisionFTRL(n_items=10, measure='precision@1', k=1)."


@pytest.mark.parametrize(
    ("name", "items", "top", "grades", "call"),
    [
        ("dcg", 10, 10, 3, "FTPL(n_items=10, measure='dcg', max_grade=2)"),
        ("err@1", 10, 1, 3, "SemiBanditFTRL(n_items=10, measure='dcg@1', max_grade=2)"),
        ("pairwise_loss", 3, 2, 3, "FeedExp3(n_items=3, measure='pairwise_loss', k=2, max_grade=2)"),
        ("ndcg", 6, 6, 2, "FTPL(n_items=6, measure='ndcg')"),
        ("ndcg", 6, 6, 3, "FTPL(n_items=6, measure='ndcg', max_grade=2)"),
        ("average_precision", 6, 6, 2, None),
        ("dcg", 10, 1, 2000, None),
    ],
)
def test_grades_and_limits(name: str, items: int, top: int, grades: int, call: str | None) -> None:
    verdict = games.classify(games.ranking_game(measure=name, n_items=items, k=top, grades=grades))
    assert constructor(verdict) == call


def test_a_trivial_game_names_the_best_action() -> None:
    game = games.Game([[1, 2], [0, 1], [0, 1]], [["?", "?"]] * 3)
    assert (
        games.explain(games.classify(game))[0]
        == "Play action 1: it is best whatever happens. So is action 2."
    )
    same = games.classify(games.ranking_game(measure="precision@3", n_items=3, k=1))
    assert games.explain(same)[0].startswith("Show any order")
