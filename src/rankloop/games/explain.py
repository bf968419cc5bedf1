"""Explains a verdict: what it means, why it is so, and what to use."""

from __future__ import annotations

import math

from rankloop import measures
from rankloop.extras import counted
from rankloop.games.classify import ADDITIVE
from rankloop.games.verdict import Verdict
from rankloop.measures import HIGHEST_GRADE, Measure

_MOST_PLAYED_ITEMS = 4  # by games.Player
_MOST_FEEDEXP3_ITEMS, _MOST_FEEDEXP3_ENTRIES = 5, 1 << 23  # beyond, its constructor takes minutes, or refuses

HEADLINES = {
    "trivial": "nothing to learn: one choice is best whatever happens",
    "easy": "learnable, and quickly: regret grows about as T^(1/2)",
    "hard": "learnable, but slowly: regret grows about as T^(2/3)",
    "hopeless": "not learnable: regret grows linearly in T for every algorithm",
}

_NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905 (a line, not fifteen)


_LEARNABLE = {"ndcg": "dcg", "average_precision": "precision@k or dcg", "auc": "pairwise_loss", "err": "dcg"}


def headline(verdict: Verdict) -> str:
    """One line."""
    return HEADLINES[verdict.class_]


def explain(verdict: Verdict) -> list[str]:
    """What the class of a game means, why it is so, what would change it, what to use: a `verdict` in a few sentences.

    Examples
    --------
    >>> from rankloop import games
    >>> for line in explain(games.classify(games.zoo.apple_tasting())):
    ...     print(line)
    A hundred times as many users lose only ten times as much in all: a tenth as much each.
    Of 2 actions 2 are best somewhere, with 1 pair of neighbours.
    Use: games.Player(game).
    """
    lines = [_meaning(verdict)]
    if verdict.measure is None:
        playable = verdict.class_ in ("easy", "hard")
        return [*lines, _of_cells(verdict), *(["Use: games.Player(game)."] if playable else [])]
    lines += [_why(verdict), _easier(verdict), _computed(verdict), learner(verdict)]
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
    if verdict.measure is not None:
        return "Show any order: all have the same value, so that each is best and there is no difference to learn."
    best = verdict.pareto[0]
    alike = [i for i, first in enumerate(verdict.witness.same) if first == best and i != best]  # type: ignore[union-attr]
    also = (
        f" So are {len(alike)} others." if len(alike) > 1 else f" So is action {alike[0]}." if alike else ""
    )
    return f"Play action {best}: it is best whatever happens.{also}"


def _why(verdict: Verdict) -> str:
    if verdict.feedback is not None:
        return _of_cells(verdict)
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
    if k > verdict.k + 1:
        text = f"Feedback on {_labels(verdict.k + 1)} would not help, on {_count(k)} would: then it is {words[first]}"
    else:
        text = f"Feedback on {_count(k)} would help: then it is {words[first]}"
    for better, at in more:
        text += f"; with {_count(at)} it is {words[better]}"
    return text + "."


def _computed(verdict: Verdict) -> str:
    # With a cut-off below m - 1 the last difference of 1/Z is evaluated, for this m; docs/concepts/games.md.
    assert verdict.measure is not None
    scored, m = _packaged(verdict), verdict.n_items or 0
    if (
        scored is None
        or scored.family != "ndcg"
        or not 1 < (scored.cutoff or m) < m - 1
        or verdict.route != "structure"
    ):
        return ""
    return (
        f"Which k are enough was computed for these {m:,} items, with a bound on rounding; that it is so for every "
        f"number of items is a conjecture for {verdict.measure}."
    )


