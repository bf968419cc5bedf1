"""The real files, where they are: what is known of them must come out."""

import numpy as np
import pytest

from rankloop import data


def real(relative: str) -> data.Ratings:
    try:
        path = data.find(relative)
    except data.DataMissing as missing:
        pytest.skip(str(missing))
    return data.read_ratings(path)


def test_jester() -> None:
    ratings = real("ratings/jester_users_0001_2500.csv.gz")
    assert ratings.values.shape == (2500, 100)
    assert np.count_nonzero(~np.isnan(ratings.values)) == 181_673
    assert np.nanmin(ratings.values) == -9.95
    assert np.nanmax(ratings.values) == 9.90
    ten = ratings.most_rated(10)
    assert ten.item_ids.tolist() == [5, 7, 8, 13, 15, 16, 17, 18, 19, 20]
    assert ten.n_users == 2499
    liked = ten.relevance()
    assert liked.shape == (2499, 10)
    assert round(float(liked.mean()), 3) == 0.443
    assert ratings.relevance().shape == (747, 100)


def test_movielens() -> None:
    ratings = real("ratings/ml-latest-small")
    assert ratings.values.shape == (671, 9066)  # of the 9,125 films listed, 59 were never rated
    assert np.count_nonzero(~np.isnan(ratings.values)) == 100_004
    assert set(ratings.values[~np.isnan(ratings.values)]) == set(np.arange(0.5, 5.5, 0.5))
    assert ratings.item_names is not None
    assert ratings.item_names[0] == "Toy Story (1995)"
    ten = ratings.most_rated(10)
    assert ten.n_users == 22
    assert ratings.most_rated(5).n_users == 88
    assert round(float(ten.relevance().mean()), 2) == 0.94
    assert round(float(ten.relevance(threshold=3.5).mean()), 2) == 0.80
    assert ten.item_names is not None
    assert "Pulp Fiction (1994)" in ten.item_names
