"""The shop: products, their search engine (SQLite's FTS5), and shoppers who know what they like."""

from __future__ import annotations

import itertools
import json
import random
import sqlite3
from typing import NamedTuple

import httpx

N_SHOWN = 10
_KINDS = {
    "green tea": ["Sencha", "Gyokuro", "Bancha", "Longjing", "Gunpowder", "Genmaicha"],
    "black tea": ["Assam", "Darjeeling", "Ceylon", "Keemun", "Lapsang", "Earl Grey"],
    "herbal tea": ["Mint", "Camomile", "Fennel", "Rooibos", "Lemon balm", "Verbena"],
    "coffee beans": ["Arabica", "Bourbon", "Robusta", "Sidamo", "Huila", "Kona"],
    "tea pot": ["Cast iron", "Glass", "Porcelain", "Clay", "Copper", "Enamel"],
    "coffee mug": ["Stoneware", "Glass", "Porcelain", "Travel", "Enamel", "Bamboo"],
}
_SORTS = ["organic", "classic", "fair trade", "limited", "house", "gift", "small", "large", "premium"]


class Product(NamedTuple):
    """What the shop sells."""

    sku: str
    title: str
    text: str


def products() -> list[Product]:
    """324 products, the same every time."""
    rng = random.Random(1)
    made = []
    for kind, names in _KINDS.items():
        for name, sort in itertools.product(names, _SORTS):
            words = rng.sample(["aroma", "morning", "evening", "fresh", "strong", "mild", "daily", kind], 4)
            text = f"{sort} {kind}. " + " ".join(words)
            made.append(Product(f"sku-{len(made):03}", f"{name} {kind}, {sort}", text))
    return made


class Engine:
    """Full-text search as the shop has it: BM25, and nothing about what people buy."""

    def __init__(self, catalogue: list[Product]) -> None:
        self.titles = {one.sku: one.title for one in catalogue}
        self._base = sqlite3.connect(":memory:", check_same_thread=False)
        self._base.execute(
            "CREATE VIRTUAL TABLE products USING fts5(sku UNINDEXED, title, text, tokenize='porter')"
        )
        self._base.executemany("INSERT INTO products VALUES (?, ?, ?)", catalogue)

    def search(self, query: str, n: int = 50) -> list[str]:
        """The best hits, best first; any word of the query may match."""
        words = [word for word in "".join(c if c.isalnum() else " " for c in query).split() if word]
        if not words:
            return []
        found = self._base.execute(
            "SELECT sku FROM products WHERE products MATCH ? ORDER BY bm25(products, 0, 4, 1), sku LIMIT ?",
            (" OR ".join(f'"{word}"' for word in words), n),
        )
        return [sku for (sku,) in found]


class OpenSearch:
    """The same search in OpenSearch, whose plugin for UBI records it as well where it is installed."""

    def __init__(self, catalogue: list[Product], address: str, *, index: str = "shop") -> None:
        self.titles = {one.sku: one.title for one in catalogue}
        self._index = index
        self._http = httpx.Client(base_url=address, timeout=10.0)
        lines = [
            json.dumps(line)
            for one in catalogue
            for line in ({"index": {"_index": index, "_id": one.sku}}, one._asdict())
        ]
        kind = {"content-type": "application/x-ndjson"}
        body = "\n".join(lines) + "\n"
        self._http.post("/_bulk?refresh=true", content=body, headers=kind).raise_for_status()

    def search(self, query: str, n: int = 50) -> list[str]:
        """The best hits, best first."""
        asked = {
            "size": n,
            "_source": False,
            "query": {"multi_match": {"query": query, "fields": ["title^4", "text"]}},
            "ext": {"ubi": {"user_query": query, "object_id_field": "sku"}},
        }
        answer = self._http.post(f"/{self._index}/_search", json=asked).raise_for_status().json()
        return [hit["_id"] for hit in answer["hits"]["hits"]]


class Shoppers:
    """People who search: for some words often, for most rarely. What they like, the words of a product do not tell."""

    def __init__(self, catalogue: list[Product], *, seed: int = 1) -> None:
        self._rng = random.Random(seed)
        self.queries = [f"{kind} {sort}" for sort in ("", *_SORTS) for kind in _KINDS]
        self.queries = [query.strip() for query in self.queries]
        self._often = [1 / (rank + 1) for rank in range(len(self.queries))]  # Zipf
        taste = random.Random(7)
        self._liked = {one.sku: taste.random() ** 3 for one in catalogue}
        self._words = {one.sku: {*one.title.lower().replace(",", "").split()} for one in catalogue}

    def query(self) -> str:
        """What somebody searches for."""
        (query,) = self._rng.choices(self.queries, self._often)
        return query

    def attraction(self, query: str, sku: str) -> float:
        """How likely somebody who looks at it clicks: it is liked, and is what was searched for."""
        words = {*query.split()}
        match = len(words & self._words[sku]) / len(words)
        return 0.02 + 0.6 * self._liked[sku] * match**2

    def clicks(self, query: str, shown: list[str]) -> list[int]:
        """The places that somebody clicks, reading down until content or tired."""
        found = []
        for place, sku in enumerate(shown[:N_SHOWN]):
            if self._rng.random() < self.attraction(query, sku):
                found.append(place)
                if self._rng.random() < 0.6:
                    break
            if self._rng.random() < 0.12:
                break
        return found
