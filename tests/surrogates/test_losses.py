"""Values, gradients and decompositions, that nothing overflows; names, and the refusal of too little feedback."""

from __future__ import annotations

import contextlib
import io
import itertools
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rankloop import surrogates
from rankloop.surrogates import (
    KL,
    CalibratedSquared,
    ListNet,
    RankSVM,
    SmoothDCG,
    Squared,
    Surrogate,
    estimators,
)
from tests.surrogates.cases import ALL, ESTIMABLE, LISTS, Floats, name


@st.composite
def lists(draw: Any, max_items: int = 6, max_grade: int = 4) -> tuple[Floats, Floats]:
    m = draw(st.integers(1, max_items))
    s = draw(st.lists(st.floats(-3, 3), min_size=m, max_size=m))
    R = draw(st.lists(st.integers(0, max_grade), min_size=m, max_size=m))
    return np.array(s), np.array(R, dtype=float)


def at_a_kink(s: Floats) -> bool:
    """Whether a step of the finite difference could cross a corner of RankSVM's hinge."""
    return bool((np.abs(1 + s[None, :] - s[:, None]) < 1e-4).any())


@pytest.mark.judges("2016-107", "2016-108", "2016-110", "2016-114", "2016-118")
@pytest.mark.parametrize("surrogate", ALL, ids=name)
@given(drawn=lists())
def test_gradient_is_the_slope_of_the_value(surrogate: Surrogate, drawn: tuple[Floats, Floats]) -> None:
    s, R = drawn
    assume(surrogate.name != "ranksvm" or not at_a_kink(s))
    step = 1e-5 * np.eye(len(s))
    slope = (surrogate.value(s + step, R) - surrogate.value(s - step, R)) / 2e-5
    np.testing.assert_allclose(surrogate.gradient(s, R), slope, atol=2e-6 * (1 + abs(surrogate.value(s, R))))


@pytest.mark.parametrize("surrogate", ESTIMABLE, ids=name)
@given(drawn=lists())
def test_gradient_is_the_sum_of_its_terms(surrogate: Surrogate, drawn: tuple[Floats, Floats]) -> None:
    s, R = drawn
    tuples = itertools.permutations(range(len(s)), surrogate.level)
    total = sum((surrogate.h(s, items, R[list(items)]) for items in tuples), np.zeros(len(s)))
    np.testing.assert_allclose(total, surrogate.gradient(s, R), atol=1e-12)


@pytest.mark.judges("2016-115")
@pytest.mark.parametrize("surrogate", ALL, ids=name)
@given(drawn=lists(), others=lists(), share=st.floats(0, 1))
def test_convex_where_it_says_so(surrogate: Surrogate, drawn: Any, others: Any, share: float) -> None:
    (s, R), (other, _) = drawn, others
    if not surrogate.convex:
        return
    t = np.resize(other, s.shape)
    between = surrogate.value(share * s + (1 - share) * t, R)
    assert between <= share * surrogate.value(s, R) + (1 - share) * surrogate.value(t, R) + 1e-9


@pytest.mark.judges("2016-120")
def test_smooth_dcg_is_neither_convex_nor_concave() -> None:
    values = SmoothDCG().value([[-4.0, 0.0], [-2.0, 0.0], [0.0, 0.0], [2.0, 0.0], [4.0, 0.0]], [1, 0])
    assert values[1] < (values[0] + values[2]) / 2
    assert values[3] > (values[2] + values[4]) / 2


