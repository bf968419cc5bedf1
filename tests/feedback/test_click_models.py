"""Click models against themselves three ways (all click vectors, marginals, draws), against each other, and by hand."""

from __future__ import annotations

import gzip
import itertools
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankloop import data, feedback

N, M = 7, 4


def models(seed: int, *, n: int = N, m: int = M) -> list[feedback.ClickModel]:
    """One of each kind, with parameters over the whole range, a few of them 0 or 1."""
    rng = np.random.default_rng(seed)

    def some(*shape: int) -> np.ndarray:
        values = rng.random(shape)
        values[rng.random(shape) < 0.1] = 0.0
        values[rng.random(shape) < 0.1] = 1.0
        return values

    return [
        feedback.PositionBasedModel(attraction=some(n), examination=some(m)),
        feedback.CascadeModel(attraction=some(n)),
        feedback.DependentClickModel(attraction=some(n), continuation=some(m)),
        feedback.UserBrowsingModel(attraction=some(n), examination=some(m, m)),
        feedback.DynamicBayesianModel(
            attraction=some(n), satisfaction=some(n), continuation=float(some(1)[0])
        ),
        feedback.ClickChainModel(attraction=some(n), continuation=some(3)),
        feedback.TrustBiasModel(
            attraction=some(n), examination=some(m), true_clicks=some(m), false_clicks=some(m)
        ),
    ]


def all_clicks(m: int) -> np.ndarray:
    return np.array(list(itertools.product((0, 1), repeat=m)))


KINDS = [type(model) for model in models(0)]


def test_every_public_model_is_tested_here() -> None:
    public = {
        thing
        for name in feedback.__all__
        if isinstance(thing := getattr(feedback, name), type) and issubclass(thing, feedback.ClickModel)
    }
    assert public - {feedback.ClickModel} == set(KINDS)


@given(seed=st.integers(0, 10**6), kind=st.sampled_from(range(len(KINDS))), m=st.integers(1, M))
def test_the_chances_of_all_click_vectors_add_up_to_one_and_to_the_marginals(
    seed: int, kind: int, m: int
) -> None:
    model = models(seed)[kind]
    items = np.random.default_rng(seed).permutation(N)[:m]
    vectors = all_clicks(m)
    chance = model.likelihood(items, vectors)
    assert (chance >= 0).all()
    assert chance.sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(chance @ vectors, model.click_probabilities(items), atol=1e-12)


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=lambda kind: KINDS[kind].__name__)
def test_draws_follow_the_exact_chances(kind: int) -> None:
    n_draws = 40_000
    for seed in (3, 4):
        model = models(seed)[kind]
        items = np.random.default_rng(seed).permutation(N)[:M]
        clicks = model.click(np.tile(items, (n_draws, 1)), rng=np.random.default_rng(100 + seed))
        p = model.click_probabilities(items)
        error = np.sqrt(p * (1 - p) / n_draws)
        certain = error == 0
        assert (clicks.mean(axis=0)[certain] == p[certain]).all()
        assert (np.abs(clicks.mean(axis=0) - p)[~certain] < 4 * error[~certain]).all()
        # Not only the marginals: every way of clicking comes as often as it should.
        vectors = all_clicks(M)
        chance = model.likelihood(items, vectors)
        seen = np.bincount(clicks @ (1 << np.arange(M)[::-1]), minlength=2**M)
        assert (seen[chance == 0] == 0).all()
        expected = n_draws * chance
        z = (seen - expected) / np.sqrt(np.maximum(expected * (1 - chance), 1e-300))
        assert (np.abs(z[expected * (1 - chance) > 5]) < 4.5).all()


@given(seed=st.integers(0, 10**6))
def test_models_that_contain_each_other_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, e = rng.random(N), rng.random(M)
    items, vectors = rng.permutation(N)[:M], all_clicks(M)
    cascade = feedback.CascadeModel(attraction=a)
    constant = float(rng.random())
    same = [
        (feedback.PositionBasedModel(attraction=a, examination=e), _browsing_by_position(a, e)),
        (cascade, feedback.DependentClickModel(attraction=a, continuation=np.zeros(M))),
        (cascade, feedback.DynamicBayesianModel(attraction=a, satisfaction=np.ones(N), continuation=1.0)),
        (cascade, feedback.UserBrowsingModel(attraction=a, examination=_until_a_click())),
        (
            feedback.DependentClickModel(attraction=a, continuation=np.full(M, constant)),
            feedback.DynamicBayesianModel(attraction=a, satisfaction=np.full(N, 1 - constant)),
        ),
        (
            feedback.PositionBasedModel(attraction=a, examination=np.ones(M)),
            feedback.DependentClickModel(attraction=a, continuation=np.ones(M)),
        ),
        (
            feedback.PositionBasedModel(attraction=a, examination=e),
            feedback.TrustBiasModel(
                attraction=a, examination=e, true_clicks=np.ones(M), false_clicks=np.zeros(M)
            ),
        ),
        (cascade, feedback.ClickChainModel(attraction=a, continuation=[1.0, 0.0, 0.0])),
        (
            feedback.DynamicBayesianModel(attraction=a, satisfaction=a, continuation=constant),
            feedback.ClickChainModel(attraction=a, continuation=[constant, constant, 0.0]),
        ),
    ]
    for one, other in same:
        np.testing.assert_allclose(
            one.likelihood(items, vectors), other.likelihood(items, vectors), atol=1e-12
        )
        np.testing.assert_allclose(
            one.click_probabilities(items), other.click_probabilities(items), atol=1e-12
        )


