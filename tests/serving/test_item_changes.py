"""Items that come and go while a ranker runs, and what each ranker carries over to the new ones."""

from __future__ import annotations

import numpy as np
import pytest

from rankloop import rankers
from rankloop.base import Ranking
from rankloop.servable import Servable
from rankloop.serving.admission import RequestError
from rankloop.serving.api import (
    ItemsRequest,
    RollbackRequest,
)
from rankloop.serving.engine import Engine
from rankloop.serving.log.records import Config
from rankloop.serving.registry import build, carried, changed, check_change, has_items, served
from tests.serving.service import INSTEAD, ITEMS, adds_up, answer, create, play, rank, rounds, running


@pytest.mark.parametrize("algorithm", ["RTop1F", "FTPL"])
def test_items_come_and_go(algorithm: str) -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine, algorithm=algorithm)
            await rounds(engine, 200)
            open_list = await rank(engine, "open")
            seq = await engine.snapshot("unwind")
            await engine.change_items("unwind", ItemsRequest(add=["swim"], retire=["tea"], event_id="i1"))
            again = await engine.change_items(
                "unwind", ItemsRequest(add=["swim"], retire=["tea"], event_id="i1")
            )
            assert again.status == "duplicate"
            shown = await rank(engine)
            assert sorted(shown.items) == sorted({*ITEMS, "swim"} - {"tea"})
            assert "tea" in open_list.items  # the past stays as it was
            story = await rank(engine, "open")
            assert story.items == open_list.items
            await rounds(engine, 20, first=300)
            await engine.rollback("unwind", RollbackRequest(seq))  # what was known, about the items of today
            assert "tea" not in (await rank(engine)).items
            with pytest.raises(RequestError, match="there already") as told:
                await engine.change_items("unwind", ItemsRequest(add=["swim"]))
            assert told.value.field == "add"
            with pytest.raises(RequestError, match="is not an item") as told:
                await engine.change_items("unwind", ItemsRequest(retire=["tea"]))
            assert told.value.field == "retire"
            with pytest.raises(RequestError, match="last item"):
                await engine.change_items("unwind", ItemsRequest(retire=engine.rankers["unwind"].fold.items))
            await engine.change_items("unwind", ItemsRequest(add=["tea"]))
            await adds_up(engine)

    play(story)


def test_a_newcomer_is_seen_and_finds_its_place() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            liked = {"walk": 1.0, "meditate": 1.0}
            await rounds(engine, 1_500, liked=liked)
            assert set(engine.rankers["unwind"].fold.current()[:2]) == set(liked)
            await engine.change_items("unwind", ItemsRequest(add=["swim", "argue"]))
            on_top = [(await rank(engine)).items[0] for _ in range(300)]
            assert on_top.count("swim") > 15
            assert on_top.count("argue") > 15
            await rounds(engine, 1_500, first=5_000, liked=liked | {"swim": 1.0})
            current = engine.rankers["unwind"].fold.current()
            assert set(current[:3]) == {"walk", "meditate", "swim"}

    play(story)


def test_a_newcomer_among_clicked_items() -> None:
    async def story() -> None:
        rng = np.random.default_rng(1)
        liked = {"walk": 0.8, "meditate": 0.5, "swim": 0.9}

        async def clicked_rounds(engine: Engine, first: int, n: int) -> list[str]:
            tops = []
            for i in range(first, first + n):
                shown = await rank(engine, f"d{i}", "pages")
                tops.append(shown.items[0])
                clicks = [float(rng.random() < liked.get(name, 0.1)) for name in shown.items]
                told = await answer(engine, f"d{i}", name="pages", relevance=None, clicks=clicks)
                assert told.learnt
            return tops

        async with running() as engine:
            await create(engine, "pages", algorithm="FTRLPBM", parameters={"n_positions": 2})
            open_list = await rank(engine, "open", "pages")
            await clicked_rounds(engine, 0, 1_200)
            assert set(engine.rankers["pages"].fold.current()) == {"walk", "meditate"}
            await engine.change_items("pages", ItemsRequest(add=["swim"], retire=["nap"]))
            tops = await clicked_rounds(engine, 5_000, 1_200)
            assert "nap" not in tops
            assert 0 < tops[:200].count("swim") < 150
            assert set(engine.rankers["pages"].fold.current()) == {"walk", "swim"}
            told = await answer(engine, "open", name="pages", relevance=None, clicks=[1.0, 0.0])
            assert told.status == ("late" if "nap" in open_list.items else "accepted")
            await adds_up(engine, "pages")

    play(story)


