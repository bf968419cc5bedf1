"""Personalizer's calls on an engine: what becomes a row, what is learnt, what is refused."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import numpy as np
import pytest

from rankloop.serving.engine import Engine
from rankloop.serving.errors import NotFound, RequestError
from rankloop.serving.log.verify import verify
from rankloop.serving.personalizer import choosing
from rankloop.serving.personalizer import messages as m
from tests.serving.service import Clock, create, running

NAME = "personalizer"
ACTIONS = [
    {"id": f"a{i}", "features": [{"taste": taste}]} for i, taste in enumerate(["salty", "sweet", "sour"])
]
PARAMETERS = {"n_features": 64, "k": 1, "max_grade": 1}


def body(**given: Any) -> m.RankBody:
    return msgspec.convert({"actions": ACTIONS} | given, m.RankBody)


def slots_body(**given: Any) -> m.SlotsBody:
    slots = [{"id": "main", "features": [{"size": "large"}], "baselineAction": "a2"}, {"id": "side"}]
    return msgspec.convert({"actions": ACTIONS, "slots": slots} | given, m.SlotsBody)


async def door(engine: Engine, **settings: Any) -> None:
    wanted = {"algorithm": "RTopKF", "parameters": PARAMETERS, "policy": {"silence": "zero"}} | settings
    await create(engine, NAME, **wanted)


def test_the_order_has_every_action_and_excluded_ones_stay() -> None:
    async def go() -> None:
        async with running() as engine:
            await door(engine)
            for i in range(20):
                told = await choosing.choose(engine, NAME, body(eventId=f"e{i}", excludedActions=["a1"]))
                assert told.event_id == f"e{i}"
                assert told.ranking[1] == m.RankedAction("a1", 0.0)
                assert sorted(one.id for one in told.ranking) == ["a0", "a1", "a2"]
                chosen = next(one for one in told.ranking if one.id == told.reward_action_id)
                assert told.reward_action_id == told.ranking[0].id
                assert chosen.probability is not None
                assert 0 < chosen.probability <= 1

    asyncio.run(go())


def test_the_same_event_again_has_the_same_answer() -> None:
    async def go() -> None:
        async with running() as engine:
            await door(engine)
            assert await choosing.choose(engine, NAME, body(eventId="e")) == await choosing.choose(
                engine, NAME, body(eventId="e")
            )
            one = await choosing.choose_for_slots(engine, NAME, slots_body(eventId="s"))
            assert one == await choosing.choose_for_slots(engine, NAME, slots_body(eventId="s"))
            assert (await verify(engine.store, NAME)).holds

    asyncio.run(go())


@pytest.mark.parametrize("length", [120, 121, 256])
def test_long_ids_are_kept_apart(length: int) -> None:
    async def go() -> None:
        async with running() as engine:
            await door(engine)
            for last in "ab":
                event = "e" * (length - 1) + last
                assert (await choosing.choose(engine, NAME, body(eventId=event))).event_id == event
                await choosing.reward(engine, NAME, event, m.RewardBody(1.0))
            assert engine.rankers[NAME].fold.ranker.state.t[0] == 2

    asyncio.run(go())


@pytest.mark.parametrize(
    ("deferred", "silence", "learnt"), [(False, "zero", 1), (True, "zero", 0), (False, None, 0)]
)
def test_no_reward_is_a_reward_of_zero_once_it_was_shown(
    deferred: bool, silence: str | None, learnt: int
) -> None:
    async def go() -> None:
        clock = Clock()
        policy = {"deadline_seconds": 10.0} | ({} if silence is None else {"silence": silence})
        async with running(clock=clock) as engine:
            await door(engine, policy=policy)
            await choosing.choose(engine, NAME, body(eventId="e", deferActivation=deferred))
            clock.seconds += 60
            await engine.housekeeping.expire(engine.rankers[NAME])
            assert engine.rankers[NAME].fold.ranker.state.t[0] == learnt
            assert (await verify(engine.store, NAME)).holds

    asyncio.run(go())


def test_a_deferred_event_is_activated_later() -> None:
    async def go() -> None:
        async with running() as engine:
            await door(engine)
            await choosing.choose(engine, NAME, body(eventId="e", deferActivation=True))
            state = await engine.rankers[NAME].decision_state("e")
            assert state is not None
            assert not state.activated
            await choosing.activate(engine, NAME, "e")
            assert state.activated
            with pytest.raises(NotFound):
                await choosing.activate(engine, NAME, "other")

    asyncio.run(go())


def test_rewards_are_summed_where_the_policy_says_so() -> None:
    async def go() -> None:
        clock = Clock()
        async with running(clock=clock) as engine:
            await door(engine, policy={"deadline_seconds": 10.0, "answers": "sum", "silence": "zero"})
            await choosing.choose(engine, NAME, body(eventId="e"))
            for _ in range(2):
                await choosing.reward(engine, NAME, "e", m.RewardBody(0.25))
            state = await engine.rankers[NAME].decision_state("e")
            assert state is not None
            assert [np.frombuffer(values, "<f8").tolist() for values, _ in state.heard] == [[0.25], [0.25]]

    asyncio.run(go())


def test_a_second_reward_changes_nothing_where_the_first_counts() -> None:
    async def go() -> None:
        async with running() as engine:
            await door(engine)
            await choosing.choose(engine, NAME, body(eventId="e"))
            for value in (1.0, 0.0, -1.0):
                await choosing.reward(engine, NAME, "e", m.RewardBody(value))
            assert engine.rankers[NAME].fold.ranker.state.t[0] == 1

    asyncio.run(go())


def test_slots_get_different_actions_and_their_own_rewards() -> None:
    async def go() -> None:
        async with running() as engine:
            await door(engine)
            exclude = [{"id": "main", "excludedActions": ["a0"]}, {"id": "side"}, {"id": "foot"}]
            for i in range(20):
                given = slots_body(slots=exclude, eventId=f"e{i}", deferActivation=True)
                if i % 2:
                    told = await choosing.choose_for_slots(engine, NAME, slots_body(eventId=f"e{i}"))
                else:
                    # a0 may not stand in the first slot, so it stands in one of the others
                    told = await choosing.choose_for_slots(engine, NAME, given)
                    assert told.slots[0].reward_action_id != "a0"
                    await choosing.activate_slots(engine, NAME, f"e{i}")
                chosen = [one.reward_action_id for one in told.slots]
                assert len(set(chosen)) == len(chosen)
            rewards = msgspec.convert(
                {"reward": [{"slotId": "side", "value": 1}, {"slotId": "main", "value": 0.5}]},
                m.SlotRewardsBody,
            )
            await choosing.reward_slots(engine, NAME, "e0", rewards)
            served = engine.rankers[NAME]
            heard = [await served.decision_state(f"e0#{i}") for i in range(3)]
            assert [one is not None and one.answer is not None for one in heard] == [True, True, False]
            assert all(one is not None and one.activated for one in heard)
            wrong = msgspec.convert({"reward": [{"slotId": "top", "value": 1}]}, m.SlotRewardsBody)
            with pytest.raises(RequestError, match="no slot 'top'"):
                await choosing.reward_slots(engine, NAME, "e0", wrong)
            with pytest.raises(NotFound, match="no event 'e99' with slots"):
                await choosing.activate_slots(engine, NAME, "e99")
            await choosing.choose(
                engine, NAME, body(eventId="f#0")
            )  # the ID that the first slot of f would have
            with pytest.raises(NotFound, match="no event 'f' with slots"):
                await choosing.reward_slots(engine, NAME, "f", rewards)

    asyncio.run(go())


def test_an_apprentice_shows_the_first_action_or_the_slots_own() -> None:
    async def go() -> None:
        async with running() as engine:
            await door(engine, policy={"apprentice": True})
            for i in range(10):
                told = await choosing.choose(engine, NAME, body(eventId=f"e{i}"))
                assert [one.id for one in told.ranking] == ["a0", "a1", "a2"]
            slots = await choosing.choose_for_slots(engine, NAME, slots_body(eventId="s"))
            assert [one.reward_action_id for one in slots.slots] == ["a2", "a0"]

    asyncio.run(go())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"algorithm": "RTop1F", "items": ["a0", "a1"], "parameters": {}}, "cannot answer for Personalizer"),
        ({"parameters": PARAMETERS | {"k": 2}}, "cannot answer for Personalizer"),
    ],
)
def test_rankers_that_do_not_suit_are_refused(change: dict[str, Any], message: str) -> None:
    async def go() -> None:
        async with running() as engine:
            await door(engine, **{"policy": {}} | change)
            with pytest.raises(RequestError, match=message):
                await choosing.choose(engine, NAME, body())

    asyncio.run(go())


def test_clicks_are_zero_or_one() -> None:
    async def go() -> None:
        async with running() as engine:
            await door(engine, parameters=PARAMETERS | {"examination": 1.0}, policy={})
            await choosing.choose(engine, NAME, body(eventId="e"))
            with pytest.raises(RequestError, match="value must be 0 or 1 for RTopKF"):
                await choosing.reward(engine, NAME, "e", m.RewardBody(0.5))
            await choosing.reward(engine, NAME, "e", m.RewardBody(1.0))

    asyncio.run(go())


def test_it_learns_whom_to_show_what() -> None:
    """Salty in the evening, sweet in the morning. Without products with the context it could be right half the time."""

    async def go() -> float:
        rng, right = np.random.default_rng(3), 0
        async with running() as engine:
            await door(engine, parameters=PARAMETERS | {"n_features": 256})
            for i in range(1_200):
                hour, liked = (("evening", "a0"), ("morning", "a1"))[rng.integers(2)]
                told = await choosing.choose(
                    engine, NAME, body(eventId=f"e{i}", contextFeatures=[{"hour": hour}])
                )
                good = told.reward_action_id == liked
                await choosing.reward(engine, NAME, f"e{i}", m.RewardBody(float(good)))
                right += good and i >= 900
        return right / 300

    assert asyncio.run(go()) > 0.75
