"""Lists of some items only: candidates, excluded and pinned items, fewer positions; for all served rankers."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from rankloop.serving.admission import Conflict, RequestError
from rankloop.serving.api import ActivateRequest, ItemsRequest
from rankloop.serving.engine import Engine
from rankloop.serving.log import records
from rankloop.serving.log.candidate_lists import feedback_length
from rankloop.serving.log.records import Choice, Decision
from rankloop.serving.registry import has_items, served
from rankloop.serving.views import decision_answer, ranker_answer
from tests.serving.service import INSTEAD, ITEMS, Clock, adds_up, answer, create, play, rank, running

OWN = [name for name in sorted(served()) if has_items(name)]
REFUSE = {"FeedExp3", "PMED"}
FEATURES = [name for name in sorted(served()) if not has_items(name)]
SIX = [*ITEMS, "swim"]


async def _make(engine: Engine, algorithm: str, **more: Any) -> None:
    own = has_items(algorithm)
    parameters = INSTEAD.get(algorithm, {} if own else {"n_features": 3})
    await create(engine, "any", algorithm=algorithm, parameters=parameters | more, items=SIX if own else None)


async def _tell(engine: Engine, decision_id: str, rng: np.random.Generator) -> Any:
    state, ranker = await engine.rankers["any"].decision_state(decision_id), engine.rankers["any"].fold.ranker
    assert state is not None
    kind = ranker.feedback.kind
    values = rng.integers(0, 2, feedback_length(ranker, state.decision)).astype(float).tolist()
    return await answer(engine, decision_id, name="any", **{"relevance": None, kind: values})


@pytest.mark.parametrize("algorithm", [name for name in OWN if name not in REFUSE])
def test_every_ranker_with_items_takes_candidates(algorithm: str) -> None:
    async def story() -> None:
        rng = np.random.default_rng(3)
        async with running() as engine:
            await _make(engine, algorithm)
            fold = engine.rankers["any"].fold
            clicks = fold.ranker.feedback.kind == "clicks"
            assert (await ranker_answer(engine.rankers["any"])).candidates == "yes"
            for i in range(24):
                names = [str(name) for name in rng.permutation(SIX)]
                asked: dict[str, Any] = [
                    {"items": names[:4]},
                    {"exclude": [*names[:2], "never there"]},
                    {"items": names[:5], "exclude": names[:1], "pinned": {1: names[5]}},
                    {},
                    {"items": names[:2]},
                    {"n_positions": 2, "pinned": {1: names[0]}} if clicks else {"exclude": names[:3]},
                ][i % 6]
                if "pinned" in asked and fold.ranker.stops_at_click:
                    asked = {"items": names[:3], "pinned": {3: names[4]}}
                pinned = asked.get("pinned", {})
                shown = await rank(engine, f"d{i}", "any", **asked)
                free = set(asked.get("items", SIX)) - set(asked.get("exclude", ())) - set(pinned.values())
                length = min(asked.get("n_positions", 6), len(free) + len(pinned))
                assert len(set(shown.items)) == len(shown.items) == length
                assert set(shown.items) <= free | set(pinned.values())
                assert {j: shown.items[j] for j in pinned} == pinned
                story = await decision_answer(engine.rankers["any"], f"d{i}")
                assert set(story.candidates or SIX) == free
                assert story.pinned == {str(place): name for place, name in pinned.items()}
                if shown.propensities is not None:
                    assert all(0 < chance <= 1 for chance in shown.propensities)
                    assert all(shown.propensities[j] == 1.0 for j in pinned)
                told = await _tell(engine, f"d{i}", rng)
                assert (told.status, told.learnt) == ("accepted", True), (i, asked)
                if i == 11:
                    await engine.snapshot("any")
            assert fold.rounds == 24
            await adds_up(engine, "any")

    play(story)


@pytest.mark.parametrize("algorithm", sorted(REFUSE))
def test_a_ranker_of_whole_lists_says_so_when_it_is_created(algorithm: str) -> None:
    async def story() -> None:
        async with running() as engine:
            await _make(engine, algorithm)
            why = (await ranker_answer(engine.rankers["any"])).candidates
            assert why == engine.rankers["any"].fold.ranker.no_candidates != ""
            for asked in (
                {"items": SIX[:3]},
                {"exclude": SIX[:1]},
                {"n_positions": 2},
                {"pinned": {0: "tea"}},
            ):
                with pytest.raises(RequestError, match=why) as refused:
                    await rank(engine, None, "any", **asked)
                assert refused.value.field in asked
            assert len((await rank(engine, None, "any", items=SIX[::-1])).items) == 6

    play(story)


@pytest.mark.parametrize("algorithm", FEATURES)
def test_a_list_with_features_may_leave_out_and_pin_items(algorithm: str) -> None:
    async def story() -> None:
        rng = np.random.default_rng(5)
        async with running() as engine:
            await _make(engine, algorithm)
            fold = engine.rankers["any"].fold
            top = fold.ranker.feedback.length(20)
            assert (await ranker_answer(engine.rankers["any"])).candidates == "yes"
            place = 12 if fold.ranker.stops_at_click else 1
            for i in range(6):
                names = [f"n{j}" for j in range(12)]
                features = (rng.random((12, 3)) / 3).tolist()
                asked = [
                    {"exclude": ["n3", "n4", "other"]},
                    {"pinned": {place: "n5" if place < 12 else "advert"}},
                    {"n_positions": 11} if top < 11 else {"exclude": ["n0"]},
                ][i % 3]
                shown = await rank(engine, f"d{i}", "any", items=names, features=features, **asked)
                assert not {"n3", "n4"} & set(shown.items) or "exclude" not in asked or i % 3 == 2
                if "pinned" in asked:
                    assert shown.items[place] == asked["pinned"][place]
                told = await _tell(engine, f"d{i}", rng)
                assert (told.status, told.learnt) == ("accepted", True)
            await engine.snapshot("any")
            await adds_up(engine, "any")

    play(story)


@pytest.mark.parametrize(
    ("asked", "field", "words"),
    [
        ({"items": ["walk", "golf"]}, "items", "'golf' is not an item"),
        ({"items": ["walk", "walk"]}, "items", "must not repeat"),
        ({"pinned": {0: "golf"}}, "pinned", "'golf' is not an item"),
        ({"pinned": {0: "tea", 1: "tea"}}, "pinned", "must not repeat"),
        ({"pinned": {-1: "tea"}}, "pinned", "positions from 0 on, got -1"),
        ({"pinned": {6: "tea"}}, "pinned", "below 3, the length of this list, got 6"),
        ({"pinned": {0: "tea"}, "exclude": ["tea"]}, "pinned", "both name 'tea'"),
        ({"exclude": SIX}, "exclude", "no item is left"),
        ({"items": []}, "items", "no item is left"),
        ({"n_positions": 4}, "n_positions", "at most 3, for which this ranker was created, got 4"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_written(
    asked: dict[str, Any], field: str, words: str
) -> None:
    async def story() -> None:
        async with running() as engine:
            await _make(engine, "FTRLPBM", n_positions=3)
            with pytest.raises(RequestError, match=words) as refused:
                await rank(engine, "d", "any", **asked)
            assert refused.value.field == field
            assert engine.rankers["any"].fold.applied == 1

    play(story)


def test_what_a_ranker_learns_from_must_be_shown_by_itself() -> None:
    async def story() -> None:
        async with running() as engine:
            await _make(engine, "FTPL")
            with pytest.raises(RequestError, match="learns from the first 6 of these items") as refused:
                await rank(engine, "d", "any", n_positions=3)
            assert refused.value.field == "n_positions"
            await create(engine, "top", algorithm="TopFTRL", items=SIX)
            shown = await rank(engine, "d", "top", n_positions=3, pinned={0: "tea"})
            with pytest.raises(RequestError, match="must have 2 values"):  # down to the first that it chose
                await answer(engine, "d", name="top", relevance=[1.0])
            assert (await answer(engine, "d", name="top", relevance=[0.0, 1.0])).learnt
            gains = engine.rankers["top"].fold.ranker.state.G_hat
            assert int(np.argmax(gains)) == SIX.index(shown.items[1])
            await create(engine, "read", algorithm="CascadeKLUCB", items=SIX)
            with pytest.raises(RequestError, match="stop at the first click"):
                await rank(engine, None, "read", pinned={0: "tea"})

    play(story)


def test_a_list_that_is_all_pinned_teaches_nothing() -> None:
    async def story() -> None:
        async with running() as engine:
            await _make(engine, "FTRLPBM", n_positions=2)
            before = engine.rankers["any"].fold.ranker.state_arrays()
            shown = await rank(engine, "d", "any", pinned={0: "tea", 1: "nap"})
            assert (shown.items, shown.propensities) == (["tea", "nap"], [1.0, 1.0])
            told = await answer(engine, "d", name="any", relevance=None, clicks=[1, 0])
            assert (told.status, told.learnt) == ("accepted", False)
            for name, value in engine.rankers["any"].fold.ranker.state_arrays().items():
                assert np.array_equal(value, before[name])
            await adds_up(engine, "any")

    play(story)


def test_the_same_again_is_a_duplicate_and_anything_else_a_conflict() -> None:
    async def story() -> None:
        async with running() as engine:
            await _make(engine, "PBMTS", n_positions=3)
            asked = {"items": SIX[:4], "exclude": ["walk"], "n_positions": 2, "pinned": {1: "nap"}}
            first = await rank(engine, "d", "any", **asked)
            again = await rank(engine, "d", "any", **asked)
            assert (again.items, again.duplicate) == (first.items, True)
            for other in ({"items": SIX[:5]}, {"exclude": []}, {"n_positions": 3}, {"pinned": {0: "nap"}}):
                with pytest.raises(Conflict):
                    await rank(engine, "d", "any", **(asked | other))
            await adds_up(engine, "any")

    play(story)


def test_feedback_on_candidates_counts_after_a_change_of_other_items() -> None:
    async def story() -> None:
        async with running() as engine:
            await _make(engine, "FTRLPBM", n_positions=2)
            await rank(engine, "kept", "any", items=["walk", "tea", "nap"])
            await rank(engine, "lost", "any", items=["walk", "swim"])
            await engine.change_items("any", ItemsRequest(add=["read"], retire=["swim", "music"]))
            kept = await answer(engine, "kept", name="any", relevance=None, clicks=[1, 0])
            lost = await answer(engine, "lost", name="any", relevance=None, clicks=[1, 0])
            assert (kept.status, kept.learnt, lost.status, lost.learnt) == ("accepted", True, "late", False)
            assert engine.rankers["any"].fold.rounds == 1
            await adds_up(engine, "any")

    play(story)


def test_silence_and_early_feedback_count_for_candidates_too() -> None:
    async def story() -> None:
        clock = Clock()
        async with running(clock=clock) as engine:
            await _make(engine, "FTRLPBM", n_positions=3)
            await answer(engine, "early", name="any", relevance=None, clicks=[0, 1, 0])
            await rank(engine, "early", "any", exclude=["walk"], pinned={1: "tea"})
            await answer(
                engine, "short", name="any", relevance=None, clicks=[0, 1]
            )  # too short, which is found later
            await rank(engine, "short", "any", exclude=["walk"])
            fold = engine.rankers["any"].fold
            assert (fold.rounds, fold.counts.dead) == (1, 1)
            await rank(engine, "silent", "any", items=SIX[:4], pinned={0: "swim"})
            await engine.activate("any", ActivateRequest("silent"))
            clock.seconds += 100_000
            await engine.housekeeping.expire(engine.rankers["any"])
            assert fold.rounds == 2
            await adds_up(engine, "any")

    play(story)


def test_candidates_are_a_row_that_older_rows_are_read_beside() -> None:
    """A list without a choice is written as it always was, and read as one without."""
    shown = Decision(3, 1, b"s", b"k", 99, False)
    assert records.encode(shown).hex() == "9d0301c40173c4016b63c2c090c0c0c0c0c0"
    assert records.read_decision(records.encode(shown)) == shown
    chosen = msgspec.structs.replace(shown, choice=Choice(b"a", b"p"))
    assert records.read_decision(records.encode(chosen)) == chosen
