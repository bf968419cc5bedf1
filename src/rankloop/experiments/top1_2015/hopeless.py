"""The hard worlds of the 2015 paper, section 9: NDCG, MAP and AUC cannot be learnt from the top item alone.

Each measure has two worlds (`rankloop.environments.adversary`). In both every item is relevant to half of the
users; the worlds differ in which items are relevant together, which one label per round does not reveal.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankloop import environments, measures
from rankloop.environments import FixedItems, users
from rankloop.experiments.top1_2015.learners import FULL, KEEP_REST, UNIFORM, make_learner
from rankloop.rankers import FTPL
from rankloop.simulation import play

HOPELESS = {"ndcg": "NDCG", "average_precision": "MAP", "auc": "AUC"}
OWN_TERMS = "FTPL, own terms"

# From top-1 feedback, from none, and with full information: none of them can win.
LEARNERS = (KEEP_REST, UNIFORM, FULL)
# MAP is not a sum over the items, so there are no terms of its own that FTPL could add up.
SEPARABLE = ("ndcg", "auc")


def regret(*, measure: str, world: int, learner: str, horizon: int, seed: int) -> float:
    """Regret at `horizon` of a learner in one of the two worlds of a measure."""
    people = environments.adversary(measure, world=world)
    if learner == OWN_TERMS:
        vectors, by_item = own_terms(measure, people.vectors)
        world_as_told = FixedItems(users.listed(vectors, weights=people.weights), measure=by_item)
        informed = FTPL(n_items=people.n_items, horizon=horizon, measure=by_item)
        return play(informed, world_as_told, rounds=horizon, seed=seed, points=1, progress=False).total_regret
    # DCG is what RTop-1F and FTPL can aim for; they know nothing nearer to a normalised measure.
    ranker = make_learner(learner, n_items=people.n_items, horizon=horizon, measure="dcg")
    met = FixedItems(people, measure=measure)
    return play(ranker, met, rounds=horizon, seed=seed, points=1, progress=False).total_regret


def own_terms(
    measure: str, relevance: NDArray[np.int8] | NDArray[np.float64]
) -> tuple[NDArray[np.float64], str]:
    """The same users rescaled, so that DCG (for NDCG) or SumLoss (for AUC) has the measure's regret.

    NDCG is DCG divided by the user's ideal DCG, and AUC is SumLoss divided by the user's number of pairs, up to
    what no ranking can change. A learner with full information can do these divisions itself.

    >>> own_terms("auc", np.array([[1, 0, 0, 0], [1, 1, 0, 0]], dtype=np.int8))[0]
    array([[0.33333333, 0.        , 0.        , 0.        ],
           [0.25      , 0.25      , 0.        , 0.        ]])
    """
    m, s = relevance.shape[1], relevance.sum(axis=1, dtype=np.int64)
    if measure == "ndcg":
        ideal = np.concatenate([[0.0], np.cumsum(measures.get("dcg").discount(m))])[s]
        # DCG takes 2^r - 1 of its input.
        return np.log2(1 + _divided(relevance, ideal)), "dcg"
    if measure == "auc":
        return _divided(relevance, (s * (m - s)).astype(np.float64)), "sum_loss"
    raise ValueError(f"measure must be one of {', '.join(SEPARABLE)}, got {measure!r}")


def _divided(
    relevance: NDArray[np.int8] | NDArray[np.float64], by: NDArray[np.float64]
) -> NDArray[np.float64]:
    # Where there is nothing to divide by, all rankings have the same value.
    return np.where(by[:, None] > 0, relevance / np.maximum(by, 1e-9)[:, None], 0.0)
