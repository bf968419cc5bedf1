"""Names, and the refusal of too little feedback."""

from __future__ import annotations

from typing import Any

import pytest

from rankloop import surrogates
from rankloop.surrogates import estimators


def test_names() -> None:
    expected = ["squared", "centred_squared", "ranksvm", "kl", "smooth_dcg", "listnet", "calibrated_squared"]
    assert surrogates.names() == expected
    for name in expected:
        assert surrogates.get(name).name == name
        assert surrogates.get(surrogates.get(name)) == surrogates.get(name)
    assert [surrogates.get(name).level for name in expected] == [1, 1, 2, 1, 1, None, None]
    assert [surrogates.get(name).convex for name in expected] == [True, True, True, True, False, True, True]


@pytest.mark.parametrize("wrong", ["svm", "", "KL", None, 3])
def test_unknown_names_list_the_known(wrong: Any) -> None:
    with pytest.raises(ValueError, match=rf"surrogate {wrong!r} is not known; known are squared, .*listnet"):
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


@pytest.mark.parametrize("name", ["squared", "kl", "smooth_dcg"])
@pytest.mark.parametrize("k", [1, 2, 7, None])
def test_enough_feedback(name: str, k: int | None) -> None:
    assert surrogates.require(name, k) == surrogates.get(name)


def test_ranksvm_needs_two_labels() -> None:
    assert surrogates.require("ranksvm", 2).name == "ranksvm"
    with pytest.raises(ValueError, match=r"ranksvm needs k >= 2, got k=1: .*both of its labels.*Lemma 2"):
        surrogates.require(surrogates.RankSVM(), 1)


@pytest.mark.parametrize("k", [1, 2, 50])
def test_listnet_needs_the_list(k: int) -> None:
    assert surrogates.require("listnet", None).name == "listnet"
    with pytest.raises(
        ValueError, match=rf"listnet needs the labels of the whole list, got k={k}.*Lemma 3.* kl "
    ):
        surrogates.require("listnet", k)


@pytest.mark.parametrize("k", [1, 2, 50])
def test_the_calibrated_loss_needs_the_list(k: int) -> None:
    assert surrogates.require("calibrated_squared", None).name == "calibrated_squared"
    with pytest.raises(ValueError, match=rf"whole list, got k={k}.*Theorem 5.2.*k <= m - 2.*B17"):
        surrogates.require("calibrated_squared", k)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "2"])
def test_wrong_k(wrong: Any) -> None:
    with pytest.raises(ValueError, match=f"k must be a whole number of at least 1, got {wrong!r}"):
        surrogates.require("squared", wrong)


def test_estimators_by_name() -> None:
    assert estimators.names() == ["paper", "horvitz-thompson", "lemma-1"]
    assert estimators.get("paper") is estimators.paper
    with pytest.raises(ValueError, match="estimator 'ips' is not known; known are paper, horvitz-thompson"):
        estimators.get("ips")