@pytest.mark.judges("2016-114", "2016-135")
def test_values_by_hand() -> None:
    s, R = np.array([0.0, 1.0, 3.0]), np.array([2.0, 1.0, 0.0])
    assert Squared().value(s, R) == 4 + 0 + 9
    assert RankSVM().value(s, R) == (1 + 1) + (1 + 3) + (1 + 2)
    assert KL().value(s, R) == pytest.approx((2 * np.e**2 - np.e**2 + 1) + 0 + (-3 - 1 + np.e**3))
    weights = np.exp(s / 2)
    assert SmoothDCG(epsilon=2.0).value(s, R) == pytest.approx((3 * weights[0] + weights[1]) / weights.sum())
    P_R, P_s = np.exp(R) / np.exp(R).sum(), np.exp(s) / np.exp(s).sum()
    assert ListNet().value(s, R) == pytest.approx(-(P_R * np.log(P_s)).sum())
    Z = 3 + 1 / np.log2(3)
    assert CalibratedSquared().value(s, R) == pytest.approx((3 / Z) ** 2 + (1 - 1 / Z) ** 2 + 9)


@pytest.mark.judges("2016-115")
@pytest.mark.parametrize("surrogate", [Squared(), KL()], ids=name)
def test_best_scores_are_the_labels(surrogate: Surrogate) -> None:
    R = np.array([0.0, 4.0, 1.0])
    assert surrogate.value(R, R) == 0.0
    assert (surrogate.gradient(R, R) == 0.0).all()


@pytest.mark.judges("2016-135")
def test_best_scores_of_the_others() -> None:
    R = np.array([0.0, 4.0, 1.0])
    assert (ListNet().gradient(R, R) == 0.0).all()
    assert RankSVM().value(3 * R, R) == 0.0
    assert SmoothDCG(epsilon=1e-3).value(R, R) == 15.0
    target = CalibratedSquared().target(R)
    assert CalibratedSquared().value(target, R) == 0.0
    assert CalibratedSquared().target([0, 0]).tolist() == [0.0, 0.0]


@pytest.mark.judges("2016-119")
def test_only_smooth_dcg_is_a_gain() -> None:
    """Erratum B3: a step along the gradient makes it larger, and larger is better."""
    assert [surrogate.name for surrogate in ALL if surrogate.is_gain] == ["smooth_dcg"]
    s, R = np.zeros(3), np.array([0.0, 2.0, 1.0])
    better = s + 0.1 * SmoothDCG().gradient(s, R)
    assert better.argmax() == 1
    assert SmoothDCG().value(better, R) > SmoothDCG().value(s, R)
    for surrogate in ALL:
        if not surrogate.is_gain:
            assert (s - 0.1 * surrogate.gradient(s, R)).argmax() == 1


@pytest.mark.parametrize("surrogate", ALL, ids=name)
def test_lists_side_by_side(surrogate: Surrogate) -> None:
    rng = np.random.default_rng(0)
    s, R = rng.normal(size=(2, 3, 5)), rng.integers(0, 4, size=(3, 5))
    values, gradients = surrogate.value(s, R), surrogate.gradient(s, R)
    assert values.shape == (2, 3)
    for i, j in np.ndindex(2, 3):
        assert values[i, j] == pytest.approx(surrogate.value(s[i, j], R[j]))
        np.testing.assert_allclose(gradients[i, j], surrogate.gradient(s[i, j], R[j]))


@pytest.mark.filterwarnings("error")
def test_nothing_overflows() -> None:
    for surrogate, size in itertools.product(ALL, (1e3, 1e5, 1e100)):
        s, R = np.array([size, -size, 0.0]), np.array([4.0, 0.0, 30.0])
        assert np.isfinite(surrogate.value(s, R))
        assert np.isfinite(surrogate.gradient(s, R)).all()
        if surrogate.level is not None:
            for items in itertools.permutations(range(3), surrogate.level):
                assert np.isfinite(surrogate.h(s, items, R[list(items)])).all()


@pytest.mark.filterwarnings("error")
def test_smooth_dcg_with_a_sharp_choice() -> None:
    sharp = SmoothDCG(epsilon=1e-5)
    assert sharp.value([1.0, 2.0, 0.0], [3, 1, 0]) == 1.0
    assert (sharp.gradient([1.0, 2.0, 0.0], [3, 1, 0]) == 0.0).all()
    assert SmoothDCG(epsilon=1e-300).value([1e10, 0.0], [1, 0]) == 1.0
    tied = sharp.gradient([2.0, 2.0, 0.0], [1, 0, 0])
    np.testing.assert_allclose(tied, [25_000.0, -25_000.0, 0.0])


