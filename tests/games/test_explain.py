"""What is said about a verdict: the class, why, what would help, and what to use."""

from __future__ import annotations

import re

import numpy as np
import pytest

from rankloop import environments, games, rankers, simulation
from rankloop.games.classify import usual_measures
from rankloop.games.explain import constructor, headline, learner


@pytest.mark.parametrize(
    ("measure", "items", "top", "used"),
    [
        ("dcg", 10, 10, "FTPL"),
        ("dcg", 10, 9, "SemiBanditFTRL(n_items=10, measure='dcg')"),
        ("dcg@3", 10, 3, "SemiBanditFTRL(n_items=10, measure='dcg@3')"),
        ("ndcg", 40, 40, "FTPL(n_items=40, measure='ndcg')"),
        ("auc", 40, 40, "FTPL(n_items=40, measure='auc')"),
        ("dcg@3", 10, 2, "TopFTRL(n_items=10, measure='dcg@3', k=2)"),
        ("precision@3", 10, 5, "PrecisionFTRL(n_items=10, measure='precision@3', k=3)"),
        ("ndcg", 4, 3, "FeedExp3(n_items=4, measure='ndcg', k=3)"),
        ("ndcg", 40, 39, "no ranker of the package"),
        ("err", 3, 2, "games.Player(game)"),
        ("err", 5, 4, "T^(2/3) only"),
        ("ndcg", 4, 1, "Optimise dcg instead"),
    ],
)
def test_what_to_use(measure: str, items: int, top: int, used: str) -> None:
    verdict = games.classify(games.ranking_game(measure=measure, n_items=items, k=top))
    assert used in learner(verdict)


@pytest.mark.parametrize(
    ("measure", "k", "class_", "easier"),
    [
        (
            "ndcg",
            1,
            "hopeless",
            "Feedback on two would help: then it is learnable, slowly; with three it is quickly",
        ),
        ("sum_loss", 1, "hard", "Feedback on two would help: then it is quickly learnable."),
        ("precision@2", 1, "easy", None),
    ],
)
def test_every_class_says_why_and_what_would_help(
    measure: str, k: int, class_: str, easier: str | None
) -> None:
    verdict = games.classify(games.ranking_game(measure=measure, n_items=3, k=k))
    lines = games.explain(verdict)
    assert verdict.class_ == class_
    assert lines[1].startswith("Why: ")
    assert lines[-1].startswith("Use: ")
    assert len(lines) == (3 if easier is None else 4)
    assert easier is None or lines[2].startswith(easier)
    assert headline(verdict)


def test_a_cut_off_far_above_the_end_is_a_matter_of_computing() -> None:
    def explained(measure: str, items: int, top: int) -> str:
        game = games.ranking_game(measure=measure, n_items=items, k=top)
        return " ".join(games.explain(games.classify(game)))

    assert "is a conjecture for ndcg@10" in explained("ndcg@10", 50, 5)
    for proved in (("ndcg", 50, 5), ("ndcg@9", 10, 5), ("ndcg@1", 10, 5), ("dcg@3", 10, 2)):
        assert "conjecture" not in explained(*proved)


def test_a_game_of_matrices_is_explained_by_its_cells() -> None:
    lines = games.explain(games.classify(games.zoo.blind_pennies()))
    assert len(lines) == 2
    assert lines[1].endswith("compete, and nobody sees which is better.")


def test_other_feedback_is_explained_by_cells_and_played() -> None:
    game = games.ranking_game(measure="dcg", n_items=3, feedback="first click")
    assert games.explain(games.classify(game))[-1] == "Use: games.Player(game)."
    lines = games.explain(games.classify(games.zoo.apple_tasting()))
    assert lines[-1] == "Use: games.Player(game)."


def test_nothing_to_learn() -> None:
    verdict = games.classify(games.ranking_game(measure="precision@3", n_items=3, k=1))
    assert headline(verdict).startswith("nothing to learn")


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
        users = environments.FixedItems(labels, measure=name)
        result = simulation.play(ranker, users, rounds=20, seed=1, points=1)
        assert np.isfinite(result.total_regret)
        shown = ranker.feedback.length(m)
        assert shown <= k  # it asks for no more labels than the game reveals


def _play(name: str, m: int, k: int, grades: int) -> None:
    game = games.ranking_game(measure=name, n_items=m, k=k, grades=grades)
    world = games.GameWorld(game, outcomes=np.random.default_rng(1).integers(0, game.n_outcomes, 20))
    assert np.isfinite(simulation.play(games.Player(game), world, rounds=20, seed=1).total_regret)


def test_the_first_item_alone_is_precision_at_1() -> None:
    for name in ("dcg@1", "ndcg@1", "err@1"):
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
