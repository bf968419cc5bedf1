"""Lists with a baseline: apprentices, holdouts, promotion, and what the ranker may learn beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rankloop.serving.admission import Conflict, RequestError
from rankloop.serving.api import ItemsRequest, PolicyRequest, PromoteRequest, ResetRequest
from rankloop.serving.engine import Engine
from rankloop.serving.log.fold import Fold
from rankloop.serving.views import decision_answer, ranker_answer
from tests.serving.service import ITEMS, adds_up, answer, create, play, rank, running


async def _trial(engine: Engine) -> Any:
    return (await ranker_answer(engine.rankers["any"])).trial


async def _rounds(engine: Engine, first: int, n: int, **more: Any) -> list[bool]:
    """Lists with a baseline and feedback; whether each showed the baseline."""
    fold, rng = engine.rankers["any"].fold, np.random.default_rng(first)
    found = []
    for i in range(first, first + n):
        shown = await rank(engine, f"d{i}", "any", baseline=ITEMS, **more)
        story = await decision_answer(engine.rankers["any"], f"d{i}")
        found.append(story.shown_by == "baseline")
        if found[-1]:
            assert shown.items == [name for name in ITEMS if name in shown.items]
            assert shown.propensities == [1.0] * len(shown.items)
        kind, length = fold.ranker.feedback.kind, fold.ranker.feedback.length(len(shown.items))
        values = rng.integers(0, 2, length).astype(float).tolist()
        assert (
            await answer(engine, f"d{i}", name="any", **{"relevance": None, kind: values})
        ).status == "accepted"
    return found


@pytest.mark.parametrize(
    ("algorithm", "learns"),
    [("FTRLPBM", False), ("PBMTS", True), ("CascadeKLUCB", True), ("GRAB", True), ("FTPL", True)],
)
def test_an_apprentice_shows_the_baseline_and_learns_beside_it_where_that_is_sound(
    algorithm: str, learns: bool
) -> None:
    async def story() -> None:
        async with running() as engine:
            clicks = {} if algorithm == "FTPL" else {"n_positions": 3}
            policy = {"apprentice": True}
            await create(engine, "any", algorithm=algorithm, items=ITEMS, parameters=clicks, policy=policy)
            fold = engine.rankers["any"].fold
            before = fold.ranker.state_arrays()
            assert all(await _rounds(engine, 0, 30))
            assert fold.rounds == (30 if learns else 0)
            same = all(
                np.array_equal(value, before[name]) for name, value in fold.ranker.state_arrays().items()
            )
            assert same is not learns
            told = await _trial(engine)
            assert (told.live, told.baseline_lists, told.ranker_lists, told.lift) == (0.0, 30, 0, None)
            assert 0.0 <= told.agreed <= 1.0
            assert 0.0 <= told.at_least <= told.baseline_mean
            await engine.snapshot("any")
            await adds_up(engine, "any")

    play(story)


def test_promotion_is_a_row_and_the_holdout_stays() -> None:
    async def story() -> None:
        async with running() as engine:
            policy = {"apprentice": True, "holdout": 0.25}
            await create(
                engine, "any", algorithm="FTRLPBM", items=ITEMS, parameters={"n_positions": 3}, policy=policy
            )
            fold = engine.rankers["any"].fold
            assert all(await _rounds(engine, 0, 20))
            before = fold.state_hash()
            told = await engine.promote("any", PromoteRequest(0.5, "half"))
            again = await engine.promote("any", PromoteRequest(0.5, "half"))
            assert (told.status, again.status) == ("accepted", "duplicate")
            assert fold.state_hash() != before
            with pytest.raises(Conflict):
                await engine.promote("any", PromoteRequest(0.75, "half"))
            half = await _rounds(engine, 1_000, 120)
            assert 0.5 < sum(half) / 120 < 0.75  # 0.25 + 0.75 / 2
            await engine.snapshot("any")
            await engine.promote("any", PromoteRequest(1.0))
            whole = await _rounds(engine, 2_000, 120)
            assert 0.15 < sum(whole) / 120 < 0.35
            trial = await _trial(engine)
            assert (trial.live, trial.holdout) == (0.75, 0.25)
            assert trial.baseline_lists == 20 + sum(half) + sum(whole)
            assert trial.ranker_lists == fold.rounds == 240 - sum(half) - sum(whole)
            assert trial.lift.low < trial.lift.mean < trial.lift.high
            assert trial.lift.mean == pytest.approx(trial.ranker_mean - trial.baseline_mean, abs=0.15)
            # The chances that the log's promotions gave: none until the first, then half and all of three quarters.
            drawn = [
                (await engine.rankers["any"].decision_state(f"d{i}")).decision for i in (0, 1_000, 2_000)
            ]
            chances = [fold.trial.chance(fold.policies, one.model_seq) for one in drawn]
            assert chances == [0.0, 0.375, 0.75]
            assert fold.trial.difference.n == 240
            assert Fold.restore(fold.save()).trial == fold.trial
            await adds_up(engine, "any")
            await engine.change_policy("any", PolicyRequest(holdout=0.9))
            assert sum(await _rounds(engine, 4_000, 30)) > 20
            drawn = [(await engine.rankers["any"].decision_state(f"d{i}")).decision for i in (2_119, 4_000)]
            chances = [fold.trial.chance(fold.policies, one.model_seq) for one in drawn]
            assert chances == pytest.approx([0.75, 0.1])
            await adds_up(engine, "any")
            await engine.reset("any", ResetRequest())
            assert all(await _rounds(engine, 3_000, 10))  # an apprentice again
            await adds_up(engine, "any")

    play(story)


def test_who_is_held_out_does_not_depend_on_the_share() -> None:
    """Shares grow by adding requests: whoever gets the ranker's list goes on getting it."""

    async def shown_by(share: float) -> list[bool]:
        found: list[bool] = []

        async def story() -> None:
            async with running() as engine:
                await create(engine, "any", algorithm="FTRLPBM", items=ITEMS, policy={"holdout": 0.3})
                await engine.promote("any", PromoteRequest(share))
                found.extend(await _rounds(engine, 0, 60))

        await story()
        return found

    async def story() -> None:
        none, half, whole = [await shown_by(share) for share in (0.0, 0.5, 1.0)]
        assert all(none)
        assert all(more >= less for more, less in zip(half, whole, strict=True))
        assert 0 < sum(whole) < sum(half) < 60

    play(story)


