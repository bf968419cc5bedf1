"""Why an item stood where it stood: the row of the list and the state of the ranker, put into words."""

from __future__ import annotations

import numpy as np
import pytest

from rankloop.serving import views
from rankloop.serving.admission import NotFound
from rankloop.serving.api import ItemsRequest
from rankloop.serving.views import explain_answer, state_at
from tests.serving.service import ITEMS, answer, create, play, rank, running


def test_a_list_of_fixed_items() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine, algorithm="TopFTRL", items=ITEMS)
            for i in range(40):
                shown = await rank(engine, f"d{i}")
                await answer(engine, f"d{i}", relevance=[float(shown.items[0] == "tea")])
            served = engine.rankers["unwind"]
            shown = await rank(engine, "some", exclude=["walk"], pinned={2: "nap"})
            told = await explain_answer(served, "some")
            assert (told.as_of, told.model_seq) == (served.fold.applied - 1, served.fold.applied - 1)
            assert told.state == "decision"
            assert [one.item for one in told.items] == shown.items
            assert [one.reason for one in told.items] == ["ranker", "ranker", "pinned", "ranker"]
            assert told.items[2].words == "The request pinned it here."
            current = [name for name in served.fold.current() if name not in {"walk", "nap"}]
            for one in told.items:
                if one.reason == "ranker":
                    assert one.place == current.index(one.item)
                    assert one.propensity is not None
                    assert f"a chance of {one.propensity:.1%}" in one.words
                    assert f"{one.place + 1}" in one.words
            best = next(one for one in told.items if one.item == "tea")
            assert best.words.startswith(
                "The order that the ranker estimated to be best had it in place 1 of 3."
            )
            with pytest.raises(NotFound, match="no decision 'nobody'"):
                await explain_answer(served, "nobody")

    play(story)


@pytest.mark.parametrize("algorithm", ["ListNet", "LinTSPBM", "RTopKF"])
def test_a_list_with_features(algorithm: str) -> None:
    async def story() -> None:
        rng = np.random.default_rng(1)
        async with running() as engine:
            await create(engine, "docs", algorithm=algorithm, parameters={"n_features": 4})
            served = engine.rankers["docs"]
            ranker = served.fold.ranker
            weights = None
            for i in range(12):
                weights = ranker.weights_now()  # which the list is drawn with
                weights = None if weights is None else weights.copy()
                features = rng.random((5, 4)) / 4
                shown = await rank(engine, f"d{i}", "docs", features=features.tolist())
                length = ranker.feedback.length(5)
                values = [float(features[int(name), 2] > 0.12) for name in shown.items][:length]
                await answer(
                    engine, f"d{i}", name="docs", **{"relevance": None, ranker.feedback.kind: values}
                )
            told = await explain_answer(served, "d11")
            assert told.state == "decision"
            assert weights is not None
            assert not np.array_equal(weights, ranker.weights_now())
            for one in told.items:
                row = features.astype(np.float32)[int(one.item)].astype(float)
                assert one.score == pytest.approx(float(row @ weights))
                parts = np.abs(row * weights)
                assert [part.feature for part in one.features] == np.argsort(-parts, kind="stable")[
                    :3
                ].tolist()
                assert one.features[0].part == pytest.approx(
                    row[one.features[0].feature] * weights[one.features[0].feature]
                )
                assert f"Feature {one.features[0].feature} weighs most" in one.words

    play(story)


def test_the_state_of_then_is_folded_again_from_the_nearest_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine, algorithm="TopFTRL", items=ITEMS)
            served = engine.rankers["unwind"]
            then = {}
            for i in range(30):
                then[served.fold.applied] = served.fold.state_hash(), served.fold.current()
                shown = await rank(engine, f"d{i}")
                await answer(engine, f"d{i}", relevance=[float(shown.items[0] == "tea")])
                if i in (9, 19):
                    await engine.snapshot("unwind")
                if i == 14:
                    await engine.change_items("unwind", ItemsRequest(["swim"], ["walk"]))
            for seq, (state_hash, current) in then.items():
                found = await state_at(served, seq)
                assert found is not None
                assert (found.applied, found.state_hash(), found.current()) == (seq, state_hash, current)
            told = await explain_answer(served, "d5")  # "walk" was there then
            assert (told.state, told.as_of) == ("decision", told.model_seq)
            order = then[told.model_seq][1]
            assert {one.item: one.place for one in told.items} == {name: order.index(name) for name in ITEMS}
            assert await state_at(served, 25, most=2) is None  # the snapshot before is 4 rows away
            monkeypatch.setattr(views, "state_at", lambda *_: _nothing())
            told = await explain_answer(served, "d5")
            assert (told.state, told.as_of) == ("present", served.fold.applied)
            assert any(
                "now estimates to be best" in one.words and "is not kept" in one.words for one in told.items
            )

    play(story)


def test_a_list_that_is_drawn_is_not_said_to_follow_the_best_order() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine, algorithm="TopFTRL", items=ITEMS)  # shuffles what is not told apart
            best = engine.rankers["unwind"].fold.current()
            ends = set()
            for i in range(20):
                shown = await rank(engine, f"d{i}")
                told = await explain_answer(engine.rankers["unwind"], f"d{i}")
                for one in told.items:
                    assert f"best had it in place {best.index(one.item) + 1} of {len(best)}." in one.words
                end = told.items[0].words.partition("standing here. ")[2]
                if end == "The list did not explore.":
                    assert shown.items == best
                elif end != "The list explored.":
                    assert shown.items != best
                ends.add(end)
            assert "The ranker draws its lists, and this one differs from that order." in ends

    play(story)


async def _nothing() -> None:
    return None


def test_guard_rails_are_part_of_the_reason() -> None:
    async def story() -> None:
        async with running() as engine:
            policy = {"exploration_cap": 0.5, "displacement": 1}
            await create(engine, "clicks", algorithm="FTRLPBM", items=ITEMS, policy=policy)
            await create(engine, "moved", algorithm="PBMTS", items=ITEMS, policy=policy)
            await create(engine, "top", algorithm="TopFTRL", items=ITEMS, policy=policy)
            words: dict[str, str] = {}
            for name in ("clicks", "moved", "top"):
                for i in range(8):
                    await rank(engine, f"d{i}", name, baseline=ITEMS)
                    told = await explain_answer(engine.rankers[name], f"d{i}")
                    words[name] = words.get(name, "") + " ".join(one.words for one in told.items)
            for told in words.values():
                assert "The exploration cap let the best list of the moment be shown." in told
            assert "let the ranker order groups of neighbours" in words["clicks"]
            assert "The bound on displacements moved items of the list." in words["moved"]
            assert "or the bound on displacements left it at its place" in words["top"]

    play(story)
