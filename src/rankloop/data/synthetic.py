"""Synthetic queries and ratings."""

from __future__ import annotations

import numpy as np

from rankloop.arguments import number, whole
from rankloop.data.dataset import Dataset
from rankloop.data.ratings import Ratings

# Of the documents, this share has at least grade 1, of those again at least grade 2, and so on: for five grades 60, 24,
# 10, 4 and 3 percent. The MSLR fragments have 56, 29, 13, 1 and 1; in MQ2008, with three grades, 81 percent are 0.
_SHARE = 0.4
# How much queries differ in how many good documents there are to find, in units of what separates documents.
_SPREAD = 0.5


def synthetic_letor(
    *,
    n_queries: int,
    n_features: int,
    seed: int,
    list_length: tuple[int, int] = (5, 40),
    max_grade: int = 4,
    noise: float = 0.5,
) -> Dataset:
    """Draw queries with documents whose relevance is linear in their features, up to noise and rounding to grades.

    A document's merit is its features times a weight vector shared by all queries, scaled to variance 1, plus noise.
    Merit plus an offset of the query, because some queries have many relevant documents and some none, is cut
    into grades: 60 percent of all documents get 0, and each further grade is rarer. Rows have Euclidean length at
    most 1.

    Parameters
    ----------
    n_queries, n_features : int
        Size of the dataset.
    seed : int
        Same seed, same queries.
    list_length : tuple of int, optional
        The shortest and the longest list; lengths are uniform between.
    max_grade : int, optional
        The highest grade.
    noise : float, optional
        Standard deviation of the noise; 0 for grades that a linear ranker can order perfectly.

    Examples
    --------
    >>> from rankloop import data
    >>> queries = data.synthetic_letor(n_queries=200, n_features=20, seed=1)
    >>> queries
    Dataset('synthetic': 200 queries, 4,654 documents, 20 features, grades up to 4)
    >>> train, test = queries.split(train=0.75)
    >>> train.n_queries, test.n_queries
    (150, 50)
    """
    for name, count in (("n_queries", n_queries), ("n_features", n_features), ("max_grade", max_grade)):
        whole(name, count, at_least=1)
    shortest, longest = list_length
    if not 1 <= shortest <= longest:
        raise ValueError(f"list_length must be two lengths in rising order, at least 1, got {list_length}")
    number("noise", noise, at_least=0)
    rng = np.random.default_rng(seed)
    lengths = rng.integers(shortest, longest, size=n_queries, endpoint=True)
    n_documents = int(lengths.sum())
    features = rng.normal(size=(n_documents, n_features))
    weights = rng.normal(size=n_features)
    merit, squares = np.zeros(n_documents), np.zeros(n_documents)
    # Column by column rather than as a matrix product, whose rounding depends on the machine's BLAS.
    for feature, weight in zip(features.T, weights, strict=True):
        merit += weight * feature
        squares += feature * feature
    merit /= np.sqrt((weights * weights).sum())
    merit += rng.normal(scale=noise, size=n_documents)
    merit += np.repeat(rng.normal(scale=_SPREAD, size=n_queries), lengths)
    cuts = np.quantile(merit, 1.0 - _SHARE ** np.arange(1, max_grade + 1))
    return Dataset(
        features=features,
        relevance=np.searchsorted(cuts, merit, side="left").astype(np.float64),
        offsets=np.concatenate(([0], np.cumsum(lengths))),
        query_ids=tuple(str(query) for query in range(1, n_queries + 1)),
        name="synthetic",
        max_grade=max_grade,
    ).bounded()


def synthetic_ratings(
    *,
    n_users: int,
    n_items: int,
    seed: int,
    missing: float = 0.2,
    n_tastes: int = 3,
    noise: float = 0.3,
    scale: tuple[float, float] = (-10.0, 10.0),
) -> Ratings:
    """Draw realistic ratings: better and worse items, generous and harsh users, shared tastes.

    A rating is the sum of the item's quality, the user's generosity, how far the user's leanings agree with
    the item's traits (both of dimension `n_tastes`, so the taste part has that rank), and noise; put on the
    scale, rounded to hundredths and cut off at its ends.

    Parameters
    ----------
    n_users, n_items : int
        Shape of the matrix.
    seed : int
        The same seed gives the same users.
    missing : float, optional
        Probability with which a rating is blank, whatever the user, the item and the rating.
    n_tastes : int, optional
        Rank of the taste part; 0 for users who differ only in generosity.
    noise : float, optional
        Standard deviation of the noise, where half the scale is 1.
    scale : tuple of float, optional
        The lowest and the highest rating.

    Examples
    --------
    >>> from rankloop import data
    >>> ratings = data.synthetic_ratings(n_users=500, n_items=20, seed=1)
    >>> ratings
    Ratings('synthetic': 500 users x 20 items, 7,961 ratings, scale -10 to 10)
    >>> ratings.most_rated(5).n_items
    5
    """
    for name, count, least in (("n_users", n_users, 1), ("n_items", n_items, 1), ("n_tastes", n_tastes, 0)):
        whole(name, count, at_least=least)
    number("missing", missing, at_least=0, below=1)
    number("noise", noise, at_least=0)
    rng = np.random.default_rng(seed)
    quality = rng.normal(scale=0.25, size=n_items)
    generosity = rng.normal(scale=0.2, size=(n_users, 1))
    opinion = quality + generosity + rng.normal(scale=noise, size=(n_users, n_items))
    # One outer product a taste rather than a matrix product, whose rounding depends on the machine's BLAS.
    for _ in range(n_tastes):
        leaning, trait = rng.normal(size=(n_users, 1)), rng.normal(size=n_items)
        opinion += 0.3 / np.sqrt(n_tastes) * leaning * trait
    low, high = scale
    values = np.clip(np.round((low + high) / 2 + (high - low) / 2 * opinion, 2), low, high)
    values[rng.random(values.shape) < missing] = np.nan
    return Ratings(
        values=values,
        user_ids=np.arange(1, n_users + 1),
        item_ids=np.arange(1, n_items + 1),
        scale=scale,
        name="synthetic",
    )
