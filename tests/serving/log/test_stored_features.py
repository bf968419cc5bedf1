"""Features that are stored in the catalogue: lists by reference, merged with what requests bring, replayed alike."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import numpy as np
import pytest

from rankloop.serving.admission import Conflict, NotFound, RequestError
from rankloop.serving.api import ItemsRequest, Matrix, ResetRequest
from rankloop.serving.engine import Engine
from rankloop.serving.item_counts import item_features, item_table
from rankloop.serving.log import records, stored_features
from rankloop.serving.log.candidate_lists import feedback_length
from rankloop.serving.log.snapshots import revive, take
from rankloop.serving.log.stored_features import features_of
from rankloop.serving.registry import has_items, served
from rankloop.serving.views import explain_answer, ranker_answer
from tests.serving.service import Clock, adds_up, answer, create, play, rank, running

ALL = [name for name in sorted(served()) if not has_items(name)]
SOUND = {
    *("CascadeLinTS", "CascadeLinUCB", "LinTSPBM", "LinUCBPBM"),
    *("ListNet", "PLRank", "CalibratedSquared", "QueryMemory"),
}
NAMES = ["a", "b", "c", "d"]
VECTORS = [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.1, 0.9]]


def packed(rows: Any) -> Matrix:
    array = np.array(rows, "<f4")
    return Matrix(array.shape, array.tobytes())


async def make(engine: Engine, algorithm: str = "LinTSPBM", n_features: int = 2, **more: Any) -> None:
    given = {"parameters": {"n_features": n_features}, "items": NAMES, "features": VECTORS} | more
    await create(engine, "any", algorithm=algorithm, **given)


async def tell(engine: Engine, decision_id: str, values: Any = None) -> Any:
    state, ranker = await engine.rankers["any"].decision_state(decision_id), engine.rankers["any"].fold.ranker
    assert state is not None
    told = [1.0] + [0.0] * (feedback_length(ranker, state.decision) - 1) if values is None else values
    return await answer(engine, decision_id, name="any", **{"relevance": None, ranker.feedback.kind: told})


async def row(engine: Engine, decision_id: str) -> records.Decision:
    found = await engine.store.find("any", "decision", decision_id)
    assert found is not None
    return records.read_decision(found.body)


@pytest.mark.parametrize("algorithm", ALL)
def test_a_list_by_reference_is_the_list_of_the_same_features(algorithm: str) -> None:
    async def story(*, stored: bool) -> tuple[list[Any], str]:
        lists = []
        async with running() as engine:
            await make(engine, algorithm, **({} if stored else {"items": None, "features": None}))
            for i in range(8):
                names = NAMES[: 2 + i % 3]
                features = None if stored else packed(VECTORS[: len(names)])
                more: dict[str, Any] = {"exclude": ["b"], "pinned": {1: "d"}} if i % 4 == 3 else {}
                if i % 4 == 3 and engine.rankers["any"].fold.ranker.stops_at_click:
                    more = {"exclude": ["b"]}
                shown = await rank(engine, f"d{i}", "any", items=names, features=features, **more)
                lists.append((shown.items, shown.propensities))
                decision = await row(engine, f"d{i}")
                assert (decision.stored is not None) == stored == (decision.features is None)
                assert (await tell(engine, f"d{i}")).learnt
                if i == 4:
                    await engine.snapshot("any")
            await adds_up(engine, "any")
            return lists, engine.rankers["any"].fold.learnt().arrays

    assert asyncio.run(story(stored=True)) == asyncio.run(story(stored=False))


def test_what_the_request_adds_follows_what_is_stored() -> None:
    async def story() -> None:
        async with running() as engine:
            await make(engine, n_features=7)
            await rank(
                engine, "d", "any", items=["b", "c"], features=packed([[7.0], [8.0]]), shared=[10.0, 0.5]
            )
            fold = engine.rankers["any"].fold
            expected = [[0, 1, 7, 0, 10, 0, 0.5], [0.5, 0.5, 8, 5, 5, 0.25, 0.25]]
            assert np.array_equal(features_of(fold.stored, await row(engine, "d")), expected)  # type: ignore[arg-type]
            await tell(engine, "d")
            whole = packed(np.ones((2, 7)))
            await rank(engine, "whole", "any", items=["b", "not stored"], features=whole)
            assert (await row(engine, "whole")).candidates == ["b", "not stored"]
            await tell(engine, "whole")
            await adds_up(engine, "any")

    play(story)


@pytest.mark.parametrize(
    ("asked", "field", "words"),
    [
        ({"items": ["a", "z"]}, "items", "'z' has no stored features"),
        ({"features": [[1.0, 2.0]]}, "features", "1 rows of features for 4 items"),
        ({"items": ["a"], "features": [[1.0]]}, "features", "must be 4 columns together, got 3"),
        (
            {"items": ["a"], "shared": [1.0, 2.0]},
            "shared",
            r"shared \(2 x 2\) must be 4 columns together, got 6",
        ),
        ({"items": ["a"], "shared": [float("inf")]}, "shared", "got inf in row 0, column 0"),
        ({"items": ["a"], "shared": [3e38]}, "shared", "shared must be finite, and at most 1e30"),
        ({"items": ["a"]}, "items", "must be 4 columns together, got 2"),
        ({"items": ["a"], "shared": [1.0], "pinned": {0: "z"}}, "pinned", "'z' has no stored features"),
        ({"items": ["a"], "features": [[1.0, float("nan")]]}, "features", "got nan in row 0, column 1"),
    ],
)
def test_a_request_that_does_not_fit_is_refused(asked: dict[str, Any], field: str, words: str) -> None:
    async def story() -> None:
        async with running() as engine:
            await make(engine, n_features=4)
            with pytest.raises(RequestError, match=words) as error:
                await rank(engine, "d", "any", **asked)
            assert error.value.field == field

    play(story)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"add": ["e"]}, "features must have 1 rows, one for each of add and update, got none"),
        ({"add": ["a"], "features": [[1.0, 2.0]]}, "item 'a' is there already"),
        ({"update": ["e"], "features": [[1.0, 2.0]]}, "update must name items that are there, got 'e'"),
        ({"retire": ["e"]}, "retire must name items that are there, got 'e'"),
        ({"add": ["e"], "features": [[1.0]]}, "features must have 2 columns as those that are stored, got 1"),
        ({"add": ["e"], "features": [[1.0, 2.0], [3.0, 4.0]]}, "features must have 1 rows"),
        ({"feature_names": ["x"]}, "feature_names must be 2 names, none twice, got 1"),
    ],
)
def test_a_change_that_cannot_be_made_is_refused(change: dict[str, Any], words: str) -> None:
    async def story() -> None:
        async with running() as engine:
            await make(engine)
            before = engine.rankers["any"].fold.applied
            with pytest.raises(RequestError, match=words):
                await engine.change_items("any", ItemsRequest(**change))
            assert engine.rankers["any"].fold.applied == before

    play(story)


def test_features_are_for_rankers_that_take_them() -> None:
    async def story() -> None:
        async with running() as engine:
            with pytest.raises(RequestError, match="RTop1F takes no features"):
                await create(engine, "other", items=["a"], features=[[1.0]])
            with pytest.raises(RequestError, match="LinTSPBM with 4 items would need"):
                await make(engine, "LinTSPBM", 4_096)
            with pytest.raises(RequestError, match="at most 1 columns, the ranker's n_features, got 2"):
                await make(engine, n_features=1)
            await make(engine)
            with pytest.raises(Conflict):
                await make(engine, features=[[0.0, 0.0]] * 4)
            with pytest.raises(RequestError, match="n_features must be at least 2"):
                await engine.reset("any", ResetRequest({"n_features": 1}))
            await engine.reset("any", ResetRequest({"n_features": 3}))
            assert (await rank(engine, "d", "any", features=[[1.0]] * 4)).items
            await adds_up(engine, "any")

    play(story)


@pytest.mark.parametrize("algorithm", ["LinTSPBM", "PDGD", "ListNet"])
def test_a_list_is_learnt_from_with_the_features_that_it_was_drawn_from(algorithm: str) -> None:
    async def story(*, changes: bool) -> Any:
        clock = Clock()
        async with running(clock=clock) as engine:
            await make(engine, algorithm)
            for i in range(3):
                await rank(engine, f"d{i}", "any", items=["a", "b", "c"])
            if changes:
                await engine.change_items("any", ItemsRequest(update=["a"], features=[[9.0, 9.0]]))
                await engine.change_items("any", ItemsRequest(retire=["b"]))
                await engine.change_items("any", ItemsRequest(add=["b"], features=[[5.0, 5.0]]))
                assert (await rank(engine, "later", "any")).items
                decision = await row(engine, "later")
                found = features_of(engine.rankers["any"].fold.stored, decision)
                assert np.array_equal(found, np.float32([[9, 9], VECTORS[2], VECTORS[3], [5, 5]]))
            for i in range(3):
                assert (await tell(engine, f"d{i}")).learnt
            if changes:
                revived = revive(take(engine.rankers["any"].fold, epoch=1))
                assert revived.state_hash() == engine.rankers["any"].fold.state_hash()
                await adds_up(engine, "any")
            return engine.rankers["any"].fold.learnt().arrays

    assert asyncio.run(story(changes=True)) == asyncio.run(story(changes=False))


def test_replaced_features_are_kept_as_long_as_their_lists_may_be_answered() -> None:
    async def story() -> None:
        clock = Clock()
        async with running(clock=clock) as engine:
            await make(engine, policy={"deadline_seconds": 100.0, "late": "learn"})
            for i in range(3):
                await rank(engine, f"d{i}", "any", items=["a", "b"])
            await engine.change_items("any", ItemsRequest(update=["a"], features=[[9.0, 9.0]]))
            clock.seconds += 150
            await engine.change_items("any", ItemsRequest(update=["a"], features=[[8.0, 8.0]]))
            assert (await tell(engine, "d0")).learnt
            clock.seconds += 20
            await engine.change_items("any", ItemsRequest(update=["a"], features=[[7.0, 7.0]]))
            assert not (await tell(engine, "d1")).learnt
            letters = engine.rankers["any"].fold.dead
            assert "the features that 'a' had in row 2 are no longer kept" in letters[0].why
            await adds_up(engine, "any")

    play(story)


def test_replaced_features_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_features, "REPLACED_BYTES", 3 * 2 * 4)

    async def story() -> None:
        async with running() as engine:
            await make(engine)
            for i in range(5):
                await rank(engine, f"d{i}", "any", items=["a", "b"])
                await engine.change_items("any", ItemsRequest(update=["a"], features=[[9.0, float(i)]]))
            assert [(await tell(engine, f"d{i}")).learnt for i in range(5)] == [
                False,
                False,
                True,
                True,
                True,
            ]
            await engine.snapshot("any")
            await adds_up(engine, "any")

    play(story)


def test_another_replica_finds_the_same_catalogue() -> None:
    async def story() -> None:
        async with running() as engine:
            await make(engine, items=None, features=None)
            with pytest.raises(RequestError, match="needs features, of each item with the request or stored"):
                await rank(engine, "d", "any")
            change = ItemsRequest(add=NAMES, features=packed(VECTORS), feature_names=["x", "y"], event_id="e")
            assert (await engine.change_items("any", change)).status == "accepted"
            assert (await engine.change_items("any", change)).duplicate
            await rank(engine, "d", "any")
            assert len((await engine.store.find("any", "decision", "d")).body) < 300  # type: ignore[union-attr]
            store = engine.store
            async with running(store) as other:
                fold = other.rankers["any"].fold
                assert fold.state_hash() == engine.rankers["any"].fold.state_hash()
                assert (list(fold.stored.present), fold.stored.feature_names) == (NAMES, ["x", "y"])
                assert (await rank(other, "d", "any")).duplicate

    play(story)


def test_rows_from_before_there_were_stored_features_read_as_before() -> None:
    """An older row has all of the memo, with the request at its end."""

    async def story() -> None:
        async with running() as engine:
            await make(engine, items=None, features=None)
            await rank(engine, "d", "any", features=packed(VECTORS))
            decision = await row(engine, "d")
            assert decision.memo == ()
            old = msgspec.structs.replace(decision, memo=(*decision.memo, decision.features))
            state = await engine.rankers["any"].decision_state("d")
            assert state is not None
            state.decision = records.read_decision(records.encode(old))
            assert (await tell(engine, "d")).learnt

    play(story)


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("algorithm", ALL)
def test_a_baseline_is_learnt_from_where_that_is_sound(algorithm: str, stored: bool) -> None:
    """The same as from the list itself, where a list is an observation whoever chose it."""
    baseline = ["c", "a", "d", "b"]

    async def story() -> None:
        async with running() as engine:
            more: dict[str, Any] = {} if stored else {"items": None, "features": None}
            await make(engine, algorithm, policy={"apprentice": True}, **more)
            fold = engine.rankers["any"].fold
            fresh = type(fold.ranker)(n_features=2)
            sound = fold.ranker.learns_others_lists()
            rows = np.array(VECTORS, np.float32)
            for i in range(3):
                asked: dict[str, Any] = {} if stored else {"items": NAMES, "features": packed(VECTORS)}
                shown = await rank(engine, f"d{i}", "any", baseline=baseline, **asked)
                assert shown.items == baseline
                told = await tell(engine, f"d{i}")
                assert told.learnt == sound
                if sound:
                    values = [1.0] + [0.0] * (fresh.feedback.length(4) - 1)
                    fresh.learn_logged(
                        np.array([2, 0, 3, 1]), values, features=fresh.as_request(rows, "shoes", NAMES)
                    )
            assert fold.rounds == 3 * sound
            for name, value in fresh.state_arrays().items():
                np.testing.assert_array_equal(fold.ranker.state_arrays()[name], value)
            said = (await ranker_answer(engine.rankers["any"])).baselines
            assert (said == "yes") == sound
            assert sound == (algorithm in SOUND)
            await adds_up(engine, "any")

    play(story)


def test_stored_features_are_shown_with_names_and_weights() -> None:
    async def story() -> None:
        async with running() as engine:
            await make(engine, feature_names=["fast", "warm"])
            served = engine.rankers["any"]
            for i in range(4):
                shown = await rank(engine, f"d{i}", "any", items=NAMES)
                await tell(engine, f"d{i}", [float(name in ("b", "d")) for name in shown.items])
            told = item_features(served, "d")
            weights = served.fold.ranker.weights_now()
            assert weights is not None
            assert [(one.name, one.weight) for one in told.features] == list(
                zip(["fast", "warm"], weights.tolist(), strict=True)
            )
            np.testing.assert_allclose([one.value for one in told.features], [0.1, 0.9], rtol=1e-6)
            assert (told.item, told.since) == ("d", 1)
            with pytest.raises(NotFound, match="'z' has no stored features"):
                item_features(served, "z")
            table = item_table(served, search="", sort="order", limit=10)
            order = served.fold.ranker.current(np.array(VECTORS, np.float32)).tolist()
            assert [one.item for one in table.items] == [NAMES[i] for i in order]
            assert [one.shown for one in table.items] == [4] * 4
            assert sum(one.positive for one in table.items) == 8
            reasons = (await explain_answer(served, "d3")).items
            assert all("'warm' weighs most" in one.words for one in reasons if one.item in ("b", "d"))
            await rank(engine, "own", "any", items=["other"], features=packed([[1.0, 1.0]]))
            assert item_table(served, search="", sort="order", limit=10).total == 4

    play(story)
