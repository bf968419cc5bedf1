"""What section 4.1 and 5 of the 2016 paper say of surrogates: ListNet, structured hinges, calibration, Lemma 4."""

from __future__ import annotations

from itertools import combinations, permutations, product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

from rankloop import surrogates
from rankloop.games import ranking_game
from rankloop.games.exact import RowSpace
from rankloop.surrogates import CalibratedSquared
from tests.surrogates.test_impossibility import P_TILDE, TABLE

Floats = NDArray[np.float64]


def softmax(v: Floats) -> Floats:
    e = np.exp(v - v.max(axis=-1, keepdims=True))
    weights: Floats = e / e.sum(axis=-1, keepdims=True)
    return weights


def divergence(p: Floats, q: Floats) -> float:
    return float((p * np.log(p / q)).sum())


@pytest.mark.judges("2016-113")
def test_listnet_is_the_divergence_less_the_entropy() -> None:
    rng, listnet = np.random.default_rng(1), surrogates.get("listnet")
    wrong = []
    for _ in range(50):
        s, R = rng.normal(size=6), rng.integers(0, 5, 6).astype(float)
        p, q = softmax(R), softmax(s)
        minus_entropy = float((p * np.log(p)).sum())
        value = float(listnet.value(s, R))
        assert value == pytest.approx(divergence(p, q) - minus_entropy, rel=1e-12)
        wrong.append(abs(value - (divergence(q, p) - minus_entropy)))  # the other way round
    assert max(wrong) > 0.1


def structured_gradient(s: Floats, R: tuple[int, ...]) -> Floats:
    """A gradient of max over orders of 1 - DCG/Z + the lead of that order over the best, as by Chapelle and others."""
    m = len(s)
    worth = 1 / np.log2(2 + np.arange(m))
    gains = 2.0 ** np.array(R) - 1
    best = sorted(range(m), key=lambda i: -R[i])
    Z = float(np.sort(gains)[::-1] @ worth) or 1.0

    def weights(order: list[int]) -> Floats:
        placed = np.empty(m)
        placed[order] = worth
        return placed

    def margin(order: tuple[int, ...]) -> float:
        return 1 - float(gains[list(order)] @ worth) / Z + float(s @ weights(list(order)))

    return weights(list(max(permutations(range(m)), key=margin))) - weights(best)


def mixed(
    gradient: dict[tuple[int, ...], Floats], low: tuple[int, ...], up: tuple[int, ...], items: tuple[int, ...]
) -> Floats:
    total = np.zeros(len(low))
    for raised in product((0, 1), repeat=len(items)):
        labels = list(low)
        for item, of in zip(items, raised, strict=True):
            labels[item] = up[item] if of else low[item]
        total += (-1) ** (len(items) - sum(raised)) * gradient[tuple(labels)]
    return total


@pytest.mark.judges("2016-117")
@pytest.mark.parametrize("m", [3, 4])
def test_structured_surrogates_cannot_be_estimated(m: int) -> None:
    # For every k < m some mixed difference in k + 1 labels does not vanish: no sum of terms with k labels each.
    s = np.random.default_rng(1).normal(size=m) / 10
    hinge = {R: structured_gradient(s, R) for R in product((0, 1, 2), repeat=m)}
    squared = {R: surrogates.get("squared").gradient(s, np.array(R, float)) for R in hinge}
    for k in range(1, m):
        largest = {"hinge": 0.0, "squared": 0.0}
        for items in combinations(range(m), k + 1):
            for name, gradient in (("hinge", hinge), ("squared", squared)):
                for up in product((1, 2), repeat=m):
                    found = float(np.abs(mixed(gradient, (0,) * m, up, items)).max())
                    largest[name] = max(largest[name], found)
        assert largest["hinge"] > 0.1
        assert largest["squared"] < 1e-12  # which can be estimated from one


def lists(p: float) -> tuple[Floats, Floats]:
    """(2, 0, 0) with probability 1 - p, (0, 1, 0) with p."""
    return np.array([[2.0, 0, 0], [0, 1, 0]]), np.array([1 - p, p])


def best_pairs(labels: Floats, shares: Floats) -> Floats:
    """The scores with the least expected RankSVM loss, as a linear programme."""
    m = labels.shape[1]
    rows, costs = [], []
    for i, j in permutations(range(m), 2):
        rows.append(np.eye(m)[j] - np.eye(m)[i])
        costs.append(float(shares @ (labels[:, i] > labels[:, j])))
    n = len(rows)
    solved = linprog(
        np.concatenate([np.zeros(m), costs]),
        A_ub=np.column_stack([np.array(rows), -np.eye(n)]),
        b_ub=-np.ones(n),
        bounds=[(-5, 5)] * m + [(0, None)] * n,
    )
    return np.asarray(solved.x[:m])


