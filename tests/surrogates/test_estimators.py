"""Every estimator is unbiased, by going through every order; and which of them are the same."""

from __future__ import annotations

import itertools
import math
from functools import partial
from typing import Any

import numpy as np
import pytest

from rankloop.surrogates import KL, ListNet, RankSVM, SmoothDCG, Squared, Surrogate, estimators
from rankloop.surrogates.estimators import (
    by_lemma1,
    horvitz_thompson,
    inclusion_probability,
    lemma1,
    ordered_probability,
    pair_probability,
    paper,
    top_probability,
)
from tests.surrogates.cases import ESTIMABLE, LISTS, Floats, Ints, mean, name, orders, printed, probability

GAMMAS = [0.05, 0.4]
BASELINES: dict[str, Any] = {
    "none": None,
    "zero": lambda s: 0.0,
    "scores": lambda s: s,
    "a guess": lambda s: np.array([0.7, 2.0, 0.1, 1.0, 0.3])[: len(s)],
}


def arrays(which: str) -> tuple[Floats, Floats, Ints]:
    s, R, greedy = LISTS[which]
    assert all(s[a] >= s[b] for a, b in itertools.pairwise(greedy))
    return np.array(s), np.array(R, dtype=float), np.array(greedy)


def feedbacks(surrogate: Surrogate, m: int) -> range:
    """Every k that is enough: from the level to the whole list, which may be shorter."""
    return range(min(surrogate.level, m), m + 1)


@pytest.mark.judges("2016-096", "2016-122", "2016-123")
@pytest.mark.parametrize("which", LISTS)
@pytest.mark.parametrize("gamma", [*GAMMAS, 1.0])
def test_probabilities(which: str, gamma: float) -> None:
    """Errata B1, B2, B7, against the sum over every order."""
    _, _, greedy = arrays(which)
    m = len(greedy)
    given = {"greedy": greedy, "gamma": gamma}
    weights = [(order, probability(order, greedy, gamma)) for order in orders(m)]

    def chance(event: Any) -> Any:
        return pytest.approx(sum(weight for order, weight in weights if event(order)), abs=1e-14)

    for order, weight in weights:
        assert ordered_probability(order, **given) == pytest.approx(weight)
    for i in range(m):
        assert top_probability(i, **given) == chance(lambda order, i=i: order[0] == i)
        assert top_probability(i, **given) == pytest.approx((1 - gamma) * (i == greedy[0]) + gamma / m)
    for i, j in itertools.permutations(range(m), 2):
        assert pair_probability(i, j, **given) == chance(lambda order, i=i, j=j: {*order[:2]} == {i, j})
        assert ordered_probability([i, j], **given) == chance(lambda o, i=i, j=j: (*o[:2],) == (i, j))
    for k in range(1, m + 1):
        for size in range(1, m + 1):
            for items in itertools.combinations(range(m), size):
                seen = chance(lambda order, items=items, k=k: {*items} <= {*order[:k]})
                assert inclusion_probability(items, k=k, **given) == seen
        assert inclusion_probability(0, k=k, **given) == inclusion_probability([0], k=k, **given)


@pytest.mark.judges("2016-116")
@pytest.mark.parametrize("which", LISTS)
@pytest.mark.parametrize("surrogate", ESTIMABLE, ids=name)
@pytest.mark.parametrize("estimator", estimators.names())
def test_unbiased(estimator: str, surrogate: Surrogate, which: str) -> None:
    s, R, greedy = arrays(which)
    gradient = surrogate.gradient(s, R)
    # Five items have 120 orders: there one gamma and two baselines, the others with fewer items.
    long = len(s) == 5
    gammas, baselines = (GAMMAS[:1], ("none", "a guess")) if long else (GAMMAS, tuple(BASELINES))
    for k, gamma, kind in itertools.product(feedbacks(surrogate, len(s)), gammas, baselines):
        baseline = BASELINES[kind]
        guess = None if baseline is None else baseline(s)

        def z(shown: Ints, k: int = k, gamma: float = gamma, guess: Any = guess) -> Floats:
            labels, given = R[shown[:k]], {"greedy": greedy, "gamma": gamma, "baseline": guess}
            return estimators.get(estimator)(surrogate, s=s, shown=shown, labels=labels, **given)

        np.testing.assert_allclose(mean(z, greedy, gamma), gradient, atol=1e-10)