def test_the_top_two_and_items_that_change() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine, parameters={"k": 2})
            for i in range(120):
                shown = await rank(engine, f"d{i}")
                if i == 60:
                    await engine.change_items("unwind", ItemsRequest(add=["swim", "cook"], retire=["nap"]))
                told = await answer(
                    engine, f"d{i}", relevance=[float(name == "tea") for name in shown.items[:2]]
                )
                assert told.learnt or (i == 60 and told.status == "late")
            assert engine.rankers["unwind"].fold.current()[0] == "tea"
            await adds_up(engine)

    play(story)


def test_an_answer_to_a_list_from_before_a_change_still_counts() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine)
            first, second = await rank(engine, "d1"), await rank(engine, "d2")
            await engine.change_items("unwind", ItemsRequest(add=["swim"], retire=[first.items[0]]))
            assert (await answer(engine, "d1")).status == "late"  # it is about an item that is gone
            status = (await answer(engine, "d2")).status
            assert status == ("late" if second.items[0] == first.items[0] else "accepted")
            await adds_up(engine)

    play(story)


def test_items_that_stay_keep_their_order_and_new_ones_follow() -> None:
    assert changed(["a", "b", "c"], add=["e", "d"], retire=["b"]) == ["a", "c", "e", "d"]
    for add, retire, words in [
        (["a"], [], "there already"),
        ([], ["x"], "is not an item"),
        ([], ["a"], "last item"),
    ]:
        with pytest.raises(ValueError, match=words):
            check_change(["a"], add=add, retire=retire)


def test_a_new_item_begins_level_with_the_best_and_the_others_keep_what_they_had() -> None:
    config = Config("FTPL", 1, ["a", "b", "c"])
    ranker = build(config, n_items=3)
    ranker.learn(Ranking(np.arange(3)), np.array([1.0, 0.0, 0.0]))
    ranker.learn(Ranking(np.arange(3)), np.array([1.0, 1.0, 0.0]))
    fresh = carried(ranker, config, before=["a", "b", "c"], names=["c", "new", "b"])
    assert fresh.state.r_sum.tolist() == [0.0, 2.0, 1.0]
    assert int(fresh.state.t[0]) == 2
    assert ranker.state.r_sum.tolist() == [2.0, 1.0, 0.0]  # the old one is left alone


class Unchanging(rankers.FTPL):
    carry = Servable.carry


def test_a_ranker_that_cannot_change_its_items_says_so() -> None:
    with pytest.raises(ValueError, match="Unchanging cannot change its items while it runs"):
        Unchanging(n_items=2).carry(Unchanging(n_items=2), np.array([0, -1]))


@pytest.mark.parametrize("algorithm", [name for name in sorted(served()) if has_items(name)])
def test_every_ranker_goes_on_with_other_items(algorithm: str) -> None:
    """Items come, go and come back; open lists, a snapshot and a rollback in between; the log replays to all of it."""

    async def story() -> None:
        rng = np.random.default_rng(2)
        async with running() as engine:
            await create(
                engine, algorithm=algorithm, parameters=INSTEAD.get(algorithm, {}), items=[*ITEMS[:4]], seed=3
            )
            fold = engine.rankers["unwind"].fold
            kind = fold.ranker.feedback.kind

            async def rounds_of(first: int, n: int) -> None:
                for i in range(first, first + n):
                    shown = await rank(engine, f"d{i}")
                    assert set(shown.items) <= set(fold.items)
                    length = fold.ranker.feedback.length(len(shown.items))
                    values = [float(rng.random() < (0.9 if name == "tea" else 0.2)) for name in shown.items]
                    told = await answer(engine, f"d{i}", **{"relevance": None, kind: values[:length]})
                    assert (told.status, told.learnt) == ("accepted", True)

            await rounds_of(0, 30)
            await rank(engine, "open")
            seq = await engine.snapshot("unwind")
            await engine.change_items("unwind", ItemsRequest(add=["swim"]))
            await rounds_of(100, 15)
            await engine.change_items("unwind", ItemsRequest(add=["nap"], retire=["walk", "tea"]))
            assert fold.items == ["meditate", "music", "swim", "nap"]
            await rounds_of(200, 15)
            length = fold.ranker.feedback.length(4)
            told = await answer(engine, "open", **{"relevance": None, kind: [1.0] * length})
            assert told.status in {"accepted", "late"}
            await engine.change_items("unwind", ItemsRequest(add=["tea"], retire=["nap"]))
            await rounds_of(300, 15)
            await engine.rollback("unwind", RollbackRequest(seq))
            assert sorted(fold.items) == ["meditate", "music", "swim", "tea"]
            await rounds_of(400, 10)
            await adds_up(engine)

    play(story)


