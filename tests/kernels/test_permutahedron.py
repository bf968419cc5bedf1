"""The leader over lists against slow solvers, its mixture of shuffled lists, and all their chances by enumeration."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import nnls

from rankloop.kernels import permutahedron

Floats = NDArray[np.float64]


def discounts(kind: int, m: int) -> Floats:
    made = [1 / np.log2(np.arange(m) + 2), np.arange(m)[::-1] / 1.0, (np.arange(m) < (m + 1) // 2) / 1.0]
    return np.asarray(made[kind] - made[kind].min())


def led(G: Floats, f: Floats, beta: float) -> tuple[NDArray[np.int64], permutahedron.LeaderScratch, float]:
    order, scratch = np.arange(len(f)), permutahedron.leader_scratch(len(f))
    permutahedron.sort_again(G, order)
    return order, scratch, permutahedron.lead(G, order, f, beta, scratch)


def parts(breaks: Floats) -> Iterator[tuple[float, list[list[int]]]]:
    """How long each cut into parts lasts, and its parts: the definition, spelled out."""
    ends = np.unique([0.0, *breaks, 1.0])
    for start, end in itertools.pairwise(ends):
        found: list[list[int]] = [[]]
        for place, until in enumerate(breaks):
            found[-1].append(place)
            if until > start and place < len(breaks) - 1:
                found.append([])
        yield end - start, found


def lists(breaks: Floats) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Every list of places and its chance."""
    for lasts, cut in parts(breaks):
        shuffles = list(itertools.product(*(list(itertools.permutations(part)) for part in cut)))
        for one in shuffles:
            yield lasts / len(shuffles), tuple(place for part in one for place in part)


def moved(places: tuple[int, ...], place: int, k: int) -> tuple[int, ...]:
    """`place` moved forward to position k - 1, if it stands further back."""
    if places.index(place) < k:
        return places
    rest = [other for other in places if other != place]
    return (*rest[: k - 1], place, *rest[k - 1 :])


def example(seed: int, m: int) -> tuple[Floats, Floats, float]:
    rng = np.random.default_rng(seed)
    G = rng.normal(size=m) * 10.0 ** rng.uniform(-1, 2)
    if seed % 3 == 0:
        G = np.round(G)  # ties
    return G, discounts(seed % 3, m), 10.0 ** rng.uniform(-1, 2)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 5))
def test_the_leader(seed: int, m: int) -> None:
    G, f, beta = example(seed, m)
    order, scratch, distance = led(G, f, beta)
    p = np.empty(m)
    p[order] = scratch.p
    corners = np.array(list(itertools.permutations(f)))
    # Optimal: no list is further along the gradient.
    slope = G / beta - p
    assert ((corners - p) @ slope).max() <= 1e-9 * (1 + np.abs(slope).max())
    # A mixture of lists: their weights, found by non-negative least squares.
    heavy = 1e3
    rows = np.vstack([corners.T, np.full(len(corners), heavy)])
    assert nnls(rows, np.append(p, heavy), maxiter=10_000)[1] < 1e-6
    assert distance == pytest.approx(0.5 * (f @ f - p @ p), abs=1e-9)
    assert G[order].tolist() == sorted(G, reverse=True)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 7))
def test_the_mixture_has_the_leader_s_means(seed: int, m: int) -> None:
    G, f, beta = example(seed, m)
    _, scratch, _ = led(G, f, beta)
    breaks = np.empty(m)
    permutahedron.find_breaks(f, scratch, breaks)
    assert ((breaks >= 0) & (breaks <= 1)).all()
    means = np.zeros(m)
    for lasts, cut in parts(breaks):
        for part in cut:
            means[part] += lasts * f[part].mean()
    np.testing.assert_allclose(means, scratch.p, atol=1e-9)
    for k in range(m + 1):
        found, expected = np.empty(m), np.zeros(m)
        permutahedron.first_chances(breaks, k, found)
        for lasts, cut in parts(breaks):
            for part in cut:
                expected[part] += lasts * np.clip(k - part[0], 0, len(part)) / len(part)
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_where_nothing_is_known_all_lists_are_equally_likely() -> None:
    f = discounts(0, 6)
    _, scratch, _ = led(np.zeros(6), f, 1.0)
    breaks = np.empty(6)
    permutahedron.find_breaks(f, scratch, breaks)
    assert breaks.tolist() == [0, 0, 0, 0, 0, 1]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5))
def test_chances_by_enumeration(seed: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    breaks = np.append(np.sort(rng.random(m - 1))[rng.permutation(m - 1)], 1.0)
    breaks[:-1] = np.where(rng.random(m - 1) < 0.2, np.round(breaks[:-1]), breaks[:-1])
    explore = rng.random(m) * 0.9 / m
    tree = permutahedron.tree_scratch(m)
    permutahedron.plant(breaks, explore, tree)
    for k in range(1, m + 1):
        expected = np.zeros((m, m))
        for weight, places in lists(breaks):
            expected[places, np.arange(m)] += weight * (1 - explore.sum())
            for place in range(m):
                expected[moved(places, place, k), np.arange(m)] += weight * explore[place]
        found = [
            [permutahedron.chance(breaks, explore, k, place, position, tree) for position in range(m)]
            for place in range(m)
        ]
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_drawn_lists_have_their_chances() -> None:
    breaks = np.array([0.3, 0.0, 1.0, 0.6, 1.0])
    m, n = len(breaks), 20_000
    counts, places = np.zeros((m, m)), np.empty(m, np.int64)
    rng = np.random.default_rng(1)
    for key in rng.integers(0, 2**63, n, dtype=np.uint64):
        permutahedron.draw_places(breaks, rng.random(), key, places)
        counts[places, np.arange(m)] += 1
    expected = np.zeros((m, m))
    for weight, one in lists(breaks):
        expected[one, np.arange(m)] += weight
    assert (np.abs(counts / n - expected) <= 5 * np.sqrt(expected * (1 - expected) / n)).all()
