"""Rows of features as CSR: read, refused by name, and the same bits as dense rows in rankers and streams."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from rankloop import checks, environments, rankers, simulation
from rankloop.base import Ranking
from rankloop.features import SparseRows, dense_rows, is_sparse, key_of, query_rows, read_sparse, sparse_rows
from tests.sparse_lists import queries, rows

RANKERS: dict[str, Any] = {
    "RTopKF": lambda d: rankers.RTopKF(n_features=d, k=2),
    "RTopKF, squared": lambda d: rankers.RTopKF(
        n_features=d, surrogate="squared", learning_rate=(0.5, 2 / 3), exploration=0.3, control_variate="mean"
    ),
    "RTopKF, smooth_dcg": lambda d: rankers.RTopKF(
        n_features=d, surrogate="smooth_dcg", control_variate="mean"
    ),
    "ListNet": lambda d: rankers.ListNet(n_features=d),
    "PLRank": lambda d: rankers.PLRank(n_features=d),
}


def taken(part: dict[str, Any]) -> SparseRows:
    good: dict[str, Any] = {
        "data": [3.0, 1.0, 2.0],
        "indices": [0, 1, 3],
        "indptr": [0, 1, 1, 3],
        "shape": (3, 4),
    }
    return SparseRows(**good | part)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.csr_matrix, sparse_rows])
def test_all_kinds_are_read(kind: Any, dtype: Any) -> None:
    features = rows(np.random.default_rng(1), 6, 11, dtype)
    given = kind(features)
    assert is_sparse(given)
    found = read_sparse("context", given, 11)
    assert (found.data.dtype, found.indices.dtype, found.indptr.dtype) == (dtype, np.int32, np.int64)
    np.testing.assert_array_equal(dense_rows(found), features)


def test_a_row_without_entries_is_a_row_of_zeros_and_zeros_may_be_entries() -> None:
    found = read_sparse("context", taken({"data": [3, 0, 2]}))
    assert dense_rows(found).tolist() == [[3, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 2]]
    nothing = read_sparse("context", SparseRows([], [], [0, 0], (1, 4)))  # type: ignore[arg-type]
    assert dense_rows(nothing).tolist() == [[0, 0, 0, 0]]


BAD_ROWS: list[tuple[dict[str, Any], str]] = [
    ({"data": [3.0, np.nan, 2.0]}, r"context.data must be finite .* got nan as entry 1"),
    ({"data": [3.0, 1.0, -np.inf]}, "context.data must be finite .* got -inf as entry 2"),
    ({"data": [3.0, 1e61, 2.0]}, "at most 1e[+]60, got 1e[+]61"),
    ({"data": ["a", "b", "c"]}, "context.data must be a list of numbers"),
    ({"data": [[3.0, 1.0, 2.0]]}, r"context.data must be a list of numbers, got float64\(1, 3\)"),
    ({"data": [3.0, 1.0]}, "context.indices must be 2 numbers, one for each of data, got 3"),
    ({"indices": [0, 1, 4]}, "context.indices must be from 0 to 3, got 4 as entry 2"),
    ({"indices": [0, -1, 3]}, "context.indices must be from 0 to 3, got -1 as entry 1"),
    ({"indices": [0, 3, 1]}, "context.indices must rise within a row, got 1 after 3 in row 2"),
    ({"indices": [0, 3, 3]}, "context.indices must rise within a row, got 3 twice in row 2"),
    ({"indices": [0.0, 1.0, 3.0]}, "context.indices must be a list of whole numbers"),
    ({"indptr": [0, 1, 3]}, "context.indptr must be 4 numbers for 3 rows, got 3"),
    ({"indptr": [0, 2, 1, 3]}, "context.indptr must rise"),
    ({"indptr": [0, 1, 1, 4]}, "context.indptr must rise, from 0 to at most the 3 entries"),
    ({"indptr": [-1, 1, 1, 3]}, "context.indptr must rise"),
    ({"shape": (3, 5)}, r"context must have 4 features, got shape \(3, 5\)"),
    ({"shape": (0, 4), "indptr": [0]}, r"context.shape\[0\] must be a whole number of at least 1, got 0"),
    ({"shape": (3,)}, r"context.shape must be rows x features, got \(3,\)"),
]


def test_bad_rows_are_refused_by_name() -> None:
    for ranker in (rankers.RTopKF(n_features=4), rankers.ListNet(n_features=4)):
        for part, message in BAD_ROWS:
            with pytest.raises(ValueError, match=message):
                ranker.rank(taken(part), rng=np.random.default_rng(1))


def test_another_format_is_refused() -> None:
    with pytest.raises(ValueError, match="context must be in CSR format, got 'coo': call its method tocsr"):
        read_sparse("context", scipy.sparse.coo_array(np.eye(2)))


def bits(ranking: Ranking, own: int) -> list[bytes]:
    parts = [ranking.items, ranking.propensities, *ranking.memo[:own]]
    return [np.ascontiguousarray(part).tobytes() for part in parts if part is not None]


@pytest.mark.parametrize("name", RANKERS)
def test_a_list_at_a_time_gives_the_same_bits(name: str) -> None:
    rng = np.random.default_rng(4)
    for d in (1, 7, 8, 21):
        dense, sparse = RANKERS[name](d), RANKERS[name](d)
        for t in range(12):
            features = rows(rng, int(rng.integers(1, 7)), d)
            kinds = (sparse_rows, scipy.sparse.csr_array)
            one = dense.rank(features, rng=np.random.default_rng(t))
            other = sparse.rank(kinds[t % 2](features), rng=np.random.default_rng(t))
            own = len(dense.blank_memo(len(features)))
            assert bits(one, own) == bits(other, own)  # beyond, the request itself
            labels = rng.integers(0, 3, dense.feedback.length(len(features))).astype(float)
            for ranker, shown in ((dense, one), (sparse, other)):
                file = io.BytesIO()
                np.savez(file, *shown.memo)
                file.seek(0)
                memo = tuple(np.load(file).values())  # as if learnt in another process
                ranker.learn(Ranking(shown.items, shown.propensities, memo, shown.explored), labels)
            assert dense.current(features).tolist() == sparse.current(sparse_rows(features)).tolist()
        for part, twin in zip(dense.state, sparse.state, strict=True):
            assert part.tobytes() == twin.tobytes()


@pytest.mark.parametrize("name", ["RTopKF", "ListNet"])
def test_fused_and_stepwise_give_the_dense_run(name: str) -> None:
    dense, sparse = queries(np.random.default_rng(5), 10)
    runs = []
    for data, fused in ((dense, False), (sparse, True), (sparse, False)):
        ranker, stream = RANKERS[name](10), environments.QueryStream(data, measure="ndcg@3")
        trace = simulation.play(ranker, stream, rounds=150, seed=3, fused=fused)
        runs.append(
            [trace.total.tobytes(), trace.explored.tobytes(), *(part.tobytes() for part in ranker.state)]
        )
        values = stream.greedy_values(ranker.state.w)
        runs[-1].append(values.tobytes())
    assert runs[0] == runs[1] == runs[2]


def test_a_sparse_stream_keeps_the_rules() -> None:
    _, sparse = queries(np.random.default_rng(6), 5)
    checks.check_environment(lambda: environments.QueryStream(sparse, measure="ndcg@3"))


def test_a_ranker_that_takes_dense_rows_says_so() -> None:
    class Dense(rankers.RTopKF):
        takes_sparse = False

    _, sparse = queries(np.random.default_rng(6), 5)
    stream = environments.QueryStream(sparse)
    with pytest.raises(ValueError, match="Dense takes dense features, those of QueryStream are sparse"):
        simulation.play(Dense(n_features=5), stream, rounds=3, seed=1)
    with pytest.raises(ValueError, match="Dense takes dense features, got sparse ones"):
        Dense(n_features=5).rank(sparse.features, rng=np.random.default_rng(1))


def test_a_stream_refuses_bad_rows() -> None:
    _, sparse = queries(np.random.default_rng(6), 5)
    sparse.features = sparse.features._replace(indices=sparse.features.indices[::-1].copy())
    with pytest.raises(ValueError, match=r"dataset.features.indices must rise within a row"):
        environments.QueryStream(sparse)


def test_a_ticket_with_a_damaged_request_is_refused() -> None:
    ranker = rankers.ListNet(n_features=4)
    shown = ranker.rank(taken({}), rng=np.random.default_rng(1))
    scores, t, data, indices, indptr = shown.memo
    for memo, message in (
        ((scores, t, data, indices[::-1].copy(), indptr), "context.indices must rise"),
        ((scores, t, data, indices, indptr[:-1]), "context.indptr must be 4 numbers"),
        ((scores, t, data, indices), "ranking.memo must end with one request, got 2 parts"),
        ((scores, t), "ranking.memo must end with the request, got nothing"),
    ):
        with pytest.raises(ValueError, match=message):
            ranker.learn(Ranking(shown.items, None, memo, False), [1.0, 0.0, 0.0])
    assert ranker.state.t[0] == 0


def test_names_are_keys() -> None:
    words = ["red shoes", "Red shoes", "red  shoes", "", "7", "\u00fc"]
    keys = [key_of(word) for word in words]
    assert len(set(keys)) == len(words)
    assert all(0 <= key < 2**63 for key in keys)
    assert key_of(7) == 7
    assert key_of("red shoes") == 6208880861533621621  # of a stored log
    for wrong in (-1, 2**63, 0.5, None):
        with pytest.raises(ValueError, match=f"name must be a whole number .*, got {wrong}"):
            key_of(wrong)  # type: ignore[arg-type]


def test_a_query_with_its_documents() -> None:
    request = query_rows("q", ["a", 3], [[1, 2], [3, 4]])
    assert request.items.tolist() == [key_of("a"), 3]
    assert request.query == key_of("q")
    assert query_rows("q", ["a"]).features.shape == (1, 0)
    with pytest.raises(ValueError, match=r"features must have a row for each of 1 items, got shape \(2, 1\)"):
        query_rows("q", ["a"], [[1.0], [2.0]])
    with pytest.raises(ValueError, match="query must be a whole number"):
        query_rows(None, ["a"])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="items must be a whole number"):
        query_rows("q", [None])  # type: ignore[list-item]
