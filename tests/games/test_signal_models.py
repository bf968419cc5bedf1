"""Feedback models of ranking games: what they reveal, their classes, proofs and saved verdicts."""

from __future__ import annotations

import dataclasses
import json
from fractions import Fraction
from typing import Any

import pytest

from rankloop import games
from rankloop.games import signal_models
from rankloop.games.verdict import as_plain, from_plain

ORDER, RELEVANCE = (2, 0, 1), (1, 0, 2)  # the relevance by position is 2, 1, 0


@pytest.mark.parametrize(
    ("name", "signal"),
    [
        ("top 2", (2, 1)),
        ("first click", 0),
        ("position 2", 1),
        ("preference 1 2", 1),
        ("preference 3 1", -1),
        ("noisy clicks 1 3/4 1/4", {(1,): Fraction(3, 4), (0,): Fraction(1, 4)}),
    ],
)
def test_what_is_revealed(name: str, signal: Any) -> None:
    model = signal_models.read(name)
    assert model.name == name
    assert model(ORDER, RELEVANCE) == signal
    assert signal_models.read(model) is model


def test_first_click_of_nobody_and_noisy_clicks_of_two() -> None:
    assert signal_models.first_click()((0, 1), (0, 0)) == "none"
    chances = signal_models.noisy_clicks(2, "3/4", "1/8")((1, 0), (1, 0))
    assert chances == {
        (1, 1): Fraction(3, 32),
        (1, 0): Fraction(1, 32),
        (0, 1): Fraction(21, 32),
        (0, 0): Fraction(7, 32),
    }


@pytest.mark.parametrize(
    ("measure", "feedback", "class_"),
    [
        ("precision@1", "position 1", "easy"),  # a bandit
        ("precision@1", "position 2", "easy"),  # equally good orders show the label of any other item
        ("sum_loss", "position 3", "hard"),
        ("precision@1", "noisy clicks 1 4/5 1/5", "easy"),
        ("precision@1", "noisy clicks 1 1/2 1/2", "hopeless"),  # clicks that say nothing
        ("precision@1", "preference 1 2", "easy"),
        ("dcg", "preference 1 2", "easy"),
        ("dcg", "first click", "hard"),
        ("dcg", "noisy clicks 2 9/10 0", "easy"),
        ("ndcg", "noisy clicks 1 4/5 1/5", "hopeless"),
    ],
)
def test_classes_are_proved_and_saved(measure: str, feedback: str, class_: str) -> None:
    game = games.ranking_game(measure=measure, n_items=3, feedback=feedback)
    verdict = games.classify(game)
    assert (verdict.class_, verdict.route, verdict.feedback, verdict.k) == (class_, "cells", feedback, None)
    assert games.verify(game, verdict)
    again = from_plain(json.loads(json.dumps(as_plain(verdict))))
    assert again == verdict
    assert games.verify(game, again)
    assert any("best somewhere" in line for line in games.explain(verdict))
    with pytest.raises(games.Refused, match="the verdict is about"):
        games.verify(game, dataclasses.replace(verdict, feedback="position 7"))
    with pytest.raises(games.Refused):
        games.verify(game, dataclasses.replace(verdict, class_="easy" if class_ != "easy" else "hard"))
    with pytest.raises(games.Refused, match="no known structure"):
        games.verify(game, dataclasses.replace(verdict, route="structure"))


def test_noise_that_can_be_inverted_does_not_change_the_class() -> None:
    for measure in ("dcg", "ndcg", "err", "auc", "precision@2"):
        for k in (1, 2):
            exact = games.classify(games.ranking_game(measure=measure, n_items=3, k=k)).class_
            noisy = games.ranking_game(
                measure=measure, n_items=3, feedback=signal_models.noisy_clicks(k, "2/3", "1/7")
            )
            assert games.classify(noisy).class_ == exact


def test_top_k_by_name_is_top_k() -> None:
    named = games.ranking_game(measure="dcg", n_items=4, feedback="top 2")
    assert (named.k, named.feedback, named.is_known) == (2, None, True)
    assert games.classify(named) == games.classify(games.ranking_game(measure="dcg", n_items=4, k=2))


def test_functions_reveal_what_they_like() -> None:
    def everything(order: tuple[int, ...], relevance: tuple[int, ...]) -> Any:
        return relevance

    game = games.ranking_game(measure="ndcg", n_items=3, feedback=everything)
    verdict = games.classify(game)
    assert (verdict.class_, verdict.feedback) == ("easy", "everything")
    assert games.verify(game, verdict)
    with pytest.raises(ValueError, match="'everything' has no known structure"):
        games.classify(game, route="structure")


@pytest.mark.parametrize(
    ("feedback", "complaint"),
    [
        ("second click", "feedback must be one of top, first click"),
        ("position 9", "needs 9 positions, got n_items=3"),
        ("position", "feedback 'position' has other numbers than"),
        ("position x", "j must be a whole number"),
        ("noisy clicks 1 3/2", "relevant must be a chance from 0 to 1, got 3/2"),
        ("preference 1 1", "second must be another position"),
        (7, "feedback must be a name or a function"),
    ],
)
def test_unknown_feedback_is_refused(feedback: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        games.ranking_game(measure="dcg", n_items=3, feedback=feedback)


def test_k_and_feedback_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="exclude each other"):
        games.ranking_game(measure="dcg", n_items=3, k=1, feedback="first click")