def _browsing_by_position(a: np.ndarray, e: np.ndarray) -> feedback.UserBrowsingModel:
    return feedback.UserBrowsingModel(attraction=a, examination=np.tile(e[:, None], (1, M)))


def _until_a_click() -> np.ndarray:
    matrix = np.zeros((M, M))
    matrix[:, 0] = 1.0
    return matrix


def test_marginals_by_hand() -> None:
    items = [2, 0, 1]
    a = [0.4, 0.2, 0.5]
    np.testing.assert_allclose(
        feedback.DependentClickModel(attraction=a, continuation=[0.3, 0.6, 0.1]).click_probabilities(items),
        [0.5, (1 - 0.5 * 0.7) * 0.4, (1 - 0.5 * 0.7) * (1 - 0.4 * 0.4) * 0.2],
    )
    np.testing.assert_allclose(
        feedback.DynamicBayesianModel(
            attraction=a, satisfaction=[0.1, 0.9, 0.6], continuation=0.8
        ).click_probabilities(items),
        [0.5, 0.8 * (1 - 0.5 * 0.6) * 0.4, 0.8**2 * (1 - 0.5 * 0.6) * (1 - 0.4 * 0.1) * 0.2],
    )
    after_first = 0.5 * (0.5 * 0.7 + 0.5 * 0.3) + 0.5 * 0.9
    np.testing.assert_allclose(
        feedback.ClickChainModel(attraction=a, continuation=[0.9, 0.7, 0.3]).click_probabilities(items)[:2],
        [0.5, after_first * 0.4],
    )
    trust = feedback.TrustBiasModel(
        attraction=a, examination=[1.0, 0.5, 0.2], true_clicks=[0.9, 0.8, 0.7], false_clicks=[0.4, 0.2, 0.1]
    )
    np.testing.assert_allclose(
        trust.click_probabilities(items),
        [0.5 * 0.9 + 0.5 * 0.4, 0.5 * (0.4 * 0.8 + 0.6 * 0.2), 0.2 * (0.2 * 0.7 + 0.8 * 0.1)],
    )
    browsing = [[0.9, 0, 0], [0.5, 0.7, 0], [0.3, 0.4, 0.8]]
    first, second = 0.5 * 0.9, 0.4 * (0.55 * 0.5 + 0.45 * 0.7)
    none = 0.55 * (1 - 0.4 * 0.5)
    only_first = 0.45 * (1 - 0.4 * 0.7)
    np.testing.assert_allclose(
        feedback.UserBrowsingModel(attraction=a, examination=browsing).click_probabilities(items),
        [first, second, 0.2 * (none * 0.3 + only_first * 0.4 + second * 0.8)],
    )


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=lambda kind: KINDS[kind].__name__)
def test_many_lists_at_once_are_as_one_after_the_other(kind: int) -> None:
    model = models(9)[kind]
    rng = np.random.default_rng(2)
    lists = np.array([[rng.permutation(N)[:3] for _ in range(5)] for _ in range(2)])
    together = model.click_probabilities(lists)
    clicks = model.click(lists, rng=rng)
    assert together.shape == clicks.shape == lists.shape
    assert clicks.dtype == np.int64
    assert set(clicks.flat) <= {0, 1}
    for place in np.ndindex(2, 5):
        np.testing.assert_array_equal(together[place], model.click_probabilities(lists[place]))
        chance = model.likelihood(lists, clicks)
        assert chance[place] == model.likelihood(lists[place], clicks[place])


def test_lists_that_are_none_are_refused_by_name() -> None:
    wrong: list[Any] = [[], 3, [0, 0], [-1], [N], [0.5], [np.nan], ["a"], None, [[0, 1], [2, 2]], [0, np.inf]]
    for model, items in itertools.product(models(1), wrong):
        with pytest.raises(ValueError, match="items"):
            model.click_probabilities(items)
        with pytest.raises(ValueError, match="items"):
            model.click(items, rng=np.random.default_rng(1))


def test_a_list_longer_than_the_known_positions_is_refused() -> None:
    for kind in (0, 2, 3, 6):
        with pytest.raises(ValueError, match="at most 4 positions, got 5"):
            models(1)[kind].click_probabilities(range(5))


@pytest.mark.parametrize("clicks", [[0, 1], [0, 2, 0], [0, np.nan, 0], "no", [[0, 1, 0]] * 3])
def test_clicks_that_are_none_are_refused_by_name(clicks: Any) -> None:
    model = feedback.PositionBasedModel(attraction=[0.1] * 3, examination=[0.5] * 3)
    with pytest.raises(ValueError, match="clicks"):
        model.likelihood([[0, 1, 2], [2, 1, 0]], clicks)


