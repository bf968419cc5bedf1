"""What the labels of a few items cannot tell: Lemmas 2 and 3, Theorem 5.2, and what holds beyond them.

A function of the labels is a sum of terms with k labels each if and only if every mixed difference in k + 1 labels
vanishes, so one that does not vanish proves that it is none."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from mpmath import iv

from rankloop.surrogates import CalibratedSquared, ListNet, RankSVM, Surrogate
from tests.surrogates.cases import ESTIMABLE, Floats, name

# Table 1 of the preprint: the eight relevance vectors and the two distributions over them.
TABLE = np.array(
    [[int(r) for r in column] for column in ("000", "110", "101", "011", "100", "010", "001", "111")]
)
P = np.array([0.0, 0.1, 0.15, 0.05, 0.2, 0.3, 0.2, 0.0])
P_TILDE = np.array([0.0, 0.3, 0.0, 0.0, 0.15, 0.15, 0.4, 0.0])


def mixed_difference(
    surrogate: Surrogate, s: Floats, R: Floats, items: Sequence[int], steps: Floats
) -> Floats:
    """The gradient's difference in the labels of each of `items`, from R to R + steps."""
    total = np.zeros(len(s))
    for up in itertools.product((False, True), repeat=len(items)):
        labels = R.copy()
        labels[list(items)] += steps * up
        total += (-1) ** (len(items) - sum(up)) * surrogate.gradient(s, labels)
    return total


@pytest.mark.judges("2016-097")
@pytest.mark.parametrize("surrogate", ESTIMABLE, ids=name)
def test_differences_of_those_that_decompose(surrogate: Surrogate) -> None:
    """They vanish in one label more than the level, and not in `level` labels."""
    rng = np.random.default_rng(5)
    largest = 0.0
    for _ in range(20):
        s, R = rng.normal(size=4), rng.integers(0, 3, size=4).astype(float)
        steps = rng.integers(1, 3, size=surrogate.level + 1)
        for items in itertools.combinations(range(4), surrogate.level + 1):
            difference = mixed_difference(surrogate, s, R, items, steps)
            np.testing.assert_allclose(difference, 0.0, atol=1e-12)
            fewer = mixed_difference(surrogate, s, R, items[1:], steps[1:])
            largest = max(largest, float(np.abs(fewer).max()))
    assert largest > 0.1


@pytest.mark.judges("2016-097", "2016-109")
def test_lemma_2() -> None:
    """Erratum B18: at s = (1, 0, 0), the coefficient of e_1 has a mixed difference in R_1 and R_2 of -1."""
    s, R = np.array([1.0, 0.0, 0.0]), np.zeros(3)
    assert mixed_difference(RankSVM(), s, R, (0, 1), np.ones(2))[0] == -1.0


@pytest.mark.judges("2016-097", "2016-111")
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("m", [3, 4, 6])
def test_lemma_3(m: int, k: int) -> None:
    steps = np.array([2.0, 1.0, 1.0])[: k + 1]
    difference = mixed_difference(ListNet(), np.zeros(m), np.zeros(m), range(k + 1), steps)
    assert abs(difference[0]) > 1e-4


@pytest.mark.judges("2016-112")
@pytest.mark.parametrize("m", [2, 3, 4, 5, 6])
def test_lemma_3_up_to_the_whole_list(m: int) -> None:
    """Three grades: no k < m is enough. Two grades: m - 1 labels at a time are, which the remark after Lemma 3 denies.

    With two grades there is one mixed difference in all m labels. By symmetry it is the same for every entry of
    softmax(R), and the entries sum to 1, whose difference is 0.
    """
    s, R = np.zeros(m), np.zeros(m)
    graded = mixed_difference(ListNet(), s, R, range(m), np.array([2.0] + [1.0] * (m - 1)))
    assert np.abs(graded).max() > 1e-4
    binary = mixed_difference(ListNet(), s, R, range(m), np.ones(m))
    np.testing.assert_allclose(binary, 0.0, atol=1e-14)
    if m > 2:
        one_fewer = mixed_difference(ListNet(), s, R, range(m - 1), np.ones(m - 1))
        assert np.abs(one_fewer).max() > 1e-5


