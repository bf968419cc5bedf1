"""Rerank: requests as the documentation of other services and clients writes them, answered by a ranker."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import numpy as np
import pytest

from rankloop.serving.api import Matrix, PromoteRequest
from rankloop.serving.auth import make_key
from rankloop.serving.engine import Engine
from rankloop.serving.http.app import App
from rankloop.serving.rerank import RerankRequest, falling, load_extractor, rerank
from tests.cli.call import refused
from tests.serving.in_process import ask
from tests.serving.process import Service
from tests.serving.service import Clock, adds_up, create, play, running
from tests.serving.test_replicas import replicas

DOCUMENTS = [f"p{i}" for i in range(12)]
ASKED = {"model": "shop", "query": "green tea", "documents": DOCUMENTS}
PATHS = ["/v2/rerank", "/v1/rerank", "/rerank"]


async def shop(engine: Engine, *, n_more: int = 1, stored: bool = True, **more: Any) -> App:
    """A ranker with one stored feature, and one more from requests, which is all that it goes by at first."""
    n = 1 + n_more
    parameters = {"n_features": n, "n_positions": 5, "warm_start": [0.0] * (n - 1) + [3.0]}
    if stored:
        more |= {"items": [*DOCUMENTS, "unused"], "features": [[i / 10] for i in range(13)]}
    await create(engine, "shop", algorithm="PDGD", parameters=parameters, **more)
    return App(engine)


def order(answer: Any) -> list[int]:
    return [one["index"] for one in answer["results"]]


def falls(scores: list[float], *, lifted: bool = True) -> bool:
    """Whether they fall strictly in float32, also as Elasticsearch shows them: max(s, 0) + min(exp(s), 1)."""
    as_read = np.array(scores, np.float32)
    shown = np.maximum(as_read, 0) + np.minimum(np.exp(as_read), np.float32(1))
    return bool((np.diff(as_read) < 0).all() and (np.diff(shown) < 0).all())


@pytest.mark.parametrize("n", [1, 2, 3, 100, 1_000, 10_000])
def test_scores_fall_strictly(n: int) -> None:
    scores = falling(n)
    assert len(scores) == n
    assert falls(scores)
    assert min(scores) > 0
    assert not falls([1.0, 1.0 - 1e-9])


@pytest.mark.parametrize("path", PATHS)
def test_all_documents_are_answered_in_the_drawn_order(path: str) -> None:
    async def story() -> None:
        async with running() as engine:
            app = await shop(engine)
            status, answer = await ask(app, "POST", path, ASKED)
            assert status == 200
            assert set(answer) == {"id", "results", "meta"}
            assert sorted(order(answer)) == list(range(12))
            assert falls([one["relevance_score"] for one in answer["results"]])
            seen = await ask(app, "GET", f"/v1/rankers/shop/decisions/{answer['id']}")
            assert [DOCUMENTS[i] for i in order(answer)] == seen[1]["items"]
            first = DOCUMENTS[order(answer)[0]]
            report = {"decision_id": answer["id"], "clicked": [first]}
            assert (await ask(app, "POST", "/v1/rankers/shop/feedback", report))[1]["learnt"]
            await adds_up(engine, "shop")

    play(story)


def test_it_begins_with_the_callers_order() -> None:
    """Place**-w decides: the first document leads often, the last hardly ever; the stored feature has no say yet."""

    async def story() -> None:
        async with running() as engine:
            app = await shop(engine)
            firsts = [
                order((await ask(app, "POST", "/v2/rerank", ASKED | {"decision_id": f"d{i}"}))[1])[0]
                for i in range(300)
            ]
            chance = np.arange(1, 13) ** -3.0
            share = firsts.count(0) / 300
            assert abs(share - chance[0] / chance.sum()) < 0.1
            assert share < 1  # it explores

    play(story)


def test_top_n_answers_so_many() -> None:
    async def story() -> None:
        async with running() as engine:
            app = await shop(engine)
            for top_n, n in ((5, 5), (7, 7), (12, 12), (500, 12), (None, 12)):
                status, answer = await ask(
                    app, "POST", "/v2/rerank", ASKED | {"top_n": top_n, "decision_id": f"top {top_n}"}
                )
                assert (status, len(set(order(answer)))) == (200, n)
            status, answer = await ask(app, "POST", "/v2/rerank", ASKED | {"top_n": 3})
            assert (status, answer["error"]["field"]) == (422, "top_n")  # it learns from the first five
            assert answer["message"] == answer["error"]["message"]

    play(story)


def test_a_ranker_with_items_orders_those_that_it_can_and_leaves_the_others_behind() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine, "shop", algorithm="FTRLPBM", items=DOCUMENTS, parameters={"n_positions": 3})
            app = App(engine)
            asked = ASKED | {"documents": ["p7", "p3", "p9", "p1", "p5"]}
            status, answer = await ask(app, "POST", "/v2/rerank", asked)
            assert (status, sorted(order(answer))) == (200, [0, 1, 2, 3, 4])
            assert order(answer)[3:] == sorted(order(answer)[3:])
            status, answer = await ask(app, "POST", "/v2/rerank", asked | {"top_n": 2})
            assert (status, len(answer["results"])) == (200, 2)
            status, answer = await ask(app, "POST", "/v2/rerank", asked | {"features": [[1.0]] * 5})
            assert (status, answer["error"]["field"]) == (422, "features")

    play(story)


def test_a_request_sent_again_is_the_same_decision() -> None:
    async def story() -> None:
        clock = Clock(start=29.0)
        async with running(clock=clock) as engine:
            app = await shop(engine)

            async def decision(at: float, **more: Any) -> str:
                clock.seconds = at
                headers = more.pop("headers", None)
                status, answer = await ask(app, "POST", "/v2/rerank", ASKED | more, headers=headers)
                assert status == 200, answer
                return str(answer["id"])

            first = await decision(29.0)
            assert await decision(29.5) == first
            assert await decision(58.0) == first  # beyond the half minute of the clock
            second = await decision(59.1)
            assert second != first  # 30 seconds have passed
            assert await decision(61.0) == second
            assert await decision(61.0, query="black tea") != second
            assert await decision(61.0, top_n=6) != second
            assert await decision(61.0, headers={"authorization": "Bearer other"}) != second
            assert await decision(61.0, decision_id="mine") == "mine"
            assert await decision(400.0, decision_id="mine") == "mine"
            assert await decision(400.0, decision_id="x", headers={"x-decision-id": "head"}) == "head"
            counts = (await ask(app, "GET", "/v1/rankers/shop"))[1]["counts"]
            assert counts["decisions"] == 7

    play(story)


def test_a_request_sent_again_to_another_replica_is_the_same_decision() -> None:
    async def story() -> None:
        async with replicas() as (_, _, (one, other)):
            await shop(one)
            answers = [await rerank(engine, msgspec.convert(ASKED, RerankRequest)) for engine in (one, other)]
            assert answers[0] == answers[1]
            assert (await other.find("shop")).fold.counts.decisions == 1

    play(story)


def test_two_at_once_are_one_row() -> None:
    async def story() -> None:
        async with running() as engine:
            app = await shop(engine)
            answers = await asyncio.gather(*(ask(app, "POST", "/v2/rerank", ASKED) for _ in range(5)))
            assert len({json.dumps(answer) for _, answer in answers}) == 1
            assert (await ask(app, "GET", "/v1/rankers/shop"))[1]["counts"]["decisions"] == 1

    play(story)


def test_features_come_with_the_request_or_from_the_extractor() -> None:
    async def story() -> None:
        async with running() as engine:
            app = await shop(engine, stored=False)
            texts = [{"text": "long " * 100 + str(i)} for i in range(4)]
            rows = [[0.0, 50.0 * i] for i in range(4)]
            asked = {"model": "shop", "query": "tea", "documents": texts}
            status, answer = await ask(app, "POST", "/v2/rerank", asked | {"features": rows})
            assert (status, order(answer)) == (200, [3, 2, 1, 0])
            # A text of any length is called by its place, an object by its ID.
            report = {"decision_id": answer["id"], "clicked": ["3"]}
            assert (await ask(app, "POST", "/v1/rankers/shop/feedback", report))[0] == 200
            named = [{"id": f"sku {i}", "text": "tea"} for i in range(4)]
            both = asked | {"documents": named, "features": rows, "return_documents": True}
            status, answer = await ask(app, "POST", "/v1/rerank", both)
            assert answer["results"][0]["document"] == named[3]
            report = {"decision_id": answer["id"], "clicked": ["sku 2"]}
            assert (await ask(app, "POST", "/v1/rankers/shop/feedback", report))[0] == 200

            status, answer = await ask(app, "POST", "/v2/rerank", asked)
            assert (status, answer["error"]["field"]) == (422, "features")
            engine.extractor = lambda model, query, documents: [
                [0.0, 50.0 * ("2" in one["text"][-1])] for one in documents
            ]
            status, answer = await ask(app, "POST", "/v2/rerank", asked)
            assert (status, order(answer)[0]) == (200, 2)

            async def slowly(model: str, query: str, documents: list[Any]) -> Any:
                await asyncio.sleep(0)
                return np.array([[0.0, 50.0 * (i == 1)] for i in range(len(documents))])

            engine.extractor = slowly
            status, answer = await ask(app, "POST", "/v2/rerank", asked | {"query": "other"})
            assert (status, order(answer)[0]) == (200, 1)
            for wrong in (
                lambda *given: [[1.0, 2.0]],
                lambda *given: "nothing",
                lambda *given: [[1.0]] * 4,
                lambda *given: [[float("nan")] * 2] * 4,
                lambda *given: int("none"),
            ):
                engine.extractor = wrong
                status, answer = await ask(app, "POST", "/v2/rerank", asked | {"query": "third"})
                assert status == 422, answer
            await adds_up(engine, "shop")

    play(story)


def test_the_extractor_is_named_by_the_operator() -> None:
    assert load_extractor("numpy:asarray") is np.asarray
    for wrong in ("numpy", "numpy:", "nowhere.at_all:f", "numpy:pi", ":f"):
        with pytest.raises(ValueError, match="extractor must be package"):
            load_extractor(wrong)


def test_the_service_is_started_with_an_extractor(tmp_path: Path) -> None:
    (tmp_path / "lengths.py").write_text(
        "def rows(model, query, documents):\n    return [[len(one) * 9.0] for one in documents]\n"
    )
    found = {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    with Service("--memory", "--extractor", "lengths:rows", env=found) as service:
        service.client().create("shop", algorithm="PDGD", parameters={"n_features": 1, "warm_start": [1]})
        asked = {"model": "shop", "query": "tea", "documents": ["a", "bbbbbbbb", "cccc"]}
        answer = httpx.post(f"{service.url}/v2/rerank", json=asked, trust_env=False, timeout=60)
        assert order(answer.json()) == [1, 2, 0]
    assert "extractor must be" in refused("serve", "--memory", "--extractor", "nowhere_at_all:rows")


def test_guard_rails_and_trials_take_the_callers_order_for_the_baseline() -> None:
    async def story() -> None:
        async with running() as engine:
            app = await shop(engine, policy={"apprentice": True})
            _, answer = await ask(app, "POST", "/v2/rerank", ASKED)
            assert order(answer) == list(range(12))
            await engine.promote("shop", PromoteRequest(1.0))
            orders = [
                order((await ask(app, "POST", "/v2/rerank", ASKED | {"decision_id": str(i)}))[1])
                for i in range(20)
            ]
            assert orders != [list(range(12))] * 20
        async with running() as engine:
            app = await shop(engine, policy={"displacement": 2})
            for i in range(20):
                _, answer = await ask(app, "POST", "/v2/rerank", ASKED | {"decision_id": str(i)})
                assert max(abs(place - index) for place, index in enumerate(order(answer))) <= 2

    play(story)


def test_a_comparison_judges_the_callers_order() -> None:
    """The first ranking is the order in which documents came; the other is a ranker, with features as for itself."""

    async def story() -> None:
        async with running() as engine:
            app = await shop(engine)
            parameters = {"rankings": ["today", "shop"], "n_positions": 4}
            await create(engine, "trial", algorithm="Comparison", parameters=parameters)
            asked = ASKED | {"model": "trial"}
            for i in range(40):
                mine = asked | {"decision_id": f"t{i}", "unit": f"session {i}"}
                status, answer = await ask(app, "POST", "/v2/rerank", mine)
                assert status == 200, answer
                assert sorted(order(answer)) == list(range(12))
                # Whoever likes what came first in the engine's order prefers that order.
                clicked = [DOCUMENTS[i] for i in order(answer)[:4] if i == 0]
                report = {"decision_id": f"t{i}", "clicked": clicked}
                assert (await ask(app, "POST", "/v1/rankers/trial/feedback", report))[0] == 200
            verdict = (await ask(app, "GET", "/v1/rankers/trial"))[1]["comparison"]
            assert verdict["lists"] == 40
            assert verdict["pairs"][0]["wins"] > verdict["pairs"][0]["losses"]
            assert (await ask(app, "GET", "/v1/rankers/shop"))[1]["counts"]["decisions"] == 0
            status, answer = await ask(app, "POST", "/v2/rerank", ASKED | {"unit": "me"})
            assert (status, answer["error"]["field"]) == (422, "unit")  # for a comparison only
            wrong = {"rankings": ["today", "absent"], "n_positions": 4}
            await create(engine, "alone", algorithm="Comparison", parameters=wrong)
            status, answer = await ask(app, "POST", "/v2/rerank", ASKED | {"model": "alone"})
            assert (status, answer["message"]) == (404, "there is no ranker 'absent'")
            await adds_up(engine, "trial")

    play(story)


def test_a_memory_for_queries_knows_documents_by_their_names() -> None:
    async def story() -> None:
        async with running() as engine:
            await create(engine, "shop", algorithm="QueryMemory", parameters={"n_features": 1})
            app = App(engine)
            assert (await ask(app, "POST", "/v2/rerank", ASKED))[0] == 200
            status, answer = await ask(
                app, "POST", "/v2/rerank", ASKED | {"documents": ["long " * 100, "tea"]}
            )
            assert (status, answer["error"]["field"]) == (422, "documents[0]")  # and not by their places

    play(story)


def test_what_is_refused_changes_nothing() -> None:
    async def story() -> None:
        async with running() as engine:
            app = await shop(engine)
            admin = await make_key(engine.store, role="admin", at=1)
            events = await make_key(engine.store, role="events", at=1)
            others = await make_key(engine.store, role="writer", at=1, rankers=["other"])
            await app.access.refresh(engine.store)
            before = (await engine.find("shop")).fold.applied
            for wrong, expected, field in (
                ({"documents": []}, 422, "documents"),
                ({"documents": ["p1"] * 10_000}, 413, "documents"),
                ({"documents": ["p1", "p1"]}, 422, "documents"),
                ({"documents": ["p1", "nobody knows it"]}, 422, "documents"),
                ({"documents": [{"title": "p1"}]}, 422, "documents"),
                ({"documents": [1, 2]}, 422, "documents[0]"),
                ({"documents": None}, 422, "documents"),
                ({"features": [[1.0]]}, 422, "features"),
                ({"features": [[1.0, 2.0, 3.0]] * 12}, 422, "features"),
                ({"features": [[1e300]] * 12}, 422, "features"),
                ({"top_n": 0}, 422, "top_n"),
                ({"top_n": -3}, 422, "top_n"),
                ({"decision_id": "a\nb"}, 422, "decision_id"),
                ({"model": "nobody"}, 404, None),
                ({"model": "x" * 1_000}, 404, None),
                ({"query": 3}, 422, "query"),
                ({"query": None}, 422, "query"),
            ):
                for path in PATHS:
                    status, answer = await ask(app, "POST", path, ASKED | wrong, key=admin)
                    assert (status, answer["error"]["field"]) == (expected, field), (wrong, answer)
                    assert answer["message"] == answer["error"]["message"]
                    assert len(answer["message"]) < 400
            for key, expected in ((events, 403), (others, 403), ("", 401), ("rl_x_y", 401)):
                status, answer = await ask(app, "POST", "/v2/rerank", ASKED, key=key)
                assert (status, answer["message"]) == (expected, answer["error"]["message"])
            assert (await engine.find("shop")).fold.applied == before
            assert (await ask(app, "POST", "/v2/rerank", ASKED, key=admin))[0] == 200

    play(story)


def test_other_errors_have_no_second_message() -> None:
    async def story() -> None:
        async with running() as engine:
            _, answer = await ask(App(engine), "POST", "/v1/rankers/none/rank", {})
            assert set(answer) == {"error"}

    play(story)


def test_packed_features_and_direct_calls() -> None:
    async def story() -> None:
        async with running() as engine:
            await shop(engine)
            rows = np.linspace(90, 0, 12, dtype="<f4")[:, None]
            request = RerankRequest("shop", "tea", list(DOCUMENTS), features=Matrix((12, 1), rows.tobytes()))
            answer = await rerank(engine, request)
            assert [one.index for one in answer.results] == list(range(12))

    play(story)


# Requests as others write them, word for word but for names, IDs and numbers of documents.

AS_OTHERS_WRITE: list[tuple[str, str, dict[str, Any]]] = [
    # Cohere's client 7, `ClientV2.rerank`.
    ("cohere v2", "/v2/rerank", {"max_tokens_per_doc": 4096, "priority": 0, "top_n": 6}),
    # LiteLLM's provider `cohere`, which drops nothing.
    ("litellm", "/v1/rerank", {"top_n": 6, "rank_fields": ["text"], "return_documents": True}),
    # vLLM and Jina.
    ("vllm", "/rerank", {"top_n": 12, "truncate_prompt_tokens": -1, "return_documents": True}),
    # Weaviate's reranker-cohere: neither top_n nor anything else, and it indexes an array as long as `results`.
    ("weaviate", "/v2/rerank", {"return_documents": False}),
    # Elasticsearch, inference service `custom`: {"model": "shop", "query": ${query}, "documents": ${input}}
    ("elasticsearch", "/v2/rerank", {}),
    # OpenSearch, connector.pre_process.cohere.rerank: documents, query and top_n, the number of documents.
    ("opensearch", "/v2/rerank", {"top_n": 12}),
]


@pytest.mark.parametrize(
    ("path", "more"), [one[1:] for one in AS_OTHERS_WRITE], ids=[one[0] for one in AS_OTHERS_WRITE]
)
def test_requests_as_others_write_them(path: str, more: dict[str, Any]) -> None:
    async def story() -> None:
        async with running() as engine:
            app = await shop(engine)
            status, answer = await ask(app, "POST", path, ASKED | more)
            assert status == 200
            results = answer["results"]
            assert len(results) == more.get("top_n", 12)
            assert ("document" in results[0]) == bool(more.get("return_documents"))
            # What Elasticsearch reads by $.results[*].index and .relevance_score, and Weaviate into an array.
            by_place: list[float | None] = [None] * len(DOCUMENTS)
            for one in results:
                by_place[one["index"]] = one["relevance_score"]
            # OpenSearch puts scores in the order of the input, and sorts by them: the drawn order again.
            sort = sorted(
                (i for i, score in enumerate(by_place) if score is not None),
                key=lambda i: -(by_place[i] or 0),
            )
            assert sort == order(answer)

    play(story)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service("--data", str(tmp_path_factory.mktemp("rerank"))) as service:
        service.client().create(
            "shop",
            algorithm="PDGD",
            parameters={"n_features": 2, "n_positions": 5, "warm_start": [0, 3]},
            items=DOCUMENTS,
            features=[[i / 10] for i in range(12)],
        )
        yield service


def test_cohere_client(service: Service) -> None:
    cohere = pytest.importorskip("cohere")
    client = cohere.ClientV2("any key", base_url=service.url)
    answer = client.rerank(model="shop", query="tea", documents=DOCUMENTS)
    scores = [one.relevance_score for one in answer.results]
    assert sorted(one.index for one in answer.results) == list(range(12))
    assert falls(scores)
    mine = client.rerank(
        model="shop",
        query="tea",
        documents=DOCUMENTS,
        top_n=6,
        request_options={
            "additional_headers": {"X-Decision-Id": "by header"},
            "additional_body_parameters": {"features": [[float(i)] for i in range(12)]},
        },
    )
    assert (mine.id, mine.results[0].index, len(mine.results)) == ("by header", 11, 6)
    assert service.client().feedback("shop", "by header", clicked=["p11"]).learnt
    older = cohere.Client("any key", base_url=service.url).rerank(
        model="shop", query="tea", documents=DOCUMENTS
    )
    assert len(older.results) == 12
    with pytest.raises(cohere.core.ApiError) as refused:
        client.rerank(model="nobody", query="tea", documents=DOCUMENTS)
    assert (refused.value.status_code, refused.value.body["message"]) == (404, "there is no ranker 'nobody'")


def test_litellm(service: Service) -> None:
    litellm = pytest.importorskip("litellm")
    for provider in ("cohere", "hosted_vllm", "jina_ai"):
        answer = litellm.rerank(
            model=f"{provider}/shop",
            query="tea",
            documents=DOCUMENTS,
            api_base=service.url,
            api_key="any key",
        )
        assert sorted(one["index"] for one in answer.results) == list(range(12)), provider
        story = service.client().decision("shop", answer.id)
        assert [DOCUMENTS[one["index"]] for one in answer.results] == story.items


def test_the_fallback_of_the_page(service: Service) -> None:
    """The code of the how-to: a service, one that hangs, one that refuses, and none."""
    page = Path(__file__).parents[2] / "docs" / "howto" / "rerank.md"
    (code,) = re.findall(r"```python\n(import httpx.*?)```", page.read_text(), re.S)
    place: dict[str, Any] = {}
    exec(code, place)
    reranked = place["reranked"]
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        place["URL"] = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        began = time.monotonic()
        assert reranked("tea", DOCUMENTS, seconds=0.2) == (DOCUMENTS, None)
        assert time.monotonic() - began < 5
    assert reranked("tea", DOCUMENTS) == (DOCUMENTS, None)
    place["URL"] = service.url
    order, decision = reranked("tea", DOCUMENTS, seconds=60)
    assert sorted(order) == sorted(DOCUMENTS)
    assert service.client().decision("shop", decision).items == order
    assert reranked("tea", ["nobody knows it"], seconds=60) == (["nobody knows it"], None)