def test_kl_beyond_its_largest_exponent() -> None:
    """Erratum B12: the exponential goes on as its tangent; labels above count as equal to it."""
    short = KL(max_exponent=2.0)
    assert short.gradient([5.0], [1.0]) == np.exp(2.0) - np.exp(1.0)
    assert short.value([5.0], [1.0]) - short.value([4.0], [1.0]) == pytest.approx(np.exp(2.0) - np.e)
    assert short.value([1.0], [7.0]) == short.value([1.0], [2.0])
    inside = np.array([0.5, 1.0]), np.array([1.0, 2.0])
    assert short.value(*inside) == pytest.approx(KL().value(*inside))


def test_a_pair_at_the_kink_is_settled() -> None:
    assert RankSVM().gradient([1.0, 0.0], [1, 0]).tolist() == [0.0, 0.0]
    assert RankSVM().gradient([np.nextafter(1.0, 0.0), 0.0], [1, 0]).tolist() == [-1.0, 1.0]


def test_short_lists() -> None:
    s, R, _ = LISTS["one item"]
    for surrogate in ALL:
        assert surrogate.gradient(s, R).shape == (1,)
        if surrogate.name in ("ranksvm", "listnet", "smooth_dcg"):
            assert surrogate.gradient(s, R) == 0.0  # one item has nobody to be compared with


@pytest.mark.parametrize(
    ("s", "R", "message"),
    [
        ([0.0, 1.0], [1], "s scores 2 items but R is given for 1"),
        ([], [], "s must list one number per item"),
        (0.0, [1], "s must list one number per item"),
        ([0.0, np.nan], [1, 0], "s must be finite"),
        ([0.0, 1.0], [np.inf, 0], "R must be finite"),
        (["a"], [0], "s must be numbers"),
        ([0.0], [None], "R must "),
    ],
)
def test_wrong_lists(s: Any, R: Any, message: str) -> None:
    for surrogate in ALL:
        for ask in (surrogate.value, surrogate.gradient):
            with pytest.raises(ValueError, match=message):
                ask(s, R)


def test_wrong_relevance() -> None:
    for surrogate in (SmoothDCG(), CalibratedSquared()):
        with pytest.raises(ValueError, match=r"relevance must be at most 1000, or 2\^R overflows; got 2000"):
            surrogate.value([0.0], [2000])
    with pytest.raises(ValueError, match="relevance must not be negative for calibrated_squared, got -1"):
        CalibratedSquared().gradient([0.0], [-1])


def test_wrong_terms() -> None:
    with pytest.raises(ValueError, match=r"squared decomposes over 1 labels at a time, got indices=\[0, 1\]"):
        Squared().h([0.0, 0.0], [0, 1], [1.0, 0.0])
    with pytest.raises(ValueError, match=r"indices must be different items of a list of 2, got \[1, 1\]"):
        RankSVM().h([0.0, 0.0], [1, 1], [1.0, 0.0])
    with pytest.raises(ValueError, match=r"indices must be different items of a list of 2, got \[2\]"):
        KL().h([0.0, 0.0], [2], [1.0])
    with pytest.raises(ValueError, match=r"the gradient of listnet does not decompose: .*Lemma 3"):
        ListNet().h([0.0, 0.0], [0], [1.0])


def test_wrong_parameters() -> None:
    for wrong in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=f"epsilon must be a finite number above 0, got {wrong!r}"):
            SmoothDCG(epsilon=wrong)
        message = f"max_exponent must be a finite number above 0 and at most 300, got {wrong!r}"
        with pytest.raises(ValueError, match=message):
            KL(max_exponent=wrong)