@pytest.mark.parametrize("bad", [[1.1], [-0.1], [np.nan], [], [[0.5]], "x", None, 0.5])
def test_parameters_that_are_no_chances_are_refused_by_name(bad: Any) -> None:
    good = [0.5, 0.5]
    with pytest.raises(ValueError, match="attraction"):
        feedback.CascadeModel(attraction=bad)
    with pytest.raises(ValueError, match="examination"):
        feedback.PositionBasedModel(attraction=good, examination=bad)
    with pytest.raises(ValueError, match="continuation"):
        feedback.DependentClickModel(attraction=good, continuation=bad)
    with pytest.raises(ValueError, match="satisfaction"):
        feedback.DynamicBayesianModel(attraction=good, satisfaction=bad)
    with pytest.raises(ValueError, match="continuation"):
        feedback.ClickChainModel(attraction=good, continuation=bad)
    with pytest.raises(ValueError, match="false_clicks"):
        feedback.TrustBiasModel(attraction=good, examination=good, true_clicks=good, false_clicks=bad)


def test_shapes_that_do_not_fit_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="satisfaction must have 2 numbers"):
        feedback.DynamicBayesianModel(attraction=[0.1, 0.2], satisfaction=[0.1, 0.2, 0.3])
    with pytest.raises(ValueError, match="continuation must be one number"):
        feedback.DynamicBayesianModel(attraction=[0.1], satisfaction=[0.1], continuation=[0.5])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="examination must be a square matrix, got 1 by 2"):
        feedback.UserBrowsingModel(attraction=[0.1], examination=[[0.5, 0.5]])
    with pytest.raises(ValueError, match="continuation must have 3 numbers, got 2"):
        feedback.ClickChainModel(attraction=[0.1], continuation=[0.5, 0.5])
    with pytest.raises(ValueError, match="true_clicks must have 2 numbers, one for each position"):
        feedback.TrustBiasModel(
            attraction=[0.1], examination=[1.0, 0.5], true_clicks=[1.0], false_clicks=[0.0, 0.0]
        )


def test_parameters_cannot_be_written_to_and_are_not_the_callers() -> None:
    a = np.array([0.5, 0.5])
    model = feedback.CascadeModel(attraction=a)
    a[0] = 0.9
    assert model.attraction[0] == 0.5
    with pytest.raises(ValueError, match="read-only"):
        model.attraction[0] = 0.9


def test_models_fitted_to_real_queries() -> None:
    try:
        path = data.find("clicks/yandex_clickmodels/60Q.json.gz")
    except data.DataMissing as missing:
        pytest.skip(str(missing))
    with gzip.open(path) as file:
        fitted = json.load(file)
    vectors = all_clicks(10)
    for query in list(fitted["PBM"])[:5]:
        args = {kind: fitted[kind][query]["model"]["args"] for kind in fitted}
        gamma = np.array(args["UBM"][1])  # the column for "no click yet" is the last one there
        built = [
            feedback.PositionBasedModel(attraction=args["PBM"][0], examination=args["PBM"][1]),
            feedback.CascadeModel(attraction=args["CM"][0]),
            feedback.DependentClickModel(attraction=args["DCM"][0], continuation=args["DCM"][1]),
            feedback.UserBrowsingModel(attraction=args["UBM"][0], examination=np.roll(gamma, 1, axis=1)),
            feedback.DynamicBayesianModel(
                attraction=args["DBN"][0], satisfaction=args["DBN"][1], continuation=1 - args["DBN"][2]
            ),
        ]
        for model in built:
            p = model.click_probabilities(range(10))
            np.testing.assert_allclose(model.likelihood(range(10), vectors) @ vectors, p, atol=1e-12)
            assert 0.3 < p.sum() < 3.5  # clicks a page, for ten documents of a real query


def chance_of(tables: feedback.Browsing, items: Any, clicks: Any) -> float:
    """The chance that a user clicks just so, straight from what `feedback.Browsing` says."""
    reading, stopped, last = 1.0, 0.0, 0
    for j, (item, clicked) in enumerate(zip(items, clicks, strict=True)):
        p = tables.examination[j, last] * tables.attraction[item, j]
        goes_on = tables.after_click[item, j] if clicked else tables.after_none[j]
        here = reading * (p if clicked else 1 - p)
        stopped = (0.0 if clicked else stopped) + here * (1 - goes_on)
        reading = here * goes_on
        last = j + 1 if clicked else last
    return reading + stopped


def test_the_tables_have_the_chances_of_the_model() -> None:
    for model, items in itertools.product([*models(1), *models(2)], ([2, 0, 3], [1, 3], [0])):
        tables = model.browsing(len(items))
        assert tables.attraction.shape == (N, len(items))
        for clicks in all_clicks(len(items)):
            exact = float(model.likelihood(items, clicks))
            assert chance_of(tables, items, clicks) == pytest.approx(exact, abs=1e-14), model


def test_more_positions_than_the_model_has_are_refused() -> None:
    with pytest.raises(ValueError, match=r"n_positions must be at most 4.*got 5"):
        models(1)[2].browsing(5)
    with pytest.raises(ValueError, match="n_positions"):
        models(1)[1].browsing(0)
