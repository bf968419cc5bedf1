"""What is refused, and that the message names the argument and the value."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from rankloop import measures
from tests.measures.cases import ALL, by_name


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ([0, 1, 1], r"order\[2\] = 1 appears twice"),
        ([0, 1, 3], r"order\[2\] = 3 is not an item number"),
        ([0, -1, 1], r"order\[1\] = -1 is not an item number"),
        ([1, 2, 3], r"order\[2\] = 3 is not an item number"),
        ([[0, 1, 2], [2, 0, 0]], r"order\[1, 2\] = 0 appears twice"),
        ([0, 1], r"order ranks 2 items but relevance is given for 3"),
        ([0.0, 1.0, 2.0], r"order must hold item numbers .* got \[0.0"),
        ([True, False, True], r"order must hold item numbers"),
        ([], r"order is empty"),
        (np.zeros((3, 0), dtype=int), r"order is empty"),
        (2, r"order must list one entry per item, got array\(2\)"),
    ],
)
@pytest.mark.parametrize("measure", ALL, ids=by_name)
def test_orders(measure: measures.Measure, order: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        measure(order, [0, 1, 0])


@pytest.mark.parametrize(
    ("relevance", "message"),
    [
        ([0, float("nan"), 1], r"relevance\[1\] = nan; relevance must be finite"),
        ([0, float("inf"), 1], r"relevance\[1\] = inf; relevance must be finite"),
        ([0, 1, -1], r"relevance\[2\] = -1; relevance must be finite and not negative"),
        ([[0, 1, 1], [0, -2, 1]], r"relevance\[1, 1\] = -2"),
        ([0, 1], r"order ranks 3 items but relevance is given for 2"),
        ([], r"relevance is empty"),
        (1, r"relevance must list one entry per item"),
        (["a", "b", "c"], r"relevance must be numbers"),
        ([[0, 1, 1], [0]], r"relevance must be numbers"),
        (None, r"relevance.*"),
    ],
)
@pytest.mark.parametrize("measure", ALL, ids=by_name)
def test_relevance(measure: measures.Measure, relevance: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        measure([0, 1, 2], relevance)


def test_batches_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match=r"order of shape \(2, 2\), relevance of shape \(3, 2\)"):
        measures.dcg([[0, 1], [1, 0]], np.ones((3, 2)))


def test_a_batch_of_none() -> None:
    assert np.asarray(measures.dcg(np.empty((0, 2), dtype=int), [1, 0])).shape == (0,)


@pytest.mark.parametrize("name", ["average_precision", "average_precision@2", "auc"])
@pytest.mark.parametrize("wrong", [2, 0.5])
def test_binary_measures_refuse_grades(name: str, wrong: float) -> None:
    with pytest.raises(ValueError, match=rf"relevance\[1\] = {wrong:g}; {name} needs relevance 0 or 1"):
        measures.get(name)([0, 1], [1, wrong])
    with pytest.raises(ValueError, match="relevance 0 and 1 only, got max_grade=4"):
        measures.get(name, max_grade=4)


@pytest.mark.judges("2015-008")
def test_pairwise_loss_takes_grades_but_is_separable_only_without() -> None:
    assert measures.pairwise_loss([0, 1, 2], [0, 1, 2]) == 3.0
    with pytest.raises(ValueError, match=r"relevance\[2\] = 2; pairwise_loss needs relevance 0 or 1"):
        measures.pairwise_loss.gain([0, 1, 2])
    with pytest.raises(ValueError, match=r"relevance\[2\] = 2"):
        measures.pairwise_loss.offset([0, 1, 2])


@pytest.mark.parametrize("measure", [measures.average_precision, measures.err], ids=by_name)
def test_no_discount_where_there_is_no_product(measure: measures.Measure) -> None:
    for ask in (lambda: measure.discount(3), lambda: measure.gain([0, 1]), lambda: measure.offset([0, 1])):
        with pytest.raises(
            ValueError, match=rf"{measure.name} is not of the form f\(order\) . g\(relevance\)"
        ):
            ask()


def test_grades_above_the_highest() -> None:
    with pytest.raises(ValueError, match=r"relevance\[0\] = 2; err takes relevance up to 1; see graded"):
        measures.err([0, 1], [2, 0])
    with pytest.raises(ValueError, match=r"relevance\[0\] = 3; dcg takes relevance up to 2"):
        measures.dcg.graded(2)([0, 1], [3, 0])
    with pytest.raises(ValueError, match=r"relevance\[0\] = 5000; ndcg takes relevance up to 1000"):
        measures.ndcg([0, 1], [5000, 0])
    assert measures.ndcg([0, 1], [1000, 1000]) == 1.0
    assert measures.sum_loss([0, 1], [5000, 0]) == 5000.0


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "3", None, 1001])
def test_max_grade(wrong: Any) -> None:
    with pytest.raises(ValueError, match="max_grade"):
        measures.err.graded(wrong)


@pytest.mark.parametrize("wrong", [0, -3, 2.5, "2"])
def test_cut_offs(wrong: Any) -> None:
    with pytest.raises(ValueError, match=rf"k must be .*, got {wrong!r}"):
        measures.ndcg.at(wrong)
    with pytest.raises(ValueError, match=rf"k must be .*, got {wrong!r}"):
        measures.ndcg([0, 1], [0, 1], k=wrong)


@pytest.mark.parametrize("wrong", [0, -3, 2.5])
def test_n_items(wrong: Any) -> None:
    with pytest.raises(ValueError, match=rf"n_items must be .*, got {wrong!r}"):
        measures.dcg.discount(wrong)


@pytest.mark.parametrize("name", ["sum_loss", "pairwise_loss", "auc"])
def test_measures_of_the_whole_list_only(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} has no cut-off form"):
        measures.get(f"{name}@3")
    with pytest.raises(ValueError, match=f"{name} has no cut-off form, got k=3"):
        measures.get(name)([0, 1], [0, 1], k=3)


def test_precision_needs_a_cut_off() -> None:
    for ask in (
        lambda: measures.precision([0, 1], [0, 1]),
        lambda: measures.precision.discount(2),
        lambda: measures.precision.gain([0, 1]),
    ):
        with pytest.raises(ValueError, match="precision needs a cut-off: write precision@k"):
            ask()


def test_names() -> None:
    expected = "sum_loss pairwise_loss dcg precision ndcg average_precision auc err"
    assert measures.names() == expected.split()
    for name in measures.names():
        assert measures.get(name) is getattr(measures, name)
        assert measures.get(name).name == name


def test_get() -> None:
    at_ten = measures.get("ndcg@10")
    assert at_ten == measures.ndcg.at(10) == measures.ndcg.at(3).at(10)
    assert at_ten.name == "ndcg@10"
    assert measures.get(at_ten) is at_ten
    assert measures.get("map@5") == measures.average_precision.at(5)
    assert measures.get("err@10", max_grade=4) == measures.err.at(10).graded(4)
    assert measures.get(measures.err, max_grade=3).max_grade == 3
    assert {at_ten, measures.get("ndcg@10")} == {at_ten}
    assert pickle.loads(pickle.dumps(at_ten)) == at_ten
    assert measures.ndcg.cutoff is None


@pytest.mark.parametrize("wrong", ["mrr", "NDCG", "", "@3", "ndcg 3", 7, None])
def test_unknown_names_list_the_known(wrong: Any) -> None:
    with pytest.raises(
        ValueError, match=rf"measure {wrong!r} is not known; known are sum_loss, .*precision@k, ndcg\[@k\]"
    ):
        measures.get(wrong)


@pytest.mark.parametrize("wrong", ["dcg@", "dcg@x", "dcg@-1", "dcg@2.5", "dcg@1@2", "dcg@²", "dcg@0"])
def test_malformed_cut_offs(wrong: str) -> None:
    with pytest.raises(
        ValueError, match=r"cut-off that is not a whole number|k must be a whole number of at least 1, got 0"
    ):
        measures.get(wrong)
