"""What is refused before anything is written or allocated."""

from __future__ import annotations

import inspect
import tracemalloc
from typing import Any

import numpy as np
import pytest

from rankloop.serving.admission import Busy, Limits, RequestError, check_size
from rankloop.serving.api import FeedbackRequest, ItemsRequest
from rankloop.serving.log.digests import digest_of
from rankloop.serving.log.records import Config
from rankloop.serving.registry import build, has_items, served
from tests.serving.memory_store import MemoryStore
from tests.serving.service import INSTEAD, ITEMS, create, play, running


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"algorithm": "Nobody"}, "algorithm must be one of"),
        ({"algorithm": "Uniform", "items": ["a"]}, "Uniform cannot be served: it learns nothing"),
        ({"items": None}, "needs items"),
        ({"items": ["a", "a"]}, "must not repeat"),
        ({"parameters": {"horizon": 100}}, "no horizon"),
        ({"parameters": {"n_items": 100}}, "no parameter 'n_items'"),
        ({"parameters": {"colour": 1}}, "no parameter 'colour'"),
        ({"parameters": {"measure": "ndcg"}}, "cannot be learnt"),
        ({"parameters": {"measure": {}}}, "measure"),
        ({"algorithm": "RTopKF", "items": None}, "n_features"),
        (
            {"algorithm": "RTopKF", "items": ["a"], "parameters": {"n_features": 1}},
            "takes items with their features",
        ),
        ({"policy": {"deadline_seconds": -1}}, "deadline_seconds"),
    ],
)
def test_a_ranker_that_makes_no_sense_is_refused(settings: dict, words: str) -> None:
    async def story() -> None:
        async with running() as engine:
            with pytest.raises(RequestError, match=words):
                await create(engine, **settings)
            assert await engine.store.rankers() == []

    play(story)


@pytest.mark.parametrize(
    "name", ["PMED", "TopRank", "GRAB", "MW", "PBMTS", "FTRLPBM", "RankedExp3", "FeedExp3"]
)
def test_a_ranker_that_would_be_too_large_is_refused_before_anything_is_allocated(name: str) -> None:
    config = Config(name, 1, parameters=INSTEAD.get(name, {}))
    tracemalloc.start()
    try:
        with pytest.raises(
            RequestError, match=r"would need [\d,]+ bytes of memory, the limit .* 256,000,000"
        ):
            check_size(config, Limits(), n_items=10_000)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", sorted(served()))
def test_what_is_let_in_with_ten_thousand_items_fits(name: str) -> None:
    """Five positions, where the ranker has positions: refused, or built within the limit."""
    if not has_items(name):
        return
    shown = {"n_positions": 5} if "n_positions" in inspect.signature(served()[name]).parameters else {}
    config = Config(name, 1, parameters=INSTEAD.get(name, {}) | shown)
    try:
        check_size(config, Limits(), n_items=10_000)
    except RequestError:
        return
    ranker: Any = build(config, n_items=10_000)
    arrays = [part for part in ranker.state if isinstance(part, np.ndarray)]
    assert sum(part.nbytes for part in arrays) < Limits().ranker_bytes


def test_a_request_for_too_much_is_refused_whole() -> None:
    async def story() -> None:
        async with running(limits=Limits(rankers=1, items=4, batch=2, parked=3)) as engine:
            with pytest.raises(RequestError, match="limit reached: 4 items, got 5"):
                await create(engine)
            await create(engine, items=ITEMS[:4])
            with pytest.raises(Busy, match="limit reached: 1 rankers"):
                await create(engine, "more", items=["a"])
            with pytest.raises(RequestError, match="limit reached: 4 items"):
                await engine.change_items("unwind", ItemsRequest(add=["swim"]))
            three = [FeedbackRequest(f"d{i}", relevance=[1.0]) for i in range(3)]
            with pytest.raises(RequestError, match="limit reached: 2 feedback events in one request, got 3"):
                await engine.feedback("unwind", three)
            for one in three:
                await engine.feedback("unwind", [one])
            with pytest.raises(Busy, match="limit reached: 3 feedback events that wait"):
                await engine.feedback("unwind", three[:1])

    play(story)


@pytest.mark.parametrize(
    "parameters",
    [{"n_positions": "many"}, {"n_positions": [1]}, {"n_features": 5_000}, {"n_positions": 1e400}],
)
def test_parameters_of_the_wrong_kind_are_the_callers_mistake(parameters: dict[str, Any]) -> None:
    with pytest.raises(RequestError):
        check_size(Config("PBMTS", 1, parameters=parameters), Limits(), n_items=3)


def test_a_slot_of_no_items_is_the_callers_mistake() -> None:
    with pytest.raises(RequestError, match="RTop1F cannot be built"):
        check_size(Config("RTop1F", 1, parameters={"k": 0}), Limits(), n_items=3)


def test_a_digest_tells_parts_apart() -> None:
    assert digest_of("ab", "c") != digest_of("a", "bc")
    assert digest_of("a", b"b") == digest_of("a", "b")
    assert len(digest_of()) == 16


def test_replicas_refuse_a_ranker_whose_state_depends_on_the_machine() -> None:
    class Shared(MemoryStore):
        shared = True

    async def story() -> None:
        async with running(Shared()) as engine:
            with pytest.raises(RequestError, match="PMED cannot be served by replicas") as refused:
                await create(engine, "any", algorithm="PMED", items=ITEMS)
            assert refused.value.field == "algorithm"
            assert await engine.store.rankers() == []
            await create(engine, "other", algorithm="FTRLPBM", items=ITEMS)
        async with running() as engine:
            await create(engine, "any", algorithm="PMED", items=ITEMS)

    play(story)
