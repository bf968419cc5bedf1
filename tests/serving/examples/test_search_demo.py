"""The shop whose search learns: from its products to the verdict."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from examples.search_demo.catalogue import N_SHOWN, Engine, OpenSearch, Shoppers, products
from examples.search_demo.shop import MEMORY, TRIAL, Shop, serve
from tests.serving.process import Service


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    with Service("--memory") as service:
        shop = Shop(service.url)
        shop.create()
        yield shop


def test_the_engine_finds_and_refuses_no_words() -> None:
    catalogue = products()
    engine = Engine(catalogue)
    assert len({one.sku for one in catalogue}) == len(catalogue) > 300
    hits = engine.search("green tea organic")
    assert len(hits) == 50
    assert {"green", "tea", "organic"} <= {*engine.titles[hits[0]].lower().replace(",", "").split()}
    for odd in ('"', "NEAR(", "tea OR", "title:tea *", "'; DROP TABLE products", "ü" * 500):
        engine.search(odd)
    assert engine.search(" ") == engine.search("?!") == []


def test_shoppers_like_what_the_engine_cannot_know() -> None:
    catalogue = products()
    engine, shoppers = Engine(catalogue), Shoppers(catalogue)
    for query in shoppers.queries[:6]:
        hits = engine.search(query)
        best = sorted(hits, key=lambda sku: -shoppers.attraction(query, sku))

        def clicks(order: list[str], query: str = query) -> int:
            return sum(len(shoppers.clicks(query, order)) for _ in range(300))

        assert clicks(best) > 1.3 * clicks(hits)


def test_shoppers_clicks_are_learnt_and_judged(shop: Shop) -> None:
    for i in range(240):
        shop.visit()
        if i % 20 == 19:
            shop.send()
    end = time.monotonic() + 30
    while shop.rankloop.ranker(MEMORY).rounds < 50 or shop.verdict()["wins"] < 10:
        assert time.monotonic() < end, shop.verdict()
        time.sleep(0.2)
    judged = shop.rankloop.ranker(TRIAL).comparison
    assert judged is not None
    assert judged.lists > 30
    for one in (MEMORY, TRIAL):
        assert shop.rankloop.ranker(one).counts["dead"] == 0
    found = shop.search("green tea", session="me")
    assert sorted(found["shown"]) == sorted(found["engine"])
    decision = shop.rankloop.decision(found["application"], found["query_id"])
    assert decision.items[:N_SHOWN] == found["shown"][:N_SHOWN]


def test_the_page(shop: Shop) -> None:
    server = serve(shop, 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with httpx.Client(base_url=f"http://127.0.0.1:{server.server_port}", trust_env=False, timeout=60) as page:
        assert "A shop that learns" in page.get("/").text
        assert page.get("/verdict").json()["sentence"]
        assert page.get("/search", params={"q": "xyzzy"}).json()["shown"] == []
        found = page.get("/search", params={"q": "green tea"}).json()
        shop.report("click", found, 2)
        event = shop._events.pop()
        answer = page.post("/ubi_events", json=[event])
        assert (answer.status_code, answer.json()["errors"]) == (200, False)
        assert page.get("/etc/passwd").status_code == page.post("/search", json=[]).status_code == 404
    server.shutdown()


def test_opensearch_is_asked_as_it_documents() -> None:
    catalogue = products()[:5]
    got: list[tuple[str, Any]] = []

    class Node(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            got.append((self.path, body))
            hits = [{"_index": "shop", "_id": one.sku, "_score": 1.0} for one in catalogue[::-1]]
            answer = json.dumps({"errors": False, "hits": {"hits": hits}}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *args: Any) -> None:
            pass

    node = ThreadingHTTPServer(("127.0.0.1", 0), Node)
    threading.Thread(target=node.serve_forever, daemon=True).start()
    engine = OpenSearch(catalogue, f"http://127.0.0.1:{node.server_port}")
    assert engine.search("tea") == [one.sku for one in catalogue[::-1]]
    node.shutdown()
    bulk = [json.loads(line) for line in got[0][1].splitlines()]
    assert got[0][0].startswith("/_bulk")
    assert bulk[:2] == [{"index": {"_index": "shop", "_id": "sku-000"}}, catalogue[0]._asdict()]
    assert (got[1][0], json.loads(got[1][1])["ext"]["ubi"]["object_id_field"]) == ("/shop/_search", "sku")
