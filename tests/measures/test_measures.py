"""Every measure against its formula, the numbers of the paper, scikit-learn and trec_eval; and what is refused.

Both libraries take gains as they are, so ours, 2^r - 1, are handed over ready. The numbers printed in Chaudhuri and
Tewari (2015) are those of Table 1 and the vectors in the proof of Lemma 11.
"""

from __future__ import annotations

import pickle
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
import pytrec_eval
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, dcg_score, label_ranking_loss, ndcg_score, roc_auc_score

from rankloop import measures
from rankloop.measures import Measure
from tests.measures.cases import ALL, SEPARABLE, Floats, Ints, by_name, formula, highest_grade, rankings

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


def test_nothing_relevant() -> None:
    for measure in ALL:
        expected = 1.0 if measure.family in ("ndcg", "average_precision") else 0.0
        assert measure([3, 1, 0, 2], np.zeros(4)) == expected


def test_all_labels_equal_leaves_no_pair_to_get_wrong() -> None:
    assert measures.auc([2, 1, 0], [1, 1, 1]) == 0.0
    assert measures.auc.gain([1, 1, 1]).tolist() == [0, 0, 0]
    assert measures.auc.offset([1, 1, 1]) == 0.0
    assert measures.pairwise_loss([2, 1, 0], [3, 3, 3]) == 0.0


def test_one_item() -> None:
    names = ["sum_loss", "dcg", "precision@1", "ndcg", "map", "pairwise_loss", "auc", "err"]
    values = [measures.get(name)([0], [1]) for name in names]
    assert values == [1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.5]


def test_a_cut_off_beyond_the_list_is_the_whole_list() -> None:
    order, relevance = [1, 3, 0, 2], [0, 1, 0, 1]
    for measure in (measure for measure in ALL if measure.cutoffs != "none"):
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


LOG2_3 = np.log2(3.0)

# Rows: the rank of objects 1, 2, 3. Columns: the relevance of objects 1, 2, 3.
TABLE_1 = """
      000 001 010 011 100 101 110 111
 123    0   3   2   5   1   4   3   6
 132    0   2   3   5   1   3   4   6
 213    0   3   1   4   2   5   3   6
 231    0   1   3   4   2   3   5   6
 312    0   2   1   3   3   5   4   6
 321    0   1   2   3   3   4   5   6
"""

# Erratum A18: the list is missing in the text and was recovered from the signal matrices.
RECOVERED = "0000 0001 0010 0100 1000 0011 0101 1001 0110 1010 1100 0111 1011 1101 1110 1111"


def digits(text: str) -> list[int]:
    return [int(digit) for digit in text]


def order_of(ranks: str) -> list[int]:
    """The paper gives each object's rank, an order gives each rank's object."""
    return [ranks.index(str(rank)) for rank in range(1, len(ranks) + 1)]


def row(measure: Measure, ranks: str, columns: list[str]) -> NDArray[np.float64]:
    return np.asarray(measure(order_of(ranks), [digits(column) for column in columns]))


@pytest.mark.judges("2015-011")
def test_table_1_in_full() -> None:
    header, *rows = TABLE_1.strip().splitlines()
    columns = header.split()
    assert len(columns) == 8
    assert len(rows) == 6
    for ranks, *losses in (line.split() for line in rows):
        assert row(measures.sum_loss, ranks, columns).tolist() == [float(loss) for loss in losses]


@pytest.mark.judges("2015-004")
def test_reading_table_1_as_orders_would_be_wrong() -> None:
    """Erratum A2: 231 and 312 are each other's inverse, so mixing the two readings up swaps two rows."""
    assert order_of("231") == [2, 0, 1]
    assert measures.sum_loss(order_of("231"), [0, 0, 1]) == 1
    assert measures.sum_loss([1, 2, 0], [0, 0, 1]) == 2


def three_objects() -> list[str]:
    return TABLE_1.split()[:8]


def test_lemma_11_ndcg() -> None:
    first, last = (row(measures.ndcg, ranks, three_objects()) for ranks in ("123", "321"))
    two_of_three = 3 / (2 * (1 + 1 / LOG2_3))
    half_lost = (1 + LOG2_3 / 2) / (1 + LOG2_3)
    np.testing.assert_allclose(first, [1, 1 / 2, 1 / LOG2_3, half_lost, 1, two_of_three, 1, 1], rtol=1e-14)
    np.testing.assert_allclose(last, [1, 1, 1 / LOG2_3, 1, 1 / 2, two_of_three, half_lost, 1], rtol=1e-14)
    c = LOG2_3 / (2 * (1 + LOG2_3))
    np.testing.assert_allclose(first - last, [0, -1 / 2, 0, -c, 1 / 2, 0, c, 0], atol=1e-14)


