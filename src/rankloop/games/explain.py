"""Explains a verdict: what it means, why it is so, and what to use."""

from __future__ import annotations

from rankloop import measures
from rankloop.games.classify_ranking import ADDITIVE
from rankloop.games.verdict import Verdict

HEADLINES = {
    "trivial": "nothing to learn: one choice is best whatever happens",
    "easy": "learnable, and quickly: regret grows about as T^(1/2)",
    "hard": "learnable, but slowly: regret grows about as T^(2/3)",
    "hopeless": "not learnable: regret grows linearly in T for every algorithm",
}

_NUMBERS = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)


def headline(verdict: Verdict) -> str:
    """One line."""
    return HEADLINES[verdict.class_]


def explain(verdict: Verdict) -> list[str]:
    """What the class of a game means, why it is so, what would change it, and what to use.

    Parameters
    ----------
    verdict : Verdict
        What `classify` found.

    Returns
    -------
    list of str
        A few sentences each.

    Examples
    --------
    >>> from rankloop import games
    >>> for line in explain(games.classify(games.zoo.apple_tasting())):
    ...     print(line)
    A hundred times as many users lose only ten times as much in all: a tenth as much each.
    Of 2 actions 2 are best somewhere, with 1 pair of neighbours.
    """
    lines = [_meaning(verdict)]
    if verdict.measure is None:
        return [*lines, _of_cells(verdict)]
    told = _why(verdict)
    if told:
        lines.append(told)
    lines.append(_easier(verdict))
    lines.append(learner(verdict))
    return [line for line in lines if line]


def _meaning(verdict: Verdict) -> str:
    if verdict.class_ == "easy":
        return "A hundred times as many users lose only ten times as much in all: a tenth as much each."
    if verdict.class_ == "hard":
        return (
            "A hundred times as many users lose about twenty times as much in all, a fifth as much each, since some "
            "must be shown orders for exploration only. No algorithm does better in the worst case."
        )
    if verdict.class_ == "hopeless":
        cost = ""
        if verdict.worlds is not None:
            cost = f", at least {float(verdict.worlds.forced):.2g} of it a user in the worlds of the witness"
        return (
            "Two populations of users give the same feedback, whatever is shown, but prefer different orders. So "
            f"a share of the {verdict.measure or 'loss'} is lost permanently{cost}."
        )
    return "Show any order: there is no difference to learn."


def _why(verdict: Verdict) -> str:
    k = _labels(verdict.k or 1)
    if verdict.class_ == "hard":
        return (
            f"Why: with {k} seen, two orders that differ by one swap far down look the same to whoever shows either of "
            "them. To learn which is better, other and worse orders have to be shown at times."
        )
    if verdict.class_ == "hopeless":
        return (
            f"Why: the value of a swap in {verdict.measure} depends on more labels at once than {k}, and no "
            "average of answers makes up for labels that are never seen together."
        )
    if verdict.class_ == "easy":
        return f"Why: with {k} seen, any two orders that compete show what is needed to compare them."
    return ""


def _easier(verdict: Verdict) -> str:
    if verdict.class_ in ("trivial", "easy") or verdict.route != "structure":
        return ""
    assert verdict.k is not None
    if not verdict.easier_k:
        return "No top-k feedback would help."
    (first, k), *more = sorted(verdict.easier_k.items(), key=lambda entry: entry[1])
    words = {"easy": "quickly learnable", "hard": "learnable, slowly"}
    text = ""
    if k > verdict.k + 1:
        text = f"Feedback on {_labels(verdict.k + 1)} would not help, on {_count(k)} would: then it is {words[first]}"
    else:
        text = f"Feedback on {_count(k)} would help: then it is {words[first]}"
    for better, at in more:
        text += f"; with {_count(at)} it is {words[better]}"
    return text + "."


def learner(verdict: Verdict) -> str:
    """Which ranker of the package attains the rate, or comes nearest."""
    if verdict.measure is None or verdict.n_items is None or verdict.k is None or verdict.class_ == "trivial":
        return ""
    scored = measures.get(verdict.measure)
    m, k = verdict.n_items, verdict.k
    linear = scored.family in ADDITIVE or (scored.family == "pairwise_loss" and verdict.max_grade == 1)
    small = m <= 6 and verdict.max_grade <= 3
    if verdict.class_ == "hopeless":
        plain = {
            "ndcg": "dcg",
            "average_precision": "precision@k or dcg",
            "auc": "pairwise_loss",
            "err": "dcg",
        }
        instead = plain.get(scored.family, "sum_loss")
        return f"Use: no ranker can. Optimise {instead} instead, which can be learnt from this feedback."
    if linear and k == m:
        return "Use: rankers.FTPL, which learns from full information."
    if scored.family == "precision":
        return f"Use: rankers.PrecisionFTRL(n_items={m}, measure={scored.name!r}, k={min(k, scored.cutoff or k)})."
    if linear or small:
        name = "RTop1F" if linear else "FeedExp3"
        slower = ", which is known to reach T^(2/3) only; no ranker here is faster yet"
        proviso = "" if verdict.class_ == "hard" else slower
        return f"Use: rankers.{name}(n_items={m}, measure={scored.name!r}, k={k}){proviso}."
    return "Use: no ranker of the package reaches this rate for so many items yet."


def _of_cells(verdict: Verdict) -> str:
    n = len(verdict.pareto)
    pairs = len(verdict.neighbours)
    counted = f"{pairs} pair{'' if pairs == 1 else 's'} of neighbours"
    text = f"Of {verdict.n_actions} actions {n} are best somewhere, with {counted}."
    if verdict.class_ in ("hard", "hopeless"):
        witness = verdict.witness
        pair = getattr(witness, "blind", None)
        if pair is not None:
            who = (
                "nobody" if verdict.class_ == "hopeless" else "neither of them, nor any action between them,"
            )
            text += f" Actions {pair[0][0]} and {pair[0][1]} compete, and {who} sees which is better."
    return text


def _labels(k: int) -> str:
    return "the top item" if k == 1 else f"the top {_count(k)}"


def _count(k: int) -> str:
    return _NUMBERS[k] if k < len(_NUMBERS) else str(k)
