"""Guard rails: the exploration cap and the largest displacement, for every served ranker."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rankloop.serving.admission import Conflict, RequestError
from rankloop.serving.api import ItemsRequest, PolicyRequest, PromoteRequest
from rankloop.serving.engine import Engine
from rankloop.serving.log.candidate_lists import feedback_length
from rankloop.serving.log.guard_rails import bound_of, cap_of, way_of, within_reach
from rankloop.serving.log.records import Policy
from rankloop.serving.registry import has_items, served
from tests.serving.service import INSTEAD, ITEMS, adds_up, answer, create, play, rank, running

SIX = [*ITEMS, "swim"]
REFUSE = ("FeedExp3", "PMED")
MOVED = {"ClickMix", "PBMTS", "GRAB", "CascadeKLUCB", "CascadeRobustUCB", "FTPL"}
ALL = sorted(served())


async def _make(engine: Engine, algorithm: str, policy: dict[str, Any], **more: Any) -> None:
    own = has_items(algorithm)
    parameters = INSTEAD.get(algorithm, {} if own else {"n_features": 3})
    await create(
        engine,
        "any",
        algorithm=algorithm,
        parameters=parameters | more,
        items=SIX if own else None,
        policy=policy,
    )


def _asked(algorithm: str, rng: np.random.Generator, baseline: list[str]) -> dict[str, Any]:
    if has_items(algorithm):
        return {"baseline": baseline}
    return {"baseline": baseline, "items": SIX, "features": (rng.random((6, 3)) / 3).tolist()}


async def _tell(engine: Engine, decision_id: str, rng: np.random.Generator) -> Any:
    state, ranker = await engine.rankers["any"].decision_state(decision_id), engine.rankers["any"].fold.ranker
    assert state is not None
    values = rng.integers(0, 2, feedback_length(ranker, state.decision)).astype(float).tolist()
    return await answer(engine, decision_id, name="any", **{"relevance": None, ranker.feedback.kind: values})


def _furthest(shown: list[str], baseline: list[str]) -> int:
    return max(abs(j - baseline.index(name)) for j, name in enumerate(shown))


@pytest.mark.parametrize("algorithm", [name for name in ALL if name not in REFUSE])
def test_every_ranker_keeps_the_bound_and_learns(algorithm: str) -> None:
    async def story() -> None:
        rng = np.random.default_rng(3)
        async with running() as engine:
            await _make(engine, algorithm, {"displacement": 2, "holdout": 0.2})
            fold = engine.rankers["any"].fold
            moved = orders = 0
            for i in range(14):
                baseline = [str(name) for name in rng.permutation(SIX)]
                shown = await rank(engine, f"d{i}", "any", **_asked(algorithm, rng, baseline))
                assert sorted(shown.items) == sorted(baseline)
                assert _furthest(shown.items, baseline) <= 2
                orders += shown.items != baseline
                state = await engine.rankers["any"].decision_state(f"d{i}")
                assert state is not None
                assert state.decision.trial is not None
                rails = state.decision.rails
                moved += rails is not None and bool(rails.own)
                told = await _tell(engine, f"d{i}", rng)
                held = bool(state.decision.trial.would)
                assert told.learnt is (not held or algorithm in MOVED)
                if i == 7:
                    await engine.snapshot("any")
            way = way_of(fold.ranker, has_items=fold.has_items, whole=True)
            assert (way == "moved") is (algorithm in MOVED) is (moved > 0)
            assert orders > 0
            await adds_up(engine, "any")

    play(story)


@pytest.mark.parametrize("algorithm", ["FTRLPBM", "TopFTRL", "PBMTS", "CascadeKLUCB", "PDGD"])
def test_with_candidates_pinned_items_and_fewer_positions_the_bound_holds_too(algorithm: str) -> None:
    async def story() -> None:
        rng = np.random.default_rng(4)
        async with running() as engine:
            few = {"n_positions": 2} if algorithm == "PDGD" else {}
            await _make(engine, algorithm, {"displacement": 1, "exploration_cap": 0.7}, **few)
            for i in range(9):
                baseline = [str(name) for name in rng.permutation(SIX)]
                low = 3 if algorithm == "CascadeKLUCB" else 1
                more: dict[str, Any] = [
                    {"exclude": baseline[1:2]},
                    {"n_positions": 4},
                    {"pinned": {low: baseline[0]}, "n_positions": 4},
                ][i % 3]
                shown = await rank(engine, f"d{i}", "any", **_asked(algorithm, rng, baseline), **more)
                pinned = more.get("pinned", {})
                free = [name for j, name in enumerate(shown.items) if j not in pinned]
                own = [name for name in baseline if name not in (*more.get("exclude", ()), *pinned.values())]
                assert _furthest(free, own) <= 1
                assert {j: shown.items[j] for j in pinned} == pinned
                assert (await _tell(engine, f"d{i}", rng)).status == "accepted"
            await adds_up(engine, "any")

    play(story)


def test_the_bound_holds_for_items_whose_features_are_stored() -> None:
    async def story() -> None:
        rng = np.random.default_rng(9)
        async with running() as engine:
            await create(
                engine,
                "any",
                algorithm="PDGD",
                items=SIX,
                features=(rng.random((6, 3)) / 3).tolist(),
                parameters={"n_features": 3, "n_positions": 2},
                policy={"displacement": 1, "exploration_cap": 0.7},
            )
            orders = 0
            for i in range(12):
                baseline = [str(name) for name in rng.permutation(SIX)]
                more: dict[str, Any] = [{}, {"exclude": baseline[2:3]}][i % 2]
                shown = (await rank(engine, f"d{i}", "any", baseline=baseline, **more)).items
                own = [name for name in baseline if name not in more.get("exclude", ())]
                assert shown in (own, [own[1], own[0], *own[2:]])
                orders += shown != own
                await _tell(engine, f"d{i}", rng)
            assert orders > 0
            await adds_up(engine, "any")

    play(story)


@pytest.mark.parametrize("algorithm", ["FTRLPBM", "PBMTS"])
def test_items_below_the_end_of_the_list_come_up_no_further_than_the_bound(algorithm: str) -> None:
    async def story() -> None:
        async with running() as engine:
            await _make(engine, algorithm, {"displacement": 1}, n_positions=2)
            there: list[set[str]] = [set(), set()]
            for i in range(40):
                shown = (await rank(engine, f"d{i}", "any", baseline=SIX)).items
                for j, name in enumerate(shown):
                    there[j].add(name)
            assert there == [{"walk", "meditate"}, {"walk", "meditate", "music"}]
            await adds_up(engine, "any")

    play(story)


@pytest.mark.parametrize("algorithm", REFUSE)
def test_a_ranker_that_cannot_keep_the_bound_says_so_when_it_is_created(algorithm: str) -> None:
    async def story() -> None:
        async with running() as engine:
            with pytest.raises(RequestError, match=rf"{algorithm} cannot keep policy\.displacement: its"):
                await _make(engine, algorithm, {"displacement": 2})
            await _make(engine, algorithm, {"exploration_cap": 0.5})
            with pytest.raises(RequestError, match="cannot keep") as refused:
                await engine.change_policy("any", PolicyRequest(displacement=2))
            assert refused.value.field == "displacement"
            assert engine.rankers["any"].fold.applied == 1

    play(story)


@pytest.mark.parametrize("algorithm", ALL)
def test_beyond_the_exploration_cap_the_best_list_of_the_moment_is_shown(algorithm: str) -> None:
    async def story() -> None:
        rng = np.random.default_rng(5)
        async with running() as engine:
            await _make(engine, algorithm, {"exploration_cap": 0.5})
            fold = engine.rankers["any"].fold
            greedy = 0
            for i in range(16):
                asked = _asked(algorithm, rng, SIX)
                del asked["baseline"]
                features = None if fold.has_items else np.array(asked["features"], np.float32)
                order = fold.ranker.current(fold.ranker.as_request(features, "shoes", SIX))
                best = [(fold.items if fold.has_items else SIX)[j] for j in order]
                shown = await rank(engine, f"d{i}", "any", **asked)
                state = await engine.rankers["any"].decision_state(f"d{i}")
                assert state is not None
                is_greedy = state.decision.rails is not None
                if is_greedy:
                    assert shown.items == best
                    assert shown.propensities == [1.0] * len(best)
                    assert not state.decision.explored
                greedy += is_greedy
                told = await _tell(engine, f"d{i}", rng)
                any_list = fold.ranker.learns_others_lists()
                assert (told.status, told.learnt) == ("accepted", not is_greedy or any_list)
            assert 3 < greedy < 13
            assert fold.rounds == (16 if fold.ranker.learns_others_lists() else 16 - greedy)
            assert fold.series.n_answers() == 16
            await adds_up(engine, "any")

    play(story)


def test_guard_rails_change_while_a_ranker_runs() -> None:
    async def story() -> None:
        async with running() as engine:
            await _make(engine, "FTRLPBM", {}, n_positions=4)
            fold = engine.rankers["any"].fold
            rng = np.random.default_rng(1)
            explored = []
            for cap in (1.0, 0.0, 0.25):
                await engine.change_policy("any", PolicyRequest(exploration_cap=cap, event_id=f"cap {cap}"))
                before = fold.counts.explored
                for i in range(40):
                    await rank(engine, f"{cap} {i}", "any")
                    await _tell(engine, f"{cap} {i}", rng)
                explored.append(fold.counts.explored - before)
            assert explored[0] > 30 > 18 > explored[2] > 2 > explored[1] == 0
            await engine.snapshot("any")
            again = await engine.change_policy(
                "any", PolicyRequest(exploration_cap=0.25, event_id="cap 0.25")
            )
            assert again.status == "duplicate"
            with pytest.raises(Conflict):
                await engine.change_policy("any", PolicyRequest(exploration_cap=0.5, event_id="cap 0.25"))
            await engine.change_policy("any", PolicyRequest(displacement=1, exploration_cap=1.0))
            with pytest.raises(RequestError, match="displacement is 1: every request needs") as refused:
                await rank(engine, "bare", "any")
            assert refused.value.field == "baseline"
            for i in range(10):
                shown = await rank(engine, f"near {i}", "any", baseline=SIX)
                assert _furthest(shown.items, SIX) <= 1
            await engine.change_items("any", ItemsRequest(["cook"], ["walk"]))
            await engine.change_policy("any", PolicyRequest(displacement=3))
            rounds = fold.rounds
            for i in range(10):  # of groups with the retired item nothing is learnt, of the others everything
                assert (await _tell(engine, f"near {i}", rng)).learnt
            assert fold.rounds == rounds + 10
            await engine.change_policy("any", PolicyRequest(displacement=0))
            await rank(engine, "bare", "any")
            await engine.promote("any", PromoteRequest(0.0))
            await rank(engine, "own", "any", baseline=[*SIX[1:], "cook"])
            await adds_up(engine, "any")

    play(story)


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ({"exploration_cap": 1.5}, "exploration_cap must be between 0 and 1, got 1.5"),
        ({"exploration_cap": -0.1}, "exploration_cap must be between 0 and 1, got -0.1"),
        ({"displacement": -1}, "displacement must be between 0 and 1000000, got -1"),
    ],
)
def test_what_is_no_guard_rail_is_refused(policy: dict[str, Any], words: str) -> None:
    async def story() -> None:
        async with running() as engine:
            with pytest.raises(RequestError, match=words):
                await _make(engine, "FTRLPBM", policy)
            await _make(engine, "FTRLPBM", {})
            with pytest.raises(RequestError, match=words):
                await engine.change_policy("any", PolicyRequest(**policy))

    play(story)


def test_without_guard_rails_nothing_is_bounded() -> None:
    assert (cap_of(Policy()), bound_of(Policy())) == (1.0, 0)


def test_items_are_moved_into_reach_and_no_further() -> None:
    rng = np.random.default_rng(6)
    for _ in range(300):
        n, more, bound = int(rng.integers(1, 9)), int(rng.integers(0, 4)), int(rng.integers(1, 5))
        places = rng.permutation(20)[: n + min(more, bound)]
        order = rng.permutation(places)[: max(1, n - int(rng.integers(0, 2)))]
        shown = within_reach(order, places, n_free=n, bound=bound)
        place = {item: i for i, item in enumerate(places.tolist())}
        assert len(set(shown.tolist())) == n
        assert all(abs(place[item] - j) <= bound for j, item in enumerate(shown.tolist()))
        # What is not shown could stand below the list.
        assert all(place[item] + bound >= n for item in set(places.tolist()) - set(shown.tolist()))
        if all(abs(place[item] - j) <= bound for j, item in enumerate(order.tolist())) and len(order) == n:
            left = set(places.tolist()) - set(order.tolist())
            if all(place[item] + bound >= n for item in left):
                assert shown.tolist() == order.tolist()
