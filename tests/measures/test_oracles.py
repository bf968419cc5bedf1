"""Against scikit-learn and trec_eval. Both take gains as they are, so ours, 2^r - 1, are handed over ready."""

from __future__ import annotations

import numpy as np
import pytest
import pytrec_eval
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, dcg_score, label_ranking_loss, ndcg_score, roc_auc_score

from rankloop import measures
from tests.measures.cases import Floats, Ints, rankings

quick = settings(max_examples=100)
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
@quick
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
@quick
@given(rankings())
def test_average_precision_of_scikit_learn(case: tuple[Ints, Floats]) -> None:
    order, relevance = case
    assume(relevance.any())
    theirs = average_precision_score(relevance, scores_of(order))
    assert measures.average_precision(order, relevance) == pytest.approx(theirs, **same)


@pytest.mark.judges("2015-019")
@quick
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
@quick
@given(rankings(max_grade=4), st.integers(1, 15))
def test_ndcg_of_trec_eval(case: tuple[Ints, Floats], k: int) -> None:
    order, relevance = case
    assume(relevance.any())  # trec_eval says 0 when nothing is relevant
    theirs = trec_eval(order, 2**relevance - 1, "ndcg", f"ndcg_cut.{k}")
    assert measures.ndcg(order, relevance) == pytest.approx(theirs["ndcg"], **same)
    assert measures.ndcg(order, relevance, k=k) == pytest.approx(theirs[f"ndcg_cut_{k}"], **same)


@pytest.mark.judges("2015-018")
@quick
@given(rankings(), st.integers(1, 15))
def test_map_and_precision_of_trec_eval(case: tuple[Ints, Floats], k: int) -> None:
    order, relevance = case
    theirs = trec_eval(order, relevance, "map", f"map_cut.{k}", f"P.{k}")
    assert measures.precision(order, relevance, k=k) == pytest.approx(k * theirs[f"P_{k}"], **same)
    if relevance.any():
        assert measures.average_precision(order, relevance) == pytest.approx(theirs["map"], **same)
        at_k = measures.average_precision(order, relevance, k=k)
        assert at_k == pytest.approx(theirs[f"map_cut_{k}"], **same)
