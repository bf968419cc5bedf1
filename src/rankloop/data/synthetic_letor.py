"""Synthetic queries: a linear truth with noise, and few relevant documents."""

import numpy as np

from rankloop.arguments import number, whole
from rankloop.data.dataset import Dataset

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
    n_queries : int
        Size of the dataset.
    n_features : int
        Size of the dataset.
    seed : int
        Same seed, same queries.
    list_length : tuple of int, optional
        The shortest and the longest list; lengths are uniform between.
    max_grade : int, optional
        The highest grade.
    noise : float, optional
        Standard deviation of the noise; 0 for grades that a linear ranker can order perfectly.

    Returns
    -------
    Dataset
        The queries, with features and relevance.

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