def test_frozen_values() -> None:
    assert {SmoothDCG(epsilon=0.5), surrogates.get("smooth_dcg", epsilon=0.5)} == {SmoothDCG(epsilon=0.5)}
    assert pickle.loads(pickle.dumps(KL())) == KL()
    with pytest.raises(AttributeError):
        SmoothDCG().epsilon = 2.0


def test_names() -> None:
    expected = ["squared", "centred_squared", "ranksvm", "kl", "smooth_dcg", "listnet", "calibrated_squared"]
    assert surrogates.names() == expected
    for which in expected:
        assert surrogates.get(which).name == which
        assert surrogates.get(surrogates.get(which)) == surrogates.get(which)
    assert [surrogates.get(name).level for name in expected] == [1, 1, 2, 1, 1, None, None]
    assert [surrogates.get(name).convex for name in expected] == [True, True, True, True, False, True, True]


def test_unknown_names_list_the_known() -> None:
    unknown: list[Any] = ["svm", "", "KL", None, 3]
    for wrong in unknown:
        message = rf"surrogate {wrong!r} is not known; known are squared, .*listnet"
        with pytest.raises(ValueError, match=message):
            surrogates.get(wrong)


def test_parameters() -> None:
    assert surrogates.get("smooth_dcg", epsilon=0.01).epsilon == 0.01
    assert surrogates.get("kl", max_exponent=5.0).max_exponent == 5.0
    with pytest.raises(ValueError, match="kl has no parameter 'epsilon'; it has max_exponent"):
        surrogates.get("kl", epsilon=1.0)
    with pytest.raises(ValueError, match="squared has no parameter 'epsilon'; it has none"):
        surrogates.get("squared", epsilon=1.0)
    with pytest.raises(ValueError, match="is already made"):
        surrogates.get(surrogates.KL(), max_exponent=5.0)


def test_enough_feedback_and_too_little() -> None:
    for which, k in itertools.product(("squared", "kl", "smooth_dcg"), (1, 2, 7, None)):
        assert surrogates.require(which, k) == surrogates.get(which)
    assert surrogates.require("ranksvm", 2).name == "ranksvm"
    with pytest.raises(ValueError, match=r"ranksvm needs k >= 2, got k=1: .*both of its labels.*Lemma 2"):
        surrogates.require(surrogates.RankSVM(), 1)
    reasons = {
        "listnet": "listnet needs the labels of the whole list, got k={k}.*Lemma 3.* kl ",
        "calibrated_squared": "whole list, got k={k}.*Theorem 5.2.*k <= m - 2.*B17",
    }
    for which, reason in reasons.items():
        assert surrogates.require(which, None).name == which
        for k in (1, 2, 50):
            with pytest.raises(ValueError, match=reason.format(k=k)):
                surrogates.require(which, k)
    unusable: list[Any] = [0, -1, 1.5, True, "2"]
    for wrong in unusable:
        with pytest.raises(ValueError, match=f"k must be a whole number of at least 1, got {wrong!r}"):
            surrogates.require("squared", wrong)


def test_estimators_by_name() -> None:
    assert estimators.names() == ["paper", "horvitz-thompson", "lemma-1"]
    assert estimators.get("paper") is estimators.paper
    with pytest.raises(ValueError, match="estimator 'ips' is not known; known are paper, horvitz-thompson"):
        estimators.get("ips")


PAGE = (Path(__file__).parents[2] / "docs" / "concepts" / "surrogates.md").read_text()


def test_the_page_prints_its_table() -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        names: dict[str, object] = {}
        for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S):
            exec(block, names)
    printed = [line for line in out.getvalue().splitlines() if line.startswith("|")]
    head = "| estimate | k | guess | squared | kl | smooth_dcg | ranksvm |\n|---|---|---|---|---|---|---|\n"
    table = PAGE.partition(head)[2].partition("\n\n")[0].splitlines()
    assert table == printed


def test_the_page_knows_every_surrogate() -> None:
    for which in surrogates.names():
        assert f"| `{which}` |" in PAGE