@pytest.mark.judges("2016-107", "2016-108", "2016-116", "2016-118")
@pytest.mark.parametrize("which", [which for which in LISTS if which != "one item"])
@pytest.mark.parametrize("surrogate", ESTIMABLE, ids=name)
@pytest.mark.parametrize("gamma", GAMMAS)
def test_the_paper_as_printed(surrogate: Surrogate, which: str, gamma: float) -> None:
    """Also where more labels than needed come back."""
    s, R, greedy = arrays(which)
    for shown in orders(len(s)):
        expected = printed(surrogate, s, shown, R, greedy, gamma)
        for k in feedbacks(surrogate, len(s)):
            z = paper(surrogate, s=s, shown=shown, labels=R[shown[:k]], greedy=greedy, gamma=gamma)
            np.testing.assert_allclose(z, expected, atol=1e-10)


@pytest.mark.parametrize("which", LISTS)
@pytest.mark.parametrize("surrogate", ESTIMABLE, ids=name)
def test_all_are_one_with_just_enough_labels(surrogate: Surrogate, which: str) -> None:
    """At k = level eq. (3), Horvitz-Thompson and the paper agree."""
    s, R, greedy = arrays(which)
    k = min(surrogate.level, len(s))
    for shown, gamma, baseline in itertools.product(orders(len(s)), GAMMAS, BASELINES.values()):
        guess = None if baseline is None else baseline(s)
        given = {
            "s": s,
            "shown": shown,
            "labels": R[shown[:k]],
            "greedy": greedy,
            "gamma": gamma,
            "baseline": guess,
        }
        z = paper(surrogate, **given)
        for estimator in (horvitz_thompson, by_lemma1):
            np.testing.assert_allclose(estimator(surrogate, **given), z, atol=1e-9)


@pytest.mark.judges("2016-099")
def test_the_squared_loss_by_estimating_the_identity() -> None:
    """Section 4.1: 2(s - R_tilde) with R_tilde by the example after Lemma 1."""
    s, R, greedy = arrays("four items")
    at_half = partial(ordered_probability, greedy=greedy, gamma=0.5)
    for shown in orders(4):
        given = {"s": s, "shown": shown, "labels": R[shown[:1]]}
        R_tilde = lemma1(lambda s, i, x: x * np.eye(4)[i[0]], level=1, probability=at_half, **given)
        z = paper(Squared(), greedy=greedy, gamma=0.5, **given)
        np.testing.assert_allclose(z, 2 * (s - R_tilde))


@pytest.mark.parametrize("surrogate", ESTIMABLE, ids=name)
def test_with_more_labels_lemma_1_is_another_estimator(surrogate: Surrogate) -> None:
    """For level < k < m the weights of eq. (3) and of Horvitz-Thompson agree only if every order is equally likely.

    A term is divided by C(m - level, k - level) P(these k items) in the one and by pi in the other.
    """
    s, R, greedy = arrays("two tied")
    m, level = 5, surrogate.level
    for k, gamma in itertools.product(range(level + 1, m), [*GAMMAS, 1.0]):
        apart = 0.0
        for shown in orders(m):
            given = {"s": s, "shown": shown, "labels": R[shown[:k]], "greedy": greedy, "gamma": gamma}
            difference = by_lemma1(surrogate, **given) - horvitz_thompson(surrogate, **given)
            apart = max(apart, float(np.abs(difference).max()))
            terms = itertools.permutations(shown[:k], level)
            seen = inclusion_probability(shown[:k], greedy=greedy, gamma=gamma, k=k)
            total = sum(surrogate.h(s, term, R[list(term)]) for term in terms)
            z = by_lemma1(surrogate, **given | {"baseline": s if surrogate.name == "squared" else None})
            np.testing.assert_allclose(z, total / (math.comb(m - level, k - level) * seen), atol=1e-9)
        assert apart < 1e-9 if gamma == 1.0 else apart > 0.1


