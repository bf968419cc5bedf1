"""Every measure against its formula, one ranking at a time and in batches, and what each says of itself."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankloop import measures
from rankloop.measures import Measure
from tests.measures.cases import ALL, SEPARABLE, by_name, formula, highest_grade, rankings

quick = settings(max_examples=40)
every = pytest.mark.parametrize("measure", ALL, ids=by_name)
every_separable = pytest.mark.parametrize("measure", SEPARABLE, ids=by_name)


@pytest.mark.judges("2015-010", "2015-011")
@every
@quick
@given(data=st.data())
def test_value_is_the_formula(measure: Measure, data: st.DataObject) -> None:
    order, relevance = data.draw(rankings(highest_grade(measure)))
    value = measure(order, relevance)
    assert isinstance(value, float)
    assert value == pytest.approx(formula(measure, order, relevance), rel=1e-12, abs=1e-12)


@pytest.mark.judges("2015-009")
@every_separable
@quick
@given(data=st.data())
def test_separable_means_discount_times_gain_plus_offset(measure: Measure, data: st.DataObject) -> None:
    binary = measure.family in ("pairwise_loss", "auc")
    order, relevance = data.draw(rankings(1 if binary else 4))
    discount, g = measure.discount(len(order)), measure.gain(relevance)
    value = float(discount @ g[order]) + float(measure.offset(relevance))
    assert value == pytest.approx(formula(measure, order, relevance), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("measure", [measure for measure in ALL if measure.linear], ids=by_name)
@quick
@given(data=st.data())
def test_linear_means_that_each_gain_needs_only_its_own_item(measure: Measure, data: st.DataObject) -> None:
    _, relevance = data.draw(rankings(4))
    alone = [float(measure.gain([r])[0]) for r in relevance]
    assert measure.gain(relevance).tolist() == alone
    assert measure.offset(relevance) == 0.0


@pytest.mark.judges("2015-016")
@pytest.mark.parametrize("name", ["ndcg", "auc"])
def test_a_gain_that_needs_other_items_is_not_called_linear(name: str) -> None:
    measure = measures.get(name)
    assert not measure.linear
    assert measure.gain([1, 0, 0, 0])[0] != measure.gain([1, 1, 0, 0])[0]


@every
@quick
@given(data=st.data())
def test_batches_give_the_same_numbers(measure: Measure, data: st.DataObject) -> None:
    m = data.draw(st.integers(1, 8))
    case = rankings(highest_grade(measure), min_items=m, max_items=m)
    pairs = [data.draw(case) for _ in range(3)]
    orders, relevances = np.array([o for o, _ in pairs]), np.array([r for _, r in pairs])
    grid = np.array([[measure(o, r) for r in relevances] for o in orders])
    assert np.array_equal(measure(orders, relevances), np.diagonal(grid))
    assert np.array_equal(measure(orders, relevances[0]), grid[:, 0])
    assert np.array_equal(measure(orders[0], relevances), grid[0])
    assert np.array_equal(measure(orders[:, None], relevances), grid)
    assert np.array_equal(measure(orders[:1], relevances), grid[0])


@every_separable
def test_gain_and_offset_of_many_vectors_at_once(measure: Measure) -> None:
    relevance = np.random.default_rng(3).integers(0, 2, size=(4, 5, 6))
    gains, offsets = measure.gain(relevance), np.asarray(measure.offset(relevance))
    assert gains.shape == (4, 5, 6)
    assert offsets.shape == (4, 5)
    for at in np.ndindex(4, 5):
        assert np.array_equal(gains[at], measure.gain(relevance[at]))
        assert offsets[at] == measure.offset(relevance[at])


@pytest.mark.judges("2015-085")
@every
@quick
@given(data=st.data())
def test_sorting_by_relevance_is_best_and_ties_do_not_matter(measure: Measure, data: st.DataObject) -> None:
    order, relevance = data.draw(rankings(highest_grade(measure), max_items=5))
    everything = np.asarray(measure(list(permutations(range(len(order)))), relevance))
    best = everything.min() if measure.is_loss else everything.max()
    by_relevance = order[np.argsort(-relevance[order], kind="stable")]  # ties in the order that was drawn
    value = measure(by_relevance, relevance)
    assert value == pytest.approx(best, rel=1e-12)
    if measure.family in ("ndcg", "average_precision") and measure.cutoff is None:
        assert value == 1.0  # and not 0.9999999999999999


@every
def test_nothing_relevant(measure: Measure) -> None:
    order = np.array([3, 1, 0, 2])
    expected = 1.0 if measure.family in ("ndcg", "average_precision") else 0.0
    assert measure(order, np.zeros(4)) == expected


def test_all_labels_equal_leaves_no_pair_to_get_wrong() -> None:
    assert measures.auc([2, 1, 0], [1, 1, 1]) == 0.0
    assert measures.auc.gain([1, 1, 1]).tolist() == [0, 0, 0]
    assert measures.auc.offset([1, 1, 1]) == 0.0
    assert measures.pairwise_loss([2, 1, 0], [3, 3, 3]) == 0.0


@pytest.mark.parametrize(
    ("measure", "value"),
    [
        (measures.sum_loss, 1.0),
        (measures.pairwise_loss, 0.0),
        (measures.dcg, 1.0),
        (measures.precision.at(1), 1.0),
        (measures.ndcg, 1.0),
        (measures.average_precision, 1.0),
        (measures.auc, 0.0),
        (measures.err, 0.5),
    ],
    ids=str,
)
def test_one_item(measure: Measure, value: float) -> None:
    assert measure([0], [1]) == value


@pytest.mark.parametrize("measure", [measure for measure in ALL if measure.cutoffs != "none"], ids=by_name)
def test_a_cut_off_beyond_the_list_is_the_whole_list(measure: Measure) -> None:
    order, relevance = [1, 3, 0, 2], [0, 1, 0, 1]
    assert measure.at(4)(order, relevance) == measure.at(1_000)(order, relevance)
    assert measure(order, relevance, k=2) == measure.at(2)(order, relevance)


def test_which_are_losses_and_which_are_linear() -> None:
    instances = [measures.get(name) for name in measures.names()]
    assert {m.name for m in instances if m.is_loss} == {"sum_loss", "pairwise_loss", "auc"}
    assert {m.name for m in instances if m.linear} == {"sum_loss", "dcg", "precision"}
    assert {m.name for m in instances if not m.separable} == {"average_precision", "err"}
    assert all(m.separable == (m.kind >= 0) for m in instances)


def test_discounts() -> None:
    assert measures.sum_loss.discount(3).tolist() == [1, 2, 3]
    assert measures.auc.discount(2).tolist() == [1, 2]
    assert measures.dcg.discount(3).tolist() == [1, 1 / np.log2(3), 0.5]
    assert measures.ndcg.at(2).discount(4).tolist() == [1, 1 / np.log2(3), 0, 0]
    assert measures.precision.at(2).discount(3).tolist() == [1, 1, 0]


@pytest.mark.judges("2015-014")
def test_precision_is_a_count_up_to_and_with_position_k() -> None:
    assert measures.precision([0, 1, 2, 3], [1, 0, 1, 1], k=3) == 2.0


def test_err_takes_its_scale_from_the_highest_grade() -> None:
    assert measures.err([0, 1], [1, 1]) == 0.5 + 0.5 * 0.5 / 2
    assert measures.err.graded(2)([0, 1], [2, 1]) == 0.75 + 0.25 * 0.25 / 2


def test_relevance_need_not_be_whole() -> None:
    assert measures.dcg([1, 0], [0.5, 0]) == pytest.approx((np.sqrt(2) - 1) / np.log2(3))
    assert measures.ndcg([0, 1], [1e-300, 0]) == 1.0
    assert measures.ndcg([1, 0], [1e-300, 0]) == pytest.approx(1 / np.log2(3))
    assert measures.sum_loss([1, 0], [0.25, 0]) == 0.5
