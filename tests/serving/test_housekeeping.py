"""What goes on beside the requests costs nothing where nothing is due."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

import numpy as np
import pytest

from rankloop.serving.api import ActivateRequest
from rankloop.serving.housekeeping import alerts_of
from rankloop.serving.http.app import App
from rankloop.serving.log.fold import Fold
from rankloop.serving.log.records import Config, Policy, PolicyChange, Row
from rankloop.serving.stores.contract import Due
from tests.serving.in_process import ask
from tests.serving.memory_store import MemoryStore
from tests.serving.service import Clock, adds_up, answer, create, play, rank, running


class Counting(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()

    async def read(self, ranker: str, *, after: int, limit: int) -> list[Row]:
        self.asked["read"] += 1
        return await super().read(ranker, after=after, limit=limit)

    async def due(self, ranker: str, **where: Any) -> Due:
        self.asked["due"] += 1
        return await super().due(ranker, **where)


def test_rankers_with_open_lists_are_not_read_again_until_one_is_due() -> None:
    async def story() -> None:
        clock, store = Clock(), Counting()
        async with running(store, clock=clock) as engine:
            names = [f"r{i}" for i in range(20)]
            for name in names:
                await create(engine, name, policy={"deadline_seconds": 60})
                await rank(engine, "open", name=name)
                clock.seconds += 1
            await engine.housekeeping.tick()
            assert store.asked["due"] == 20  # each was looked at once
            store.asked.clear()
            for _ in range(20):
                await engine.housekeeping.tick()
            assert store.asked == {}
            clock.seconds += 40.5  # the first one's minute is over
            await engine.housekeeping.tick()
            assert [engine.rankers[name].fold.counts.expired for name in names] == [1] + [0] * 19
            assert store.asked["due"] <= 2
            clock.seconds += 60
            await engine.housekeeping.tick()
            assert [engine.rankers[name].fold.counts.expired for name in names] == [1] * 20

    play(story)


def test_what_is_answered_in_time_does_not_expire_and_the_rest_does_once() -> None:
    async def story() -> None:
        clock, store = Clock(), Counting()
        async with running(store, clock=clock) as engine:
            await create(engine, algorithm="FTRLPBM", policy={"deadline_seconds": 60, "parking_seconds": 5})
            clicks = {"relevance": None, "clicks": [1.0] + [0.0] * 4}
            await answer(engine, "early", **clicks)
            for name in ("early", "answered", "seen", "unseen"):
                await rank(engine, name)
            await answer(engine, "answered", **clicks)
            await engine.activate("unwind", ActivateRequest("seen"))
            clock.seconds += 61
            for _ in range(3):
                await engine.housekeeping.tick()
            rows = await store.read("unwind", after=0, limit=99)
            assert [row.decision for row in rows if row.kind == "expire"] == ["seen", "unseen"]
            assert engine.rankers["unwind"].fold.counts.learnt == 3
            await adds_up(engine)

    play(story)


# Alerts: begun and ended in the messages, on the page, in /readyz and in the metrics; and none without reason.

MINUTE = 60_000
HOUR = 60 * MINUTE


def _lists(fold: Fold, first: int, last: int, *, explored: int = 2, answered: int = 2, late: int = 0) -> None:
    """Ten lists a minute, of which so many explore, are answered within a second, and get late feedback."""
    for at in range(first, last, MINUTE):
        for i in range(10):
            seq = at // MINUTE * 10 + i + 1
            fold.series.decided(seq, at, explored=i < explored)
            if i < answered:
                fold.series.answered(seq, at, reward=1.0, delay=1.0, estimate={})
            if i < late:
                fold.series.was_late(seq, at)


def _fold() -> Fold:
    return Fold(Config("FTPL", 1, ["a", "b"]))


def _kinds(fold: Fold, now: int) -> list[str]:
    return list(alerts_of(fold, now=now))


def test_nothing_is_told_while_all_is_as_usual() -> None:
    fold = _fold()
    assert alerts_of(fold, now=0) == {}
    _lists(fold, 0, 12 * HOUR)
    assert _kinds(fold, 12 * HOUR) == []
    assert _kinds(fold, 20 * HOUR) == []  # nobody asks for lists: nothing to tell


def test_exploration_collapses() -> None:
    fold = _fold()
    _lists(fold, 0, 10 * HOUR)
    _lists(fold, 10 * HOUR, 11 * HOUR, explored=0)
    ((kind, sentence),) = alerts_of(fold, now=11 * HOUR).items()
    assert kind == "exploration"
    assert sentence == "0 of the last hour's 600 lists explored, before it were 20.0%"
    _lists(fold, 11 * HOUR, 12 * HOUR)
    assert _kinds(fold, 12 * HOUR) == []


def test_feedback_stops() -> None:
    fold = _fold()
    _lists(fold, 0, 10 * HOUR)
    _lists(fold, 10 * HOUR, 11 * HOUR, answered=0)
    assert _kinds(fold, 11 * HOUR) == ["feedback"]
    fold.frozen = True  # nothing is learnt then, and that is meant
    assert _kinds(fold, 11 * HOUR) == []


def test_feedback_that_takes_hours_is_not_missed_after_one() -> None:
    fold = _fold()
    for hour in range(10):
        for i in range(100):
            seq = hour * 100 + i + 1
            fold.series.decided(seq, hour * HOUR + i, explored=False)
            fold.series.answered(seq, hour * HOUR + i, reward=1.0, delay=7_200.0, estimate={})
    _lists(fold, 10 * HOUR, 11 * HOUR, explored=0, answered=0)
    assert _kinds(fold, 11 * HOUR) == []


def test_answers_come_late() -> None:
    fold = _fold()
    _lists(fold, 0, HOUR, answered=2, late=3)
    assert _kinds(fold, HOUR) == ["late"]
    fold = _fold()
    _lists(fold, 0, HOUR, answered=3, late=2)
    assert _kinds(fold, HOUR) == []


def test_a_new_ranker_explores_less_and_less_without_an_alert() -> None:
    fold = _fold()
    _lists(fold, 0, HOUR, explored=10)
    _lists(fold, HOUR, 3 * HOUR, explored=0)
    assert _kinds(fold, 3 * HOUR) == []


def test_exploration_that_a_change_of_policy_ended_is_no_alert() -> None:
    fold = _fold()
    _lists(fold, 0, 10 * HOUR)
    _lists(fold, 10 * HOUR, 11 * HOUR, explored=0)
    fold.policies.change(10 * 600 + 1, PolicyChange("less", Policy(exploration_cap=0.0)))
    assert _kinds(fold, 11 * HOUR) == []


@pytest.mark.parametrize(("own", "other", "found"), [(0.2, 0.8, ["holdout"]), (0.8, 0.2, []), (0.5, 0.5, [])])
def test_the_baseline_beats_the_ranker(own: float, other: float, found: list[str]) -> None:
    fold, rng = _fold(), np.random.default_rng(5)
    _lists(fold, 0, HOUR)
    for i in range(800):
        fold.trial.count(float(rng.random() < (other if i % 2 else own)), 0.5, shows_ranker=not i % 2)
    alerts = alerts_of(fold, now=HOUR)
    assert list(alerts) == found
    for sentence in alerts.values():
        assert sentence.startswith(
            "the baseline is better: over 800 lists the lift in mean reward is between -0.7"
        )


def test_few_lists_do_not_tell_which_is_better() -> None:
    fold = _fold()
    _lists(fold, 0, HOUR)
    assert _kinds(fold, HOUR) == []
    for _ in range(4):
        fold.trial.count(0.0, 0.5, shows_ranker=True)
    assert _kinds(fold, HOUR) == []
    for _ in range(4):
        fold.trial.count(1.0, 0.5, shows_ranker=False)
    assert _kinds(fold, HOUR) == []


def test_an_alert_is_told_everywhere_and_ends(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        clock = Clock(start=3_600.0)
        async with running(clock=clock) as engine:
            app = App(engine)
            await create(engine)
            _lists(engine.rankers["unwind"].fold, 0, HOUR, answered=0, late=5)
            with caplog.at_level(logging.WARNING, logger="rankloop.serving"):
                await engine.housekeeping.tick()
            sentence = "ranker 'unwind': 300 answers of the last hour came late, and 0 in time"
            assert "alert late of ranker 'unwind': 300 answers" in caplog.text
            assert sentence in (await ask(app, "GET", "/readyz"))[1]
            assert (await ask(app, "GET", "/v1/rankers"))[1]["notices"] == [sentence]
            metrics = (await ask(app, "GET", "/metrics"))[1]
            assert 'rankloop_alert{alert="late",ranker="unwind"} 1.0' in metrics
            assert 'rankloop_alert{alert="feedback",ranker="unwind"} 0.0' in metrics
            trial = engine.rankers["unwind"].fold.trial
            for i in range(600):
                trial.count(float(i % 2), 0.5, shows_ranker=not i % 2)
            with caplog.at_level(logging.WARNING, logger="rankloop.serving"):
                engine.housekeeping.alerts.look(engine)
            assert (
                "alert holdout of ranker 'unwind': the baseline is better: over 600 lists the lift"
                in caplog.text
            )
            metrics = (await ask(app, "GET", "/metrics"))[1]
            assert 'rankloop_alert{alert="holdout",ranker="unwind"} 1.0' in metrics
            assert 'rankloop_lift{bound="high",ranker="unwind"} -0.' in metrics
            clock.seconds += 7_200
            with caplog.at_level(logging.WARNING, logger="rankloop.serving"):
                await engine.housekeeping.tick()
            assert "alert late of ranker 'unwind' is over" in caplog.text
            assert (await ask(app, "GET", "/v1/rankers"))[1]["notices"] == []

    play(story)
