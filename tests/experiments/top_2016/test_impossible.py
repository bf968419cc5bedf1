"""Worlds that the top cannot tell apart, and the quick version of the experiment that plays in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rankloop import experiments
from rankloop.experiments.harness.reproduce import reproduce
from rankloop.experiments.top_2016.worlds import PAIRS


def test_every_claim_holds(tmp_path: Path) -> None:
    verdict = reproduce(experiments.get("top-2016-impossible"), out=tmp_path, quick=True)
    broken = [f"{claim.text}: {claim.measured}" for claim in verdict.claims if not claim.holds]
    assert not broken
    assert (tmp_path / "top-2016-impossible" / "impossible.png").exists()


@pytest.mark.parametrize("pair", PAIRS.values(), ids=lambda pair: pair.name)
def test_the_worlds_of_a_pair_show_the_same_and_want_different_orders(pair: object) -> None:
    made = PAIRS[pair.name]  # type: ignore[attr-defined]
    np.testing.assert_allclose(made.top_moments(0), made.top_moments(1), atol=1e-15)
    assert made.ndcg(0).argmax() != made.ndcg(1).argmax()
    assert made.forced_ndcg() > 0.01
    assert made.forced_squared() > 0.0005


@pytest.mark.parametrize("world", [0, 1])
def test_the_stream_brings_labels_as_often_as_the_world_says(world: int) -> None:
    made = PAIRS["top-1"]
    people = made.stream(world)
    rng = np.random.default_rng(1)
    seen = []
    for _ in range(4_000):
        people.arrive(rng=rng)
        order = people.best()
        labels = np.empty(3)
        labels[order.items] = people.respond(order, rng=rng)
        seen.append(labels)
    spread = np.sqrt(0.25 / len(seen))
    np.testing.assert_allclose(np.mean(seen, axis=0), made.expected_relevance(world), atol=4 * spread)