def test_lemma_11_map() -> None:
    first, last = (row(measures.average_precision, ranks, three_objects()) for ranks in ("123", "321"))
    np.testing.assert_allclose(first, [1, 1 / 3, 1 / 2, 7 / 12, 1, 5 / 6, 1, 1], rtol=1e-14)
    np.testing.assert_allclose(last, [1, 1, 1 / 2, 1, 1 / 3, 5 / 6, 7 / 12, 1], rtol=1e-14)
    np.testing.assert_allclose(first - last, [0, -2 / 3, 0, -5 / 12, 2 / 3, 0, 5 / 12, 0], atol=1e-14)


def test_lemma_11_auc() -> None:
    first, last = (row(measures.auc, ranks, RECOVERED.split()) for ranks in ("1234", "4321"))
    third, half, quarter = 1 / 3, 1 / 2, 1 / 4
    printed = [0, 1, 2 / 3, third, 0, 1, 3 / 4, half, half, quarter, 0, 1, 2 / 3, third, 0, 0]
    assert first.tolist() == printed
    printed = [0, 0, third, 2 / 3, 1, 0, quarter, half, half, 3 / 4, 1, 0, third, 2 / 3, 1, 0]
    assert last.tolist() == printed
    printed = [0, 1, third, -third, -1, 1, half, 0, 0, -half, -1, 1, third, -third, -1, 0]
    np.testing.assert_allclose(first - last, printed, atol=1e-15)


@pytest.mark.judges("2015-012", "2015-053")
@pytest.mark.parametrize("n_items", [1, 2, 3, 4, 5])
def test_sum_loss_exceeds_pairwise_loss_by_a_constant_for_binary_relevance(n_items: int) -> None:
    orders = list(permutations(range(n_items)))
    for relevance in product([0, 1], repeat=n_items):
        s = sum(relevance)
        difference = measures.sum_loss(orders, relevance) - measures.pairwise_loss(orders, relevance)
        assert np.all(difference == s * (s + 1) / 2)
        assert measures.pairwise_loss.offset(relevance) == -s * (s + 1) / 2


@pytest.mark.judges("2015-008", "2015-012")
def test_but_not_for_graded_relevance() -> None:
    """Erratum A4: with grades 0, 1, 2 and three items the difference depends on the order for 12 of 27 vectors."""
    orders = list(permutations(range(3)))
    depends = [
        np.ptp(measures.sum_loss(orders, relevance) - measures.pairwise_loss(orders, relevance)) > 0
        for relevance in product([0, 1, 2], repeat=3)
    ]
    assert sum(depends) == 12


thorough = settings(max_examples=100)
same = {"rel": 1e-9, "abs": 1e-12}


def scores_of(order: Ints) -> Floats:
    """Scores that sort the items into this order."""
    scores = np.empty(len(order))
    scores[order] = np.arange(len(order), 0, -1)
    return scores


def trec_eval(order: Ints, relevance: Floats, *wanted: str) -> dict[str, float]:
    qrel = {"q": {f"d{item}": int(r) for item, r in enumerate(relevance)}}
    run = {"q": {f"d{item}": float(score) for item, score in enumerate(scores_of(order))}}
    return dict(pytrec_eval.RelevanceEvaluator(qrel, set(wanted)).evaluate(run)["q"])


@pytest.mark.judges("2015-013", "2015-017")
@thorough
@given(rankings(max_grade=4, min_items=2), st.integers(1, 15))
def test_dcg_and_ndcg_of_scikit_learn(case: tuple[Ints, Floats], k: int) -> None:
    order, relevance = case
    truth, scores = [2**relevance - 1], [scores_of(order)]
    assert measures.dcg(order, relevance) == pytest.approx(dcg_score(truth, scores), **same)
    assert measures.dcg(order, relevance, k=k) == pytest.approx(dcg_score(truth, scores, k=k), **same)
    if relevance.any():  # scikit-learn says 0 when nothing is relevant
        assert measures.ndcg(order, relevance) == pytest.approx(ndcg_score(truth, scores), **same)
        assert measures.ndcg(order, relevance, k=k) == pytest.approx(ndcg_score(truth, scores, k=k), **same)


@pytest.mark.judges("2015-018")
@thorough
@given(rankings())
def test_average_precision_of_scikit_learn(case: tuple[Ints, Floats]) -> None:
    order, relevance = case
    assume(relevance.any())
    theirs = average_precision_score(relevance, scores_of(order))
    assert measures.average_precision(order, relevance) == pytest.approx(theirs, **same)


@pytest.mark.judges("2015-019")
@thorough
@given(rankings(min_items=2))
def test_auc_is_one_minus_the_area_of_scikit_learn(case: tuple[Ints, Floats]) -> None:
    order, relevance = case
    assume(0 < relevance.sum() < len(relevance))
    scores = scores_of(order)
    assert measures.auc(order, relevance) == pytest.approx(1 - roc_auc_score(relevance, scores), **same)
    wrong = label_ranking_loss([relevance], [scores])
    assert measures.auc(order, relevance) == pytest.approx(wrong, **same)
    pairs = relevance.sum() * (len(relevance) - relevance.sum())
    assert measures.pairwise_loss(order, relevance) == pytest.approx(wrong * pairs, **same)