@pytest.mark.parametrize(
    ("algorithm", "field", "known"),
    [
        ("CascadeKLUCB", "N", 0.0),
        ("PBMTS", "N", 0.0),
        ("ClickMix", "clicks", 0.0),
        ("GRAB", "N", 0.0),
        ("PMED", "N", 0.0),
        ("TopRank", "clicks", 0.0),
        ("TopRank", "block", 0.0),
        ("MW", "W", 1 / 3),
        ("RankedExp3", "w", 1 / 3),
        ("PrecisionFTRL", "L_hat", "least"),
        ("SemiBanditFTRL", "L_hat", "least"),
        ("FTRLPBM", "L_hat", "least"),
        ("TopFTRL", "G_hat", "most"),
        ("FTPL", "r_sum", "most"),
        ("RTop1F", "s_hat", "most"),
    ],
)
def test_what_a_newcomer_knows(algorithm: str, field: str, known: float | str) -> None:
    """As docs/howto/candidates.md says."""
    config = Config(algorithm, 1, ["a", "b", "c"], INSTEAD.get(algorithm, {}))
    ranker, rng = build(config, n_items=3), np.random.default_rng(1)
    for _ in range(120):
        shown = ranker.rank(rng=rng)
        clicked = (shown.items == 2) & (rng.random(3) < 0.8)
        ranker.learn(shown, clicked.astype(float)[: ranker.feedback.length(3)])
    fresh = carried(ranker, config, before=["a", "b", "c"], names=["c", "b", "new"])
    values = np.asarray(getattr(fresh.state, field), float)
    before = np.asarray(getattr(ranker.state, field), float)
    if isinstance(known, str):
        assert values[..., 2] == pytest.approx(
            before.min(axis=-1) if known == "least" else before.max(axis=-1)
        )
        assert values[..., :2] == pytest.approx(before[..., [2, 1]])
    elif field == "W":
        assert (values[:, 2] > 0.2).all()  # an even share, but for what keeps every item's sum at one
    else:
        assert values[..., 2] == pytest.approx(known)


def test_ftrl_pbm_solves_for_the_losses_that_it_carries() -> None:
    config = Config("FTRLPBM", 1, ["a", "b", "c"], {"n_positions": 2})
    ranker = build(config, n_items=3)
    rng = np.random.default_rng(1)
    for _ in range(50):
        shown = ranker.rank(rng=rng)
        ranker.learn(shown, (shown.items == 2).astype(float))
    fresh = carried(ranker, config, before=["a", "b", "c"], names=["b", "c", "d"])
    fresh.check_state(fresh.save())  # chances that add up, for the losses that are there
    np.testing.assert_allclose(fresh.state.L_hat[:, :2], ranker.state.L_hat[:, 1:])
    np.testing.assert_allclose(fresh.state.L_hat[:, 2], ranker.state.L_hat.min(axis=1))


def test_a_ranking_from_before_a_change_is_translated_or_let_go() -> None:
    top = rankers.RTop1F(n_items=4)
    memo = (np.array([0.5]),)
    kept = top.translate(Ranking(np.arange(3), None, memo, True), np.array([2, -1, 0]))
    assert kept is not None
    assert kept.items.tolist() == [2, 0, 1, 3]
    assert top.exploration_chance(kept) == 0.5
    assert top.translate(Ranking(np.arange(3), None, memo, True), np.array([-1, 1, 0])) is None
    pairs = rankers.RTop1F(n_items=4, k=2)
    told = pairs.translate(Ranking(np.arange(3), None, memo, True), np.array([2, -1, 0]))
    assert told is not None
    assert told.memo[0][0] == 0.0  # the slots are others now
    assert memo[0][0] == 0.5
    clicks = rankers.FTRLPBM(n_items=4, n_positions=2)
    shown = Ranking(np.array([0, 1]), np.array([0.25, 0.5]))
    assert clicks.translate(shown, np.array([3, -1])) is None
    there = clicks.translate(shown, np.array([3, 1]))
    assert there is not None
    assert there.propensities is shown.propensities