def test_without_a_policy_the_ranker_goes_live_and_nothing_changes_without_a_baseline() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine, "any", algorithm="FTRLPBM", items=ITEMS, parameters={"n_positions": 3})
            assert await _trial(engine) is None
            assert not any(await _rounds(engine, 0, 10))
            assert (await _trial(engine)).ranker_lists == 10
            await create(
                engine,
                "held",
                algorithm="FTRLPBM",
                items=ITEMS,
                policy={"apprentice": True},
                parameters={"n_positions": 3},
            )
            plain = await rank(engine, "d", "held")  # there is nothing else to show
            assert plain.propensities != [1.0] * 3
            story = await decision_answer(engine.rankers["held"], "d")
            assert story.shown_by == "ranker"

    play(story)


def test_a_baseline_beside_candidates_and_pinned_items() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(
                engine,
                "any",
                algorithm="FTRLPBM",
                items=ITEMS,
                parameters={"n_positions": 3},
                policy={"apprentice": True},
            )
            asked: dict[str, Any] = {"exclude": ["meditate"], "pinned": {1: "nap"}}
            shown = await rank(engine, "d", "any", baseline=ITEMS, **asked)
            assert shown.items == ["walk", "nap", "music"]
            with pytest.raises(Conflict):
                await rank(engine, "d", "any", baseline=ITEMS[::-1], **asked)
            told = await answer(engine, "d", name="any", relevance=None, clicks=[1, 0, 0])
            assert (told.status, told.learnt) == ("accepted", False)
            await engine.change_items("any", ItemsRequest(add=["swim"], retire=["walk"]))
            shown = await rank(engine, "f", "any", baseline=[*ITEMS, "swim"], **asked)
            assert shown.items == ["music", "nap", "tea"]  # what was retired is passed over
            await engine.promote("any", PromoteRequest())
            shown = await rank(engine, "e", "any", baseline=ITEMS, **asked)
            assert (await answer(engine, "e", name="any", relevance=None, clicks=[1, 0, 0])).learnt
            await adds_up(engine, "any")

    play(story)


@pytest.mark.parametrize(("algorithm", "learns"), [("ListNet", True), ("RTopKF", False)])
def test_a_baseline_of_documents(algorithm: str, learns: bool) -> None:
    """All labels are observed whoever chose the order; those of the top are weighed by the chances of own lists."""

    async def story() -> None:
        rng = np.random.default_rng(1)
        async with running() as engine:
            policy = {"apprentice": True}
            await create(engine, "docs", algorithm=algorithm, parameters={"n_features": 2}, policy=policy)
            for i in range(6):
                if i == 3:
                    await engine.promote("docs", PromoteRequest())
                features = rng.random((4, 2)).tolist()
                shown = await rank(
                    engine,
                    f"d{i}",
                    "docs",
                    items=list("abcd"),
                    features=features,
                    baseline=list("dcba"),
                    exclude=["b"],
                )
                if i < 3:
                    assert shown.items == ["d", "c", "a"]
                labels = [1.0, 0.0, 0.0] if learns else [1.0]
                told = await answer(engine, f"d{i}", name="docs", relevance=labels)
                assert told.learnt is (learns or i >= 3)
            await adds_up(engine, "docs")

    play(story)


@pytest.mark.parametrize(
    ("baseline", "words"),
    [
        (["walk", "golf", "tea"], "'golf' is not a candidate"),
        (["walk", "walk", "tea"], "must not repeat"),
        (["walk", "tea"], "must have 3 items that may be shown, one for each free position, got 2"),
    ],
)
def test_a_baseline_must_fill_the_list(baseline: list[str], words: str) -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine, "any", algorithm="FTRLPBM", items=ITEMS, parameters={"n_positions": 3})
            with pytest.raises(RequestError, match=words) as refused:
                await rank(engine, "d", "any", baseline=baseline)
            assert refused.value.field == "baseline"
            with pytest.raises(
                RequestError, match="holdout must be between 0 and 1, and below that"
            ) as refused:
                await create(engine, "more", algorithm="FTPL", items=ITEMS, policy={"holdout": 1.0})
            assert refused.value.field == "policy.holdout"

    play(story)
