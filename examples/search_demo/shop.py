"""The shop's server: it searches, asks rankloop for the order, reports what was seen and clicked, and shows a page.

Half of the searches are ordered by the memory for queries, which learns from them. The others get a list that is mixed
from its order and the engine's: they say which of the two people prefer.
"""

from __future__ import annotations

import json
import random
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

from examples.search_demo.catalogue import N_SHOWN, Engine, OpenSearch, Shoppers, products
from rankloop.serving.client import Client, RankloopError

MEMORY, TRIAL, ENGINE = "memory", "trial", "engine"
PAGE = Path(__file__).with_name("page.html")
_POLICY = {"deadline_seconds": 3, "gather_seconds": 1}  # of shoppers who take no longer


class Shop:
    """A shop whose search asks the service at this address; its engine is its own, or an OpenSearch."""

    def __init__(self, address: str, *, opensearch: str | None = None) -> None:
        catalogue = products()
        self.engine = Engine(catalogue) if opensearch is None else OpenSearch(catalogue, opensearch)
        self.shoppers = Shoppers(catalogue)
        self.rankloop = Client(address, timeout=300.0)  # the first lists may wait for a compiler
        self.address = address
        self._http = httpx.Client(base_url=address, timeout=300.0, trust_env=False)
        self._rng = random.Random(3)
        self._events: list[dict[str, Any]] = []
        self._lock = threading.Lock()

    def create(self) -> None:
        """The reranker, which begins with the engine's order, and the comparison of the two."""
        memory = {"n_features": 1, "n_positions": N_SHOWN, "warm_start": [1.0]}
        trial = {"rankings": [ENGINE, MEMORY], "n_positions": N_SHOWN}
        self.rankloop.create(MEMORY, algorithm="QueryMemory", parameters=memory, policy=_POLICY)
        self.rankloop.create(TRIAL, algorithm="Comparison", parameters=trial, policy=_POLICY)

    def search(self, query: str, session: str) -> dict[str, Any]:
        """The hits in the engine's order and in the one to show, and the ID of the search; UBI calls it query_id."""
        hits = self.engine.search(query)
        if len(hits) < 2:
            return {"engine": hits, "shown": hits, "query_id": None, "application": ENGINE}
        query_id, application = str(uuid.uuid4()), TRIAL if self._rng.random() < 0.5 else MEMORY
        asked = {"model": application, "query": query, "documents": hits, "decision_id": query_id}
        if application == TRIAL:
            asked["unit"] = session
        answer = self._http.post("/v2/rerank", json=asked).raise_for_status().json()
        shown = [hits[one["index"]] for one in answer["results"]]
        return {"engine": hits, "shown": shown, "query_id": query_id, "application": application}

    def report(self, action: str, found: dict[str, Any], place: int) -> None:
        """Keep an event of UBI until it is sent."""
        with self._lock:
            self._events.append(
                {
                    "action_name": action,
                    "application": found["application"],
                    "query_id": found["query_id"],
                    "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                    "event_attributes": {
                        "object": {"object_id": found["shown"][place], "object_id_field": "sku"},
                        "position": {"ordinal": place + 1},
                    },
                }
            )

    def send(self) -> None:
        """Send the events that were kept."""
        with self._lock:
            events, self._events = self._events, []
        if events:
            self._http.post("/v1/ubi/events", json=events).raise_for_status()

    def visit(self) -> None:
        """Let somebody search, look, and click."""
        query = self.shoppers.query()
        found = self.search(query, session=str(uuid.uuid4()))
        if found["query_id"] is None:
            return
        for place in range(min(N_SHOWN, len(found["shown"]))):
            self.report("impression", found, place)
        for place in self.shoppers.clicks(query, found["shown"]):
            self.report("click", found, place)

    def open(self, stop: threading.Event, *, a_second: float = 20.0) -> None:
        """Let shoppers come until `stop`."""
        began, n = time.monotonic(), 0
        while not stop.wait(max(0.0, began + n / a_second - time.monotonic())):
            n += 1
            try:
                self.visit()
                if n % 10 == 0:
                    self.send()
            except (httpx.HTTPError, RankloopError) as error:
                if not stop.is_set():
                    print(f"a search or a click was lost: {error}", flush=True)
                    time.sleep(1.0)

    def verdict(self) -> dict[str, Any]:
        """How the comparison stands."""
        ranker = self.rankloop.ranker(TRIAL)
        found = ranker.comparison
        assert found is not None
        (pair,) = found.pairs
        return {
            "sentence": found.sentence,
            "wins": pair.losses,  # of the second ranking, the memory
            "losses": pair.wins,
            "low": 1 - pair.share.high if pair.share else 0,
            "high": 1 - pair.share.low if pair.share else 1,
            "winner": found.winner,
            "service": self.address,
            "queries": self.shoppers.queries[:7],
        }


def serve(shop: Shop, port: int) -> ThreadingHTTPServer:
    """The shop's page on this port; 0 for any."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path == "/":
                self._answer(PAGE.read_bytes(), "text/html; charset=utf-8")
            elif parts.path == "/verdict":
                self._answer(json.dumps(shop.verdict()).encode())
            elif parts.path == "/search":
                query = parse_qs(parts.query).get("q", [""])[0][:200]
                found = shop.search(query, session=str(uuid.uuid4()))
                names = {sku: shop.engine.titles[sku] for sku in found["engine"]}
                self._answer(json.dumps(found | {"names": names}).encode())
            else:
                self.send_error(404)

        def do_POST(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            if self.path != "/ubi_events" or length > 65_536:
                self.send_error(404)
                return
            answer = httpx.post(
                f"{shop.address}/ubi_events",
                content=self.rfile.read(length),
                headers={"Content-Type": "application/json"},
                trust_env=False,
            )
            self._answer(answer.content, status=answer.status_code)

        def _answer(self, body: bytes, kind: str = "application/json", *, status: int = 200) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)