def learner(verdict: Verdict) -> str:
    """Which ranker of the package attains the rate, or comes nearest."""
    if verdict.measure is None or verdict.n_items is None or verdict.class_ == "trivial":
        return ""
    few = verdict.n_items <= _MOST_PLAYED_ITEMS
    if verdict.k is None and verdict.class_ != "hopeless":
        none = "Use: no ranker of the package learns from this feedback yet."
        return "Use: games.Player(game)." if few else none
    if verdict.class_ == "hopeless":
        scored = _packaged(verdict)
        instead = _LEARNABLE.get(scored.family if scored is not None else "", "sum_loss")
        return f"Use: no ranker can. Optimise {instead} instead, which can be learnt from this feedback."
    call = constructor(verdict)
    if call is None and few:
        return "Use: games.Player(game), which reaches this rate for so few items."
    if call is None:
        return "Use: no ranker of the package reaches this rate for so many items yet."
    if call.startswith("FTPL("):
        return f"Use: rankers.{call}, which learns from full information."
    slower = ", which is known to reach T^(2/3) only; no ranker here is faster yet for so many items"
    proviso = slower if verdict.class_ == "easy" and call.startswith("FeedExp3(") else ""
    return f"Use: rankers.{call}{proviso}."


def constructor(verdict: Verdict) -> str | None:
    """The call that makes the ranker to use, without `rankers.`; None where there is none."""
    if verdict.measure is None or verdict.n_items is None or verdict.k is None:
        return None
    if verdict.class_ in ("trivial", "hopeless"):
        return None
    scored = _packaged(verdict)
    if scored is None:
        return None
    m, k, family, graded = verdict.n_items, verdict.k, scored.family, verdict.max_grade > 1
    name, most = scored.name, f", max_grade={verdict.max_grade}" if graded else ""
    if scored.cutoff == 1 and family in ("dcg", "ndcg", "err") and not graded:
        name, family = "precision@1", "precision"  # up to a factor, and a constant where nothing is relevant
    elif (family, scored.cutoff) == ("err", 1):
        name, family = "dcg@1", "dcg"  # both 2^r - 1 of the first item, up to a factor
    if verdict.max_grade > HIGHEST_GRADE:
        return None
    if family == "precision":
        n = measures.get(name).cutoff or 1
        return f"PrecisionFTRL(n_items={m}, measure={name!r}, k={min(k, n)}{most})"
    summed = family in ADDITIVE or (family == "pairwise_loss" and not graded)
    if k == m and (summed or family in ("ndcg", "auc")):
        return f"FTPL(n_items={m}, measure={name!r}{most})"
    if summed:
        if k >= min(measures.get(name).cutoff or m, m - 1):  # every label at a position that counts is seen
            return f"SemiBanditFTRL(n_items={m}, measure={name!r}{most})"
        return f"TopFTRL(n_items={m}, measure={name!r}, k={k}{most})"
    if verdict.class_ == "easy" and m <= _MOST_PLAYED_ITEMS:
        return None  # games.Player is faster
    if _fits_feedexp3(m, k, verdict.max_grade + 1):
        return f"FeedExp3(n_items={m}, measure={name!r}, k={k}{most})"
    return None


def _packaged(verdict: Verdict) -> Measure | None:
    # None for a measure of one's own: what is known of the package's does not hold for it.
    try:
        return measures.get(verdict.measure or "")
    except ValueError:
        return None


def _fits_feedexp3(m: int, k: int, grades: int) -> bool:
    # FeedExp3 keeps a weight for each order, order shown and pattern of labels, and lists all outcomes.
    if m > _MOST_FEEDEXP3_ITEMS:
        return False
    orders = math.factorial(m)
    return int(max(orders * orders * (grades**k - 1), grades**m * orders)) <= _MOST_FEEDEXP3_ENTRIES


def _of_cells(verdict: Verdict) -> str:
    pairs = counted(len(verdict.neighbours), "pair")
    n = len(verdict.pareto)
    text = f"Of {verdict.n_actions} actions {n} are best somewhere, with {pairs} of neighbours."
    blind = getattr(verdict.witness, "blind", None)
    if blind is not None and verdict.class_ in ("hard", "hopeless"):
        among = "neither of them, nor any action between them,"
        who = "nobody" if verdict.class_ == "hopeless" else among
        text += f" Actions {blind[0][0]} and {blind[0][1]} compete, and {who} sees which is better."
    return text


def _labels(k: int) -> str:
    return "the top item" if k == 1 else f"the top {_count(k)}"


def _count(k: int) -> str:
    return _NUMBERS[k] if k < len(_NUMBERS) else str(k)