@pytest.mark.judges("2016-133")
def test_convex_surrogates_are_not_calibrated() -> None:
    # Their minimisers put first an item that E[G/Z] does not, so the best scores are not best for NDCG.
    labels, shares = TABLE.astype(float), P_TILDE
    wanted = shares @ CalibratedSquared().target(labels)
    assert wanted[2] > wanted[0] + 0.06  # erratum B15
    minimisers = {
        "squared": shares @ labels,
        "kl": np.log(shares @ np.exp(labels)),
        "ranksvm": best_pairs(labels, shares),
    }
    for name, s in minimisers.items():
        phi = surrogates.get(name)
        if name != "ranksvm":
            np.testing.assert_allclose(
                shares @ phi.gradient(np.tile(s, (len(labels), 1)), labels), 0, atol=1e-12
            )
        assert s[0] > s[2] + 0.02
    graded, shares = lists(0.55)
    wanted = shares @ CalibratedSquared().target(graded)
    of_listnet = np.log(shares @ softmax(graded))
    assert wanted[1] > wanted[0] + 0.09
    assert of_listnet[0] > of_listnet[1] + 0.1


def same_order(one: Floats, other: Floats) -> bool:
    return bool((np.argsort(one) == np.argsort(other)).all())


@pytest.mark.judges("2016-136")
def test_with_normalised_gains_for_labels_others_are_calibrated() -> None:
    # KL with G/Z where it has e^R, ListNet with G/Z where it has softmax(R): both are least at log E[G/Z].
    rng = np.random.default_rng(2)
    as_printed = naive = 0
    for _ in range(200):
        labels, shares = rng.integers(0, 4, (5, 4)).astype(float), rng.dirichlet(np.ones(5))
        targets = CalibratedSquared().target(labels)
        wanted = shares @ targets
        if (wanted <= 0).any():
            continue
        s = np.log(wanted)
        of_kl = np.exp(s) - shares @ targets
        of_listnet = float(wanted.sum()) * softmax(s) - shares @ targets
        np.testing.assert_allclose(
            [of_kl, of_listnet], 0, atol=1e-12
        )  # both are convex in s, so this is the least
        as_printed += not same_order(shares @ np.exp(labels), wanted)
        naive += not same_order(shares @ np.exp(targets), wanted)  # G/Z in the place of R itself will not do
    assert as_printed > 40
    assert naive > 0


@pytest.mark.judges("2016-127")
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 4.0, np.inf])
def test_lemma_4_the_norm_is_that_of_the_longest_row(p: float) -> None:
    rng = np.random.default_rng(3)
    exceeded = 0
    for _ in range(20):
        X = rng.normal(size=(6, 4))
        rows = np.linalg.norm(X, ord=p, axis=1)
        u = rng.normal(size=(500, 6))
        u /= np.abs(u).sum(axis=1, keepdims=True)
        assert (np.linalg.norm(u @ X, ord=p, axis=1) <= rows.max() + 1e-12).all()
        units = np.linalg.norm(np.eye(6) @ X, ord=p, axis=1)
        assert units.max() == pytest.approx(rows.max(), rel=1e-12)  # attained
        exceeded += bool((units > rows.mean()).any())
    assert exceeded == 20  # with the mean row for the longest it fails


@pytest.mark.judges("2016-138")
@pytest.mark.parametrize("m", [2, 3, 4])
def test_worlds_look_alike_exactly_if_mean_labels_agree(m: int) -> None:
    # Whatever is on top, its label has the same law in two worlds exactly if E[R] is the same: over all outcomes the
    # signals span what one and the labels span, no less and no more.
    game = ranking_game(measure="sum_loss", n_items=m, k=1)
    signals = RowSpace(game.signal_rows(range(game.n_actions))[0])
    labels = np.array([[1] * game.n_outcomes, *np.array(game.outcomes).T], dtype=object)
    assert all(signals.coefficients(row) is not None for row in labels)
    assert len(signals.chosen) == m + 1
    # From two labels at once more can be told: worlds with the same E[R] need not look alike.
    two = ranking_game(measure="sum_loss", n_items=m, k=2)
    assert len(RowSpace(two.signal_rows(range(two.n_actions))[0]).chosen) > m + 1
