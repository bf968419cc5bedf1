"""What is said about a verdict: the class, why, what would help, and what to use."""

from __future__ import annotations

import pytest

from rankloop import games
from rankloop.games.alternating import difference_is_nonzero
from rankloop.games.explain import headline, learner


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
    def told(measure: str, items: int, top: int) -> str:
        return " ".join(
            games.explain(games.classify(games.ranking_game(measure=measure, n_items=items, k=top)))
        )

    assert "is a conjecture for ndcg@10" in told("ndcg@10", 50, 5)
    for proved in (("ndcg", 50, 5), ("ndcg@9", 10, 5), ("ndcg@1", 10, 5), ("dcg@3", 10, 2)):
        assert "conjecture" not in told(*proved)


def test_the_conjecture_holds_as_far_as_the_page_says() -> None:
    # docs/concepts/games.md: n from 2 to 10, m up to 200.
    for n in range(2, 11):
        for m in range(n + 2, 201):
            assert difference_is_nonzero(m - 2, start=1, cutoff=n)


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
