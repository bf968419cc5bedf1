"""The advice: what is measured decides, every answer can be built, and unusual questions get a sentence."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest

import rankloop
from rankloop import games, rankers
from rankloop.advice import CANDIDATES, Question, World, worlds
from tests.cli.call import call, refused

SETTINGS = [
    *(("top", {"measure": measure}) for measure in ("dcg", "sum_loss", "precision@3", "ndcg", "auc")),
    ("top", {"k": 2}),
    ("top", {"features": True}),
    ("labels", {}),
    ("labels", {"features": True}),
    ("clicks", {"features": True}),
    ("clicks", {"features": True, "repeats": True}),
    ("clicks", {}),
    ("clicks", {"n_items": 300, "n_positions": 10}),
    ("clicks", {"n_positions": 3, "examination": (1.0, 0.5, 0.2)}),
    ("clicks", {"replicas": True}),
]


def test_every_answer_can_be_built_and_ranks() -> None:
    for (feedback, more), users in itertools.product(SETTINGS, ("stay", "change", "unknown")):
        told = rankloop.advise(feedback, users=users, **more)  # type: ignore[arg-type]
        features = np.zeros((4, 20)) if told.question.features else None
        for one in (told, told.runner_up):
            if one is not None:
                made = one.build()
                assert type(made).__name__ == one.ranker
                made.rank(made.as_request(features, "q", range(4)), rng=np.random.default_rng(1))
                assert one.call in str(told)
        assert told.guarantee in str(told)


def test_every_candidate_has_arguments_of_its_ranker() -> None:
    # Whether or not it is the answer to any question today.
    for one in CANDIDATES:
        asked = Question(feedback=one.feedback, features=one.features, examination=(1.0, 0.5), n_positions=2)
        if not one.unfit(asked):
            getattr(rankers, one.ranker)(**one.arguments(asked))


@pytest.mark.parametrize("users", ["stay", "change", "unknown"])
@pytest.mark.parametrize("feedback", ["top", "clicks"])
def test_nobody_who_fits_does_better_in_the_worlds_that_decide(feedback: str, users: str) -> None:
    told = rankloop.advise(feedback, users=users)
    decisive = [
        world
        for world in worlds()
        if (world.feedback, world.features, world.n_items) == (feedback, False, 10)
        and world.measure == "dcg"
        and users in (world.users, "unknown")
    ]
    worst = {
        one.label: max(world.share(one.label) for world in decisive)
        for one in CANDIDATES
        if one.feedback == feedback and not one.features and not one.unfit(told.question)
        if one.anybody or users == "stay"
    }
    assert told.share == min(worst.values())


def test_every_candidate_was_played_where_it_can_be_advised() -> None:
    for world, one in itertools.product(worlds(), CANDIDATES):
        if (one.feedback, one.features) == (world.feedback, world.features):
            asked = Question(
                feedback=one.feedback,
                features=world.features,
                n_items=world.n_items,
                measure=world.measure,
                repeats=world.repeats,
            )
            assert one.label in world.results or one.unfit(asked), (world.name, one.label)
            assert hasattr(rankers, one.ranker)


def test_a_share_is_what_a_random_order_loses() -> None:
    less = World(
        "a",
        "top",
        False,
        "stay",
        "dcg",
        10,
        100,
        2,
        "less",
        "regret",
        {"Uniform": (50.0, 1.0), "X": (5.0, 1.0)},
    )
    more = World(
        "b", "top", True, "stay", "ndcg", 10, 100, 2, "more", "NDCG", {"Uniform": (0.5, 0.0), "X": (0.9, 0.0)}
    )
    assert less.share("X") == pytest.approx(0.1)
    assert more.share("X") == pytest.approx(0.2)
    assert less.share("Y") == float("inf")


def test_a_measure_that_cannot_be_learnt_is_replaced_in_words() -> None:
    told = rankloop.advise("top", measure="ndcg", n_items=8)
    assert games.classify(games.ranking_game(measure="ndcg", n_items=8, k=1)).class_ == "hopeless"
    assert told.arguments["measure"] == "dcg"
    assert "Nobody can learn ndcg" in str(told)
    assert rankloop.advise("top", measure="dcg").notes == ()


def test_days_are_told() -> None:
    assert "about 100 days" in str(rankloop.advise("clicks", per_day=1_000))
    assert "about a day" in str(rankloop.advise("clicks", per_day=100_000))
    assert "about 27 years" in str(rankloop.advise("clicks", per_day=10))


def test_bad_answers_are_refused_by_name() -> None:
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("likes", {}, "feedback"),
        ("clicks", {"users": "some"}, "users"),
        ("clicks", {"n_items": 0}, "n_items"),
        ("clicks", {"n_items": 3, "n_positions": 4}, "n_positions"),
        ("top", {"n_items": 3, "k": 4}, "k must be a whole number from 1 to 3, got 4"),
        ("clicks", {"n_positions": 3, "examination": (1.0,)}, "examination must have 3"),
        ("clicks", {"n_positions": 1, "examination": (1.5,)}, "examination"),
        ("top", {"measure": "fame"}, "fame"),
        ("clicks", {"repeats": True}, "repeats is for clicks on documents"),
        ("top", {"features": True, "repeats": True}, "repeats is for clicks on documents"),
    ]
    for feedback, more, words in wrong:
        with pytest.raises(ValueError, match=words):
            rankloop.advise(feedback, **more)


def test_known_examination_opens_more_rankers() -> None:
    labels = {one.label for one in CANDIDATES if not one.unfit(Question(feedback="clicks"))}
    assert "PBMPIE" not in labels
    assert rankloop.advise("clicks", replicas=True, users="stay").ranker != "PMED"


def test_late_feedback_and_items_that_come_and_go_are_asked_about() -> None:
    late = rankloop.advise("clicks", users="stay", late=True)
    assert "clicks, late" in str(late)
    for told in (late, late.runner_up):
        assert told is not None
        assert told.ranker not in ("GRAB", "PBMPIE")  # the same list again until feedback comes
    coming = rankloop.advise("clicks", users="stay", arrivals=True)
    assert coming.ranker == rankloop.advise("clicks", users="change").ranker
    words = ["advise", "--feedback", "clicks", "--users", "stay", "--json"]
    assert json.loads(call(*words, "--late", "--arrivals").output)["ranker"] == coming.ranker


def test_queries_that_repeat_are_remembered() -> None:
    told = rankloop.advise("clicks", features=True, repeats=True)
    assert told.ranker == "QueryMemory"
    assert "of queries that repeat" in str(told)
    assert rankloop.advise("clicks", features=True).ranker != "QueryMemory"
    words = ["advise", "--feedback", "clicks", "--users", "stay", "--features", "--repeats", "--json"]
    assert json.loads(call(*words).output)["ranker"] == "QueryMemory"


def test_the_command_in_words_and_as_json() -> None:
    told = call("advise", "--feedback", "clicks", "--users", "unknown", "--items", "12").output
    assert told.startswith("Take rankers.")
    assert "Next best" in told
    words = ["advise", "--feedback", "clicks", "--users", "stay", "--json"]
    known = json.loads(call(*words, "--examination", "1,0.5").output)
    assert known["arguments"]["n_positions"] == 2
    assert known["next_best"]["ranker"] != known["ranker"]
    documents = json.loads(call(*words, "--features", "--n-features", "136").output)
    assert documents["arguments"]["n_features"] == 136


def test_what_is_missing_is_asked_for() -> None:
    for arguments, words in (
        ("--users stay", "give --feedback: top, clicks, labels"),
        ("--feedback clicks", "give --users: stay, change, unknown"),
        ("--feedback likes", "feedback must be one of 'top', 'clicks', 'labels', got 'likes'"),
        ("--feedback clicks --users stay --examination 1;2", "--examination must be numbers"),
    ):
        assert words in refused("advise", *arguments.split())