@pytest.mark.parametrize("m", range(2, 9))
def test_the_calibrated_loss_needs_every_label(m: int) -> None:
    difference = mixed_difference(CalibratedSquared(), np.zeros(m), np.zeros(m), range(m), np.ones(m))
    assert np.abs(difference).min() > 0.1


@pytest.mark.judges("2016-137", "2016-138", "2016-139")
def test_theorem_5_2() -> None:
    """Erratum B15: the same for whoever sees one label, and different for whoever ranks by E[G/Z]."""
    for p in (P, P_TILDE):
        assert p.sum() == pytest.approx(1.0)
        np.testing.assert_allclose(p @ TABLE, [0.45, 0.45, 0.4])
    a, b = (p @ CalibratedSquared().target(TABLE) for p in (P, P_TILDE))
    np.testing.assert_allclose(a, [0.3533, 0.3920, 0.3226], atol=5e-5)
    np.testing.assert_allclose(b, [0.3339, 0.3339, 0.4000], atol=5e-5)
    assert np.argsort(-a).tolist() == [1, 0, 2]
    assert np.argmax(b) == 2


@pytest.mark.judges("2016-137", "2016-140")
def test_what_theorem_5_2_forces() -> None:
    """Erratum B16: the best compromise is the midpoint, and it costs ||a - b||^2 / 4 = 0.00243 a round."""
    loss = CalibratedSquared()
    a, b = (p @ loss.target(TABLE) for p in (P, P_TILDE))

    def regret(s: Floats) -> float:
        each = [p @ (loss.value(s, TABLE) - loss.value(best, TABLE)) for p, best in ((P, a), (P_TILDE, b))]
        return float(np.mean(each))

    assert regret((a + b) / 2) == pytest.approx(np.sum((a - b) ** 2) / 4)
    assert regret((a + b) / 2) == pytest.approx(0.00243, abs=5e-6)
    rng = np.random.default_rng(1)
    for s in [a, b, *((a + b) / 2 + rng.normal(scale=0.02, size=(200, 3)))]:
        assert regret(s) == pytest.approx(np.sum((s - (a + b) / 2) ** 2) + regret((a + b) / 2))
    assert regret(a) == pytest.approx(2 * regret((a + b) / 2))  # "one of the two", as the proof has it


def indistinguishable(m: int) -> tuple[Floats, Floats]:
    """The vectors with r_1 != r_2, by the sign of a function that has no part in m - 2 labels or fewer."""
    vectors = np.array(list(itertools.product((0, 1), repeat=m)))
    without_first = (-1) ** vectors[:, 1:].sum(axis=1)
    without_second = (-1) ** (vectors[:, 0] + vectors[:, 2:].sum(axis=1))
    v = without_first - without_second
    return vectors[v > 0], vectors[v < 0]


@pytest.mark.judges("2016-141")
@pytest.mark.parametrize("m", range(3, 10))
def test_top_k_does_not_help_up_to_m_minus_2(m: int) -> None:
    """Erratum B17: equal in any m - 2 labels, and with opposite orders of the first two items."""
    p, p_tilde = indistinguishable(m)
    assert len(p) == len(p_tilde) == 2 ** (m - 2)
    for items in itertools.combinations(range(m), m - 2):
        seen = [sorted(map(tuple, vectors[:, items].tolist())) for vectors in (p, p_tilde)]
        assert seen[0] == seen[1]
    a, b = (CalibratedSquared().target(vectors).mean(axis=0) for vectors in (p, p_tilde))
    assert (a[0] - a[1]) * (b[0] - b[1]) < 0
    assert abs(a[0] - a[1]) > 1e-4


def test_the_pair_for_four_items() -> None:
    """Erratum B17 spelled out: the gap is (1 + 1/Z(3) - 2/Z(2)) / 4, Z(n) the best DCG with n relevant items."""
    p, p_tilde = indistinguishable(4)
    assert {"".join(map(str, r)) for r in p} == {"0101", "0110", "1000", "1011"}
    assert {"".join(map(str, r)) for r in p_tilde} == {"0100", "0111", "1001", "1010"}
    a, b = (CalibratedSquared().target(vectors).mean(axis=0) for vectors in (p, p_tilde))
    assert abs(a[0] - a[1]) == pytest.approx(0.0607, abs=5e-5)
    assert a[0] - a[1] == pytest.approx(b[1] - b[0])


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