@pytest.mark.judges("2016-101")
@pytest.mark.parametrize("surrogate", ESTIMABLE, ids=name)
def test_lemma_1_with_the_whole_list_is_the_gradient(surrogate: Surrogate) -> None:
    s, R, greedy = arrays("four items")
    for shown in orders(4):
        z = lemma1(
            surrogate.h,
            level=surrogate.level,
            s=s,
            shown=shown,
            labels=R[shown],
            probability=partial(ordered_probability, greedy=greedy, gamma=0.3),
        )
        np.testing.assert_allclose(z, surrogate.gradient(s, R), atol=1e-12)


@pytest.mark.judges("2016-098", "2016-099")
@pytest.mark.parametrize("k", [1, 2, 3])
def test_lemma_1_under_any_distribution(k: int) -> None:
    """The two illustrative functions after Lemma 1, under orders drawn from an arbitrary P."""
    x, e = np.array([0.5, -2.0, 3.0]), np.eye(2)
    P = dict(zip(map(tuple, orders(3)), [0.3, 0.1, 0.05, 0.25, 0.2, 0.1], strict=True))

    def p(items: Ints) -> float:
        return sum(weight for order, weight in P.items() if order[:k] == tuple(items))

    def identity(s: Floats, items: Ints, x: Floats) -> Floats:
        return x * np.eye(3)[items[0]]

    def sums(s: Floats, items: Ints, x: Floats) -> Floats:
        return x * [e[0], e[0] + e[1], e[1]][items[0]]

    def expected(h: Any, baseline: Any) -> Floats:
        given = {"level": 1, "s": np.zeros(3), "probability": p, "baseline": baseline}
        return sum(
            weight * lemma1(h, shown=order, labels=x[list(order[:k])], **given) for order, weight in P.items()
        )

    for baseline in (None, [1.0, -1.0, 2.0]):
        np.testing.assert_allclose(expected(identity, baseline), x)
        np.testing.assert_allclose(expected(sums, baseline), [x[0] + x[1], x[1] + x[2]])
    if k == 1:
        g = lemma1(sums, level=1, s=np.zeros(3), shown=[1, 0, 2], labels=[-2.0], probability=p)
        np.testing.assert_allclose(g, [-2.0 / 0.3, -2.0 / 0.3])  # h_2(x_2) / p(2)


@pytest.mark.judges("2016-098")
def test_lemma_1_for_three_labels_at_a_time() -> None:
    """A product of three labels, under the orders of Algorithm 1, with three and with four labels seen."""
    x, greedy, gamma = np.array([1.0, 2.0, 3.0, 5.0]), np.array([2, 0, 3, 1]), 0.3

    def h(s: Floats, items: Ints, x: Floats) -> Floats:
        return x.prod() * np.array([1.0, items[0]])

    F = sum(h(x, np.array(items), x[list(items)]) for items in itertools.permutations(range(4), 3))
    for k in (3, 4):

        def z(shown: Ints, k: int = k) -> Floats:
            p = partial(ordered_probability, greedy=greedy, gamma=gamma)
            return lemma1(h, level=3, s=x, shown=shown, labels=x[shown[:k]], probability=p, k=k)

        np.testing.assert_allclose(mean(z, greedy, gamma), F)


def test_whole_families_in_one_formula() -> None:
    """Errata B5, B6: other published forms are the same estimator with another guess."""
    s, R, greedy = arrays("four items")
    for shown in orders(4):
        i, p = shown[0], top_probability(shown[0], greedy=greedy, gamma=0.2)
        given = {"s": s, "shown": shown, "labels": R[shown[:1]], "greedy": greedy, "gamma": 0.2}
        e = np.eye(4)[i]
        single_index = 2 * (s[i] - R[i]) * e / p
        np.testing.assert_allclose(paper(Squared(), baseline=s, **given), single_index, atol=1e-12)
        np.testing.assert_allclose(paper(KL(), baseline=s, **given), paper(KL(), **given), atol=1e-12)
        exact_scores = np.exp(s) - np.exp(R[i]) * e / p
        np.testing.assert_allclose(paper(KL(), baseline=-1e9, **given), exact_scores, atol=1e-12)
        np.testing.assert_allclose(paper(SmoothDCG(), baseline=0, **given), paper(SmoothDCG(), **given))


