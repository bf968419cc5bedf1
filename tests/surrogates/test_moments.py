"""How much the estimates scatter: exact second moments, Lemma 5 with its errata, and who beats whom."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankloop import surrogates
from rankloop.surrogates import KL, RankSVM, SmoothDCG, Squared, Surrogate, estimators
from rankloop.surrogates.moments import lemma5, second_moment
from tests.surrogates.cases import ESTIMABLE, LISTS, Floats, Ints, mean, name

FEATURES = np.array([[0.5, -0.2], [1.0, 0.3], [-0.4, 0.8], [0.1, 0.1], [0.7, -0.9]])
BOUNDED = [Squared(), RankSVM(), KL(), SmoothDCG(), SmoothDCG(epsilon=0.1)]


@pytest.mark.parametrize("which", ["two items", "all tied", "four items"])
@pytest.mark.parametrize("surrogate", ESTIMABLE, ids=name)
def test_second_moments_by_every_order(surrogate: Surrogate, which: str) -> None:
    s, R, greedy = map(np.array, LISTS[which])
    X = FEATURES[: len(s)]
    for estimator, k in itertools.product(estimators.names(), range(surrogate.level, len(s) + 1)):

        def squared_length(shown: Ints, estimator: str = estimator, k: int = k) -> Floats:
            z = estimators.get(estimator)(
                surrogate, s=s, shown=shown, labels=R[shown[:k]], greedy=greedy, gamma=0.2
            )
            return np.sum((X.T @ z) ** 2)

        computed = second_moment(estimator, surrogate, X=X, s=s, R=R, greedy=greedy, gamma=0.2, k=k)
        assert computed == pytest.approx(mean(squared_length, greedy, 0.2))


@st.composite
def bounded_lists(draw: Any) -> dict[str, Any]:
    """Rows of length at most R_D, weights of length at most U, labels at most R_max; often right at the bound."""
    m, R_D, U = (
        draw(st.integers(1, 5)),
        draw(st.sampled_from([0.1, 1.0, 2.0])),
        draw(st.sampled_from([0.0, 0.1, 1.5])),
    )
    R_max = draw(st.integers(0, 4))
    alike = draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X, w = rng.normal(size=(m, 1 if alike else 3)), rng.normal(size=1 if alike else 3)
    X = np.abs(X) if alike else X
    X *= R_D / np.linalg.norm(X, axis=1, keepdims=True)
    s = X @ (w * U / np.linalg.norm(w))
    R = rng.integers(0, R_max + 1, size=m)
    limits = {"n_items": m, "feature_bound": R_D, "radius": U, "max_grade": R_max}
    gamma = draw(st.sampled_from([0.01, 0.3, 1.0]))
    return {"list": {"X": X, "s": s, "R": R, "greedy": np.argsort(-s), "gamma": gamma}, "limits": limits}


@pytest.mark.judges("2016-128", "2016-155")
@pytest.mark.parametrize("surrogate", BOUNDED, ids=str)
@settings(max_examples=40)
@given(drawn=bounded_lists())
def test_lemma_5(surrogate: Surrogate, drawn: dict[str, Any]) -> None:
    """Errata B13, B14. The corrected constant also covers Horvitz-Thompson at every k."""
    bound = lemma5(surrogate, **drawn["limits"]) / drawn["list"]["gamma"]
    m = drawn["limits"]["n_items"]
    for k in range(min(surrogate.level, m), m + 1):
        for estimator in ("paper", "horvitz-thompson"):
            if estimator == "horvitz-thompson" or k >= surrogate.level:
                assert (
                    second_moment(estimator, surrogate, k=k, **drawn["list"]) <= bound * (1 + 1e-12) + 1e-12
                )


@pytest.mark.judges("2016-128")
def test_lemma_5_can_be_attained() -> None:
    """Not a loose bound: RankSVM on two opposite rows reaches 4 R_D^2, and KL comes within e^-8 of its bound."""
    two = {"X": np.array([[1.0], [-1.0]]), "s": [0.0, 0.0], "R": [0, 1], "greedy": [0, 1], "gamma": 1.0}
    limits = {"n_items": 2, "feature_bound": 1.0, "radius": 0.0, "max_grade": 4}
    assert second_moment("paper", RankSVM(), k=2, **two) == lemma5(RankSVM(), **limits) == 4.0
    four = two | {"X": np.ones((2, 1)), "R": [4, 4]}
    assert (
        second_moment("paper", KL(), k=1, **four) / lemma5(KL(), **limits) > (1 - math.exp(-4)) ** 2 - 1e-12
    )
    assert second_moment("paper", Squared(), k=1, **four) == lemma5(Squared(), **limits)


@pytest.mark.judges("2016-129", "2016-155")
def test_lemma_5_as_printed_does_not_hold() -> None:
    """Errata B13, B14: C = m^4 R_D^4 U^2 R_max^2 for squared, m^2 R_D^2 exp(2 R_D U) for KL."""
    m, R_D, U, R_max, gamma = 2, 1.0, 0.1, 1, 0.2
    one = {"X": np.eye(2), "s": [0.1, 0.0], "R": [R_max, R_max], "greedy": [0, 1], "gamma": gamma, "k": 1}
    assert second_moment("paper", Squared(), **one) > m**4 * R_D**4 * U**2 * R_max**2 / gamma
    graded = one | {"R": [4, 4]}
    assert second_moment("paper", KL(), **graded) > m**2 * R_D**2 * math.exp(2 * R_D * U) / gamma
    assert m * R_D * U + R_max / 0.1 > m * R_D * U * R_max / 0.1  # the step that fails


def test_lemma_5_knows_four() -> None:
    with pytest.raises(ValueError, match="lemma5 knows squared, ranksvm, kl and smooth_dcg, got listnet"):
        lemma5(surrogates.ListNet(), n_items=3, feature_bound=1.0, radius=1.0, max_grade=1)


@pytest.mark.judges("2016-100")
@pytest.mark.parametrize("surrogate", [Squared(), KL()], ids=name)
@pytest.mark.parametrize("which", ["all tied", "four items", "two tied"])
@pytest.mark.parametrize("gamma", [0.05, 0.4])
def test_in_score_space_nothing_pointwise_beats_horvitz_thompson(
    surrogate: Surrogate, which: str, gamma: float
) -> None:
    """Each term has a coordinate of its own; of weights with the right mean, constant ones have the least square."""
    s, R, greedy = map(np.array, LISTS[which])
    m = len(s)
    given = {"X": np.eye(m), "s": s, "R": R, "greedy": greedy, "gamma": gamma}
    for k, baseline in itertools.product(range(1, m), (None, 0.0, 1.0)):
        best = second_moment("horvitz-thompson", surrogate, k=k, baseline=baseline, **given)
        for other in ("paper", "lemma-1"):
            assert best <= second_moment(other, surrogate, k=k, baseline=baseline, **given) + 1e-9
        if k > 1:
            fewer = second_moment("horvitz-thompson", surrogate, k=k - 1, baseline=baseline, **given)
            assert best < fewer


def test_in_weight_space_it_may_be_beaten() -> None:
    """Where the terms of exploring rounds cancel in X^T z, even weights keep them cancelling, unequal ones do not."""
    X = np.array([[1.0], [1.0], [-1.0]])
    given = {"X": X, "s": np.zeros(3), "R": [1, 1, 1], "greedy": [0, 1, 2], "gamma": 0.1, "k": 2}
    even = second_moment("lemma-1", Squared(), **given)
    unequal = second_moment("horvitz-thompson", Squared(), **given)
    assert unequal > 10 * even
    assert unequal < second_moment("paper", Squared(), **given)


@given(s_i=st.floats(-2, 5), R_i=st.integers(0, 4), gamma=st.sampled_from([0.05, 0.5]))
def test_which_form_of_a_single_coordinate_scatters_less(s_i: float, R_i: int, gamma: float) -> None:
    """Errata B5, B6: when to keep the exact score, and when to estimate the difference as a whole."""
    one = {"X": [[1.0], [0.0]], "s": [s_i, 0.0], "R": [R_i, 0], "greedy": [1, 0], "gamma": gamma, "k": 1}

    def moment(surrogate: Surrogate, baseline: Any) -> float:
        return second_moment("paper", surrogate, baseline=baseline, **one)

    whole, exact_score = moment(Squared(), [s_i, 0.0]), moment(Squared(), 0.0)
    if abs(s_i) > 1e-6 and abs(s_i - 2 * R_i) > 1e-6:
        assert (whole < exact_score) == (0 < s_i < 2 * R_i)
    whole, exact_score = moment(KL(), None), moment(KL(), -1e9)
    if abs(s_i - R_i - math.log(2)) > 1e-6:
        assert (whole < exact_score) == (s_i < R_i + math.log(2))


def test_a_better_guess_scatters_less() -> None:
    s, R, greedy = map(np.array, LISTS["two tied"])
    given = {"X": FEATURES, "s": s, "R": R, "greedy": greedy, "gamma": 0.1, "k": 2}
    for surrogate in (Squared(), KL(), SmoothDCG()):
        gradient = FEATURES.T @ surrogate.gradient(s, R)
        guesses = [R * share for share in (0.0, 0.5, 0.9, 1.0)]
        moments = [second_moment("horvitz-thompson", surrogate, baseline=R_hat, **given) for R_hat in guesses]
        assert moments == sorted(moments, reverse=True)
        assert moments[-1] == pytest.approx(gradient @ gradient)
