"""The race of dense and sparse features: the same queries, and a row for each."""

from __future__ import annotations

from benchmarks import sparse
from benchmarks.timing import Effort
from rankloop import data


def test_a_row_for_each_ranker() -> None:
    queries = data.synthetic_letor(n_queries=4, n_features=10, seed=1)
    tiny = Effort(slice_seconds=0.001, laps=1)
    found = sparse.measure(tiny, lambda what: None, queries={"synthetic": queries})
    assert [one.ranker for one in found] == ["RTopKF", "ListNet"]
    assert all(one.share == 1.0 and one.dense > 0 and one.sparse > 0 for one in found)
    (table,) = sparse.tables(found)
    assert table.row_count == 2  # type: ignore[union-attr]
