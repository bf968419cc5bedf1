"""The rankers that can be advised: for whom, with which arguments, and with what guarantee."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rankloop import measures
from rankloop.advice.question import Question

MOST_PLANNED_ITEMS = 20
Arguments = Callable[[Question], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A ranker with a way to build it.

    Parameters
    ----------
    label : str
        Its name in the table of what was measured.
    ranker : str
        The class in `rankloop.rankers`.
    feedback : str
        The feedback that it learns from.
    guarantee : str
        What is proved, in words.
    anybody : bool
        Whether the guarantee holds whatever users do.
    arguments : callable
        From a question to the arguments of the constructor.
    features : bool
        Whether it takes documents with features.
    unfit : callable
        From a question to the reason why it cannot be taken; empty if it can.
    """

    label: str
    ranker: str
    feedback: str
    guarantee: str
    anybody: bool
    arguments: Arguments
    features: bool = False
    unfit: Callable[[Question], str] = lambda _: ""


def _items(question: Question) -> dict[str, Any]:
    return {"n_items": question.n_items, "measure": question.measure}


def _top(question: Question) -> dict[str, Any]:
    more = {"k": question.k} if question.k > 1 else {}
    return _items(question) | more


def _clicked(**more: Any) -> Arguments:
    return lambda question: {"n_items": question.n_items, "n_positions": question.positions} | more


def _documents(**more: Any) -> Arguments:
    return lambda question: {"n_features": question.n_features} | more


def _clicked_documents(question: Question) -> dict[str, Any]:
    return {"n_features": question.n_features, "n_positions": question.n_positions or 10}


def a_year(question: Question) -> int:
    """How many users come in a year; a thousand a day, if nobody said."""
    return 365 * (question.per_day or 1_000)


def _not_additive(question: Question) -> str:
    if measures.get(question.measure).family in ("sum_loss", "pairwise_loss", "dcg", "precision"):
        return ""
    return f"it does not learn {question.measure}"


def _only_precision(question: Question) -> str:
    return "" if measures.get(question.measure).family == "precision" else "it learns precision@n only"


def _needs_examination(question: Question) -> str:
    return "" if question.examination is not None else "it needs to know how often each position is looked at"


def _no_plans(question: Question) -> str:
    if question.n_items > MOST_PLANNED_ITEMS:
        return f"its plans take too long with more than {MOST_PLANNED_ITEMS} items"
    return "its plans may differ between machines" if question.replicas else ""


CANDIDATES: tuple[Candidate, ...] = (
    Candidate(
        "TopFTRL",
        "TopFTRL",
        "top",
        "regret of order T^(2/3), whatever users do",
        True,
        _top,
        unfit=_not_additive,
    ),
    Candidate(
        "RTop1F",
        "RTop1F",
        "top",
        "regret of order T^(2/3), whatever users do",
        True,
        _top,
        unfit=_not_additive,
    ),
    Candidate(
        "PEGE",
        "PEGE",
        "top",
        "regret of order log(T)^2 where users come from one population, none where they change",
        False,
        _top,
        unfit=_not_additive,
    ),
    Candidate(
        "PrecisionFTRL",
        "PrecisionFTRL",
        "top",
        "regret of order sqrt(T), whatever users do",
        True,
        _top,
        unfit=_only_precision,
    ),
    Candidate(
        "FTPL",
        "FTPL",
        "labels",
        "regret of order sqrt(T), whatever users do",
        True,
        _items,
    ),
    Candidate(
        "FTRLPBM",
        "FTRLPBM",
        "clicks",
        "regret of order sqrt(T) whatever users do, and of order log(T) where they come from one population",
        True,
        _clicked(),
    ),
    Candidate(
        "FTRLPBM mean",
        "FTRLPBM",
        "clicks",
        "none with this estimator; measured only",
        False,
        _clicked(estimator="mean"),
    ),
    Candidate(
        "FTRLPBM hybrid",
        "FTRLPBM",
        "clicks",
        "regret of order sqrt(T) whatever users do, and of order log(T) where they come from one population",
        True,
        _clicked(regulariser="hybrid", estimator="mean"),
    ),
    Candidate(
        "PBMTS",
        "PBMTS",
        "clicks",
        "none; measured only",
        False,
        _clicked(),
    ),
    Candidate(
        "GRAB",
        "GRAB",
        "clicks",
        "regret of order log(T) where users come from one population",
        False,
        _clicked(),
    ),
    Candidate(
        "PBMPIE",
        "PBMPIE",
        "clicks",
        "the least regret that is possible, as T grows, where users come from one population",
        False,
        lambda question: _clicked(examination=question.examination, horizon=a_year(question))(question),
        unfit=_needs_examination,
    ),
    Candidate(
        "PMED",
        "PMED",
        "clicks",
        "the least regret that is possible, as T grows, is proved for a relative of it",
        False,
        _clicked(growth=1.5, tolerance=0.05),
        unfit=_no_plans,
    ),
    Candidate(
        "RTopKF",
        "RTopKF",
        "top",
        "regret of its surrogate of order T^(2/3), whatever users do, with the schedules of the paper",
        True,
        lambda question: {"n_features": question.n_features, "k": question.k},
        features=True,
    ),
    Candidate(
        "PDGD",
        "PDGD",
        "clicks",
        "none on the regret; the expected step has the right sign for every pair of documents",
        False,
        _clicked_documents,
        features=True,
    ),
    Candidate(
        "MGD",
        "MGD",
        "clicks",
        "none; measured only",
        False,
        _clicked_documents,
        features=True,
    ),
    Candidate(
        "DBGD",
        "DBGD",
        "clicks",
        "none for interleaved lists; measured only",
        False,
        _clicked_documents,
        features=True,
    ),
    Candidate(
        "RTopKF from clicks",
        "RTopKF",
        "clicks",
        "regret of its surrogate of order T^(2/3), for the click on the first document as its label",
        False,
        _documents(examination=1.0),
        features=True,
    ),
    Candidate(
        "ListNet",
        "ListNet",
        "labels",
        "regret of its surrogate of order sqrt(T), whatever users do",
        True,
        _documents(),
        features=True,
    ),
)
