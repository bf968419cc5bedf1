"""Worlds that the top cannot tell apart."""

from __future__ import annotations

import numpy as np
import pytest

from rankloop.experiments.top_2016.impossible import PAIRS


def test_the_worlds_of_the_proof_are_those_of_the_table() -> None:
    made = PAIRS["top-1"]
    for world, share in enumerate(([0.3533, 0.3920, 0.3226], [0.3339, 0.3339, 0.4000])):
        np.testing.assert_allclose(made.expected_relevance(world), [0.45, 0.45, 0.40], atol=1e-12)
        np.testing.assert_allclose(made.expected_share(world), share, atol=5e-5)
    assert made.forced_squared() == pytest.approx(0.00243, abs=5e-6)
    gaps = [float(share[0] - share[1]) for share in map(PAIRS["top-2"].expected_share, (0, 1))]
    assert gaps == pytest.approx([0.0607, -0.0607], abs=1e-4)


def test_no_scores_do_better_in_both_worlds_than_what_is_forced() -> None:
    rng = np.random.default_rng(3)
    for made in PAIRS.values():
        aims = [made.expected_share(world) for world in (0, 1)]
        middle = np.mean(aims, axis=0)
        for w in (middle, *(middle + 0.1 * rng.normal(size=(50, made.n_items)))):
            lost = np.mean([((w - aim) ** 2).sum() for aim in aims])
            assert lost >= made.forced_squared() - 1e-12
        assert np.mean([((middle - aim) ** 2).sum() for aim in aims]) == pytest.approx(made.forced_squared())


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