def test_a_perfect_guess_leaves_nothing_to_estimate() -> None:
    s, R, greedy = arrays("two tied")
    for surrogate, shown in itertools.product(ESTIMABLE, orders(5)):
        z = horvitz_thompson(
            surrogate, s=s, shown=shown, labels=R[shown[:2]], greedy=greedy, gamma=0.1, baseline=R
        )
        np.testing.assert_allclose(z, surrogate.gradient(s, R), atol=1e-12)


def test_a_list_of_one_has_no_pair() -> None:
    given = {"s": [0.3], "shown": [0], "labels": [2.0], "greedy": [0], "gamma": 0.1}
    for estimator in estimators.names():
        assert estimators.get(estimator)(RankSVM(), **given).tolist() == [0.0]
        assert estimators.get(estimator)(Squared(), **given) == pytest.approx(-3.4)


def test_with_every_label_seen_anything_goes() -> None:
    R = np.array([1.0, 0.0, 2.0])
    given = {"s": np.zeros(3), "shown": [2, 0, 1], "labels": R[[2, 0, 1]], "greedy": [0, 1, 2], "gamma": 0.1}
    for estimator in estimators.names():
        z = estimators.get(estimator)(ListNet(), **given)
        np.testing.assert_allclose(z, ListNet().gradient(np.zeros(3), R))


@pytest.mark.parametrize("estimator", estimators.names())
def test_too_few_labels(estimator: str) -> None:
    given = {"s": np.zeros(3), "shown": [0, 1, 2], "labels": [1.0], "greedy": [0, 1, 2], "gamma": 0.1}
    with pytest.raises(ValueError, match="ranksvm needs k >= 2, got k=1"):
        estimators.get(estimator)(RankSVM(), **given)
    with pytest.raises(ValueError, match="listnet needs the labels of the whole list, got k=1"):
        estimators.get(estimator)(ListNet(), **given)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"gamma": 0.0}, "gamma must be a finite number above 0 and at most 1, got 0.0"),
        ({"gamma": 1.5}, "gamma must be a finite number above 0 and at most 1, got 1.5"),
        ({"shown": [0, 1, 1]}, r"shown must list each of 0..2 once, got \[0, 1, 1\]"),
        ({"greedy": [1, 2, 3]}, r"greedy must list each of 0..2 once, got \[1, 2, 3\]"),
        ({"greedy": [0, 1]}, r"items must be different items of a list of 2, got \[2\]"),
        ({"labels": [1, 2, 3, 4]}, "labels are given for 4 items of a list of 3"),
        ({"labels": []}, "labels must list one number per item"),
        ({"baseline": [1, 2]}, r"baseline must be one number, or one for each of 3 items, got \[1, 2\]"),
    ],
)
def test_wrong_rounds(wrong: dict[str, Any], message: str) -> None:
    given = {"s": np.zeros(3), "shown": [2, 0, 1], "labels": [1.0], "greedy": [0, 1, 2], "gamma": 0.1} | wrong
    with pytest.raises(ValueError, match=message):
        horvitz_thompson(Squared(), **given)


def test_wrong_probabilities() -> None:
    with pytest.raises(ValueError, match="a list of 1 has no pair"):
        pair_probability(0, 0, greedy=[0], gamma=0.5)
    with pytest.raises(ValueError, match=r"items must be different items of a list of 2, got \[1, 1\]"):
        pair_probability(1, 1, greedy=[0, 1], gamma=0.5)
    with pytest.raises(ValueError, match="k must be a whole number from 1 to 2, got 3"):
        inclusion_probability(0, greedy=[0, 1], gamma=0.5, k=3)
    with pytest.raises(
        ValueError, match="need 1 <= level <= k <= number of labels, got level=2, k=1, 1 labels"
    ):
        lemma1(RankSVM().h, level=2, s=[0.0, 0.0], shown=[0, 1], labels=[1.0], probability=lambda items: 1.0)
