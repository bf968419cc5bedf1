"""Three grades: two worlds that show any m - 1 labels alike and want items 1 and 2 in opposite orders."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import pytest
from mpmath import iv

A = ((0, 1, -1), (-1, 0, 1), (1, -1, 0))
C = (1, -1, 0)
Labels = tuple[int, ...]
# On the page docs/concepts/open-ndcg.md.
GAPS = {2: 0.1836, 3: 0.0466, 4: 0.0158, 5: 0.0061, 6: 0.0025, 7: 0.0010, 8: 0.00045}


def worlds(m: int) -> tuple[dict[Labels, Fraction], dict[Labels, Fraction]]:
    weights = {}
    for r in product(range(3), repeat=m):
        weight = A[r[0]][r[1]]
        for label in r[2:]:
            weight *= C[label]
        if weight:
            weights[r] = weight
    total = sum(weight for weight in weights.values() if weight > 0)
    return tuple(  # type: ignore[return-value]
        {r: Fraction(abs(weight), total) for r, weight in weights.items() if weight * sign > 0}
        for sign in (1, -1)
    )


def seen(world: dict[Labels, Fraction], places: Labels) -> Counter[Labels]:
    shown: Counter[Labels] = Counter()
    for r, chance in world.items():
        shown[tuple(r[i] for i in places)] += chance  # type: ignore[assignment]
    return shown


def lead(world: dict[Labels, Fraction]) -> Any:
    """E[G/Z] of item 1 minus that of item 2, as an interval that holds the true value."""
    total = iv.mpf(0)
    for r, chance in world.items():
        gains = sorted((2**label - 1 for label in r), reverse=True)
        Z = sum((gain * iv.log(2) / iv.log(i + 2) for i, gain in enumerate(gains)), iv.mpf(0))
        total += iv.mpf(chance.numerator) / chance.denominator * (2 ** r[0] - 2 ** r[1]) / Z
    return total


@pytest.mark.judges("2016-141")
@pytest.mark.parametrize("m", GAPS)
def test_any_m_minus_1_labels_look_alike(m: int) -> None:
    one, other = worlds(m)
    assert sum(one.values()) == sum(other.values()) == 1
    for places in combinations(range(m), m - 1):
        assert seen(one, places) == seen(other, places)
    assert one != other


@pytest.mark.judges("2016-141")
@pytest.mark.parametrize("m", GAPS)
def test_they_want_opposite_orders(m: int) -> None:
    behind, ahead = map(lead, worlds(m))
    assert behind.b < 0 < ahead.a  # the whole of each interval
    assert float(ahead.mid) == pytest.approx(GAPS[m], abs=10.0 ** -len(str(GAPS[m]).split(".")[1]))


@pytest.mark.parametrize(("m", "forced"), [(2, 0.0187), (3, 0.0028)])
def test_binary_labels_and_parity_force_a_loss_on_the_calibrated_squared_loss(m: int, forced: float) -> None:
    means = [[iv.mpf(0)] * m, [iv.mpf(0)] * m]
    for r in product((0, 1), repeat=m):
        Z = sum((iv.log(2) / iv.log(i + 2) for i in range(sum(r))), iv.mpf(0))
        for i in range(m):
            if r[i]:
                means[sum(r) % 2][i] += 1 / Z / 2 ** (m - 1)
    gap = sum(((a - b) ** 2 for a, b in zip(*means, strict=True)), iv.mpf(0)) / 4
    assert gap.a > 0
    assert float(gap.mid) == pytest.approx(forced, abs=1e-4)