@pytest.mark.judges("2015-017", "2016-094")
@thorough
@given(rankings(max_grade=4), st.integers(1, 15))
def test_ndcg_of_trec_eval(case: tuple[Ints, Floats], k: int) -> None:
    order, relevance = case
    assume(relevance.any())  # trec_eval says 0 when nothing is relevant
    theirs = trec_eval(order, 2**relevance - 1, "ndcg", f"ndcg_cut.{k}")
    assert measures.ndcg(order, relevance) == pytest.approx(theirs["ndcg"], **same)
    assert measures.ndcg(order, relevance, k=k) == pytest.approx(theirs[f"ndcg_cut_{k}"], **same)


@pytest.mark.judges("2015-018")
@thorough
@given(rankings(), st.integers(1, 15))
def test_map_and_precision_of_trec_eval(case: tuple[Ints, Floats], k: int) -> None:
    order, relevance = case
    theirs = trec_eval(order, relevance, "map", f"map_cut.{k}", f"P.{k}")
    assert measures.precision(order, relevance, k=k) == pytest.approx(k * theirs[f"P_{k}"], **same)
    if relevance.any():
        assert measures.average_precision(order, relevance) == pytest.approx(theirs["map"], **same)
        at_k = measures.average_precision(order, relevance, k=k)
        assert at_k == pytest.approx(theirs[f"map_cut_{k}"], **same)


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
def test_orders(order: Any, message: str) -> None:
    for measure in ALL:
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
def test_relevance(relevance: Any, message: str) -> None:
    for measure in ALL:
        with pytest.raises(ValueError, match=message):
            measure([0, 1, 2], relevance)


def test_batches_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match=r"order of shape \(2, 2\), relevance of shape \(3, 2\)"):
        measures.dcg([[0, 1], [1, 0]], np.ones((3, 2)))


def test_a_batch_of_none() -> None:
    assert np.asarray(measures.dcg(np.empty((0, 2), dtype=int), [1, 0])).shape == (0,)


def test_binary_measures_refuse_grades() -> None:
    for name, wrong in product(["average_precision", "average_precision@2", "auc"], [2, 0.5]):
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


def test_no_discount_where_there_is_no_product() -> None:
    for measure in (measures.average_precision, measures.err):
        message = rf"{measure.name} is not of the form f\(order\) . g\(relevance\)"
        for ask, argument in ((measure.discount, 3), (measure.gain, [0, 1]), (measure.offset, [0, 1])):
            with pytest.raises(ValueError, match=message):
                ask(argument)  # type: ignore[operator]


def test_grades_above_the_highest() -> None:
    with pytest.raises(ValueError, match=r"relevance\[0\] = 2; err takes relevance up to 1; see graded"):
        measures.err([0, 1], [2, 0])
    with pytest.raises(ValueError, match=r"relevance\[0\] = 3; dcg takes relevance up to 2"):
        measures.dcg.graded(2)([0, 1], [3, 0])
    with pytest.raises(ValueError, match=r"relevance\[0\] = 5000; ndcg takes relevance up to 1000"):
        measures.ndcg([0, 1], [5000, 0])
    assert measures.ndcg([0, 1], [1000, 1000]) == 1.0
    assert measures.sum_loss([0, 1], [5000, 0]) == 5000.0


def test_grades_cut_offs_and_sizes_that_are_none() -> None:
    wrong: Any
    for wrong in (0, -1, 1.5, "3", None, 1001):
        with pytest.raises(ValueError, match="max_grade"):
            measures.err.graded(wrong)
    for wrong in (0, -3, 2.5, "2"):
        with pytest.raises(ValueError, match=rf"k must be .*, got {wrong!r}"):
            measures.ndcg.at(wrong)
        with pytest.raises(ValueError, match=rf"k must be .*, got {wrong!r}"):
            measures.ndcg([0, 1], [0, 1], k=wrong)
    for wrong in (0, -3, 2.5):
        with pytest.raises(ValueError, match=rf"n_items must be .*, got {wrong!r}"):
            measures.dcg.discount(wrong)


def test_measures_of_the_whole_list_only() -> None:
    for name in ("sum_loss", "pairwise_loss", "auc"):
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


def test_unknown_names_list_the_known() -> None:
    unknown: list[Any] = ["mrr", "NDCG", "", "@3", "ndcg 3", 7, None]
    for wrong in unknown:
        message = rf"measure {wrong!r} is not known; known are sum_loss, .*precision@k, ndcg\[@k\]"
        with pytest.raises(ValueError, match=message):
            measures.get(wrong)


def test_malformed_cut_offs() -> None:
    message = r"cut-off that is not a whole number|k must be a whole number of at least 1, got 0"
    for wrong in ("dcg@", "dcg@x", "dcg@-1", "dcg@2.5", "dcg@1@2", "dcg@²", "dcg@0"):
        with pytest.raises(ValueError, match=message):
            measures.get(wrong)
