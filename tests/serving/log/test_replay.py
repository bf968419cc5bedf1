"""How another ranker would have done on a log: unbiased where the two agree, silent where they never do."""

from __future__ import annotations

import numpy as np
import pytest

from rankloop.base import Ranking
from rankloop.rankers import FTRLPBM, RTop1F
from rankloop.serving.engine import Engine
from rankloop.serving.log.export import Answered, _chances, _summary, replay
from rankloop.serving.log.records import Decision, Row, pack
from rankloop.serving.log.stored_features import StoredFeatures
from tests.serving.service import ITEMS, answer, create, play, rank, running

CLICKED = {"a": 0.1, "b": 0.3, "c": 0.8}


async def _log(engine: Engine, n: int) -> None:
    rng = np.random.default_rng(1)
    parameters = {"n_positions": 1, "eta": 0.0, "gamma": 1.0}  # every item with the same chance, always
    await create(engine, "log", algorithm="MW", items=list(CLICKED), parameters=parameters)
    for i in range(n):
        shown = await rank(engine, f"d{i}", "log")
        clicks = [float(rng.random() < CLICKED[name]) for name in shown.items]
        await answer(engine, f"d{i}", name="log", relevance=None, clicks=clicks)


@pytest.mark.parametrize("other", ["CascadeKLUCB", "FTRLPBM"])
def test_a_learner_is_estimated_near_what_it_would_earn(other: str) -> None:
    """On a log of random lists a third of the rounds match; both learners come to show c, which is worth 0.8."""

    async def story() -> None:
        async with running() as engine:
            await _log(engine, 900)
            told = await replay(engine.store, "log", other=other, parameters={"n_positions": 1})
            assert told.rounds == 900
            assert told.logged == pytest.approx(0.4, abs=0.06)
            assert 240 < told.matches < 360
            assert told.value is not None
            assert told.low is not None
            assert told.high is not None
            assert told.logged + 0.1 < told.value < 0.85
            assert told.low < told.value < told.high
            again = await replay(engine.store, "log", other=other, parameters={"n_positions": 1})
            assert again == told  # the draws follow from the log alone

    play(story)


@pytest.mark.parametrize(
    ("other", "words"),
    [("FTPL", "learns from relevance, the log .* has clicks"), ("ListNet", "do not take the same requests")],
)
def test_a_ranker_that_cannot_take_the_log_is_refused(other: str, words: str) -> None:
    async def story() -> None:
        async with running() as engine:
            await _log(engine, 1)
            with pytest.raises(ValueError, match=words):
                await replay(engine.store, "log", other=other)

    play(story)


def _answered(decision: Decision) -> Answered:
    return Answered(
        Row(2, 1, "decision", "d", b""), decision, ITEMS[:2], np.array([1.0]), 0.0, StoredFeatures()
    )


def test_propensities_count_and_else_the_chance_of_exploration() -> None:
    shown = np.array([1, 0], "<i4").tobytes()
    exact = Decision(1, 0, shown, b"k", 9, False, np.array([0.25, 0.5]).astype("<f8").tobytes())
    assert _chances(FTRLPBM(n_items=2), _answered(exact), 2).tolist() == [0.25, 0.5]
    explored = Decision(1, 0, shown, b"k", 9, True, memo=(pack(np.array([0.125])),))
    assert _chances(RTop1F(n_items=2), _answered(explored), 1).tolist() == [0.125]
    greedy = Decision(1, 0, shown, b"k", 9, False, memo=(pack(np.array([0.0])),))
    assert _chances(RTop1F(n_items=2), _answered(greedy), 1) is None
    assert _chances(FTRLPBM(n_items=2), _answered(greedy), 1) is None


def test_the_chance_of_exploration_is_of_rounds_that_explored() -> None:
    ranker = RTop1F(n_items=3)
    rng = np.random.default_rng(1)
    chances = [
        (shown.explored, ranker.exploration_chance(shown))
        for shown in (ranker.rank(rng=rng) for _ in range(50))
    ]
    assert {explored for explored, _ in chances} == {True, False}
    for explored, chance in chances:
        assert (chance is not None and 0 < chance <= 1) == explored
    assert FTRLPBM(n_items=2).exploration_chance(Ranking(np.arange(2))) is None


def test_without_any_match_there_is_no_estimate() -> None:
    told = _summary("a", "b", np.zeros(3), np.zeros(3), np.ones(3), 0)
    assert (told.logged, told.value, told.low) == (1.0, None, None)
    assert _summary("a", "b", np.zeros(0), np.zeros(0), np.zeros(0), 0).value is None
    half = _summary("a", "b", np.array([2.0, 0.0]), np.array([2.0, 0.0]), np.array([1.0, 0.0]), 1)
    assert half.value == 1.0  # self-normalised
