import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rankloop.environments import PositionBased
from rankloop.kernels.lists import best_list, in_order
from rankloop.rankers import FTRLPBM, GRAB, MW


@given(st.data())
def test_it_is_as_good_and_never_later_in_order(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 6))
    m = data.draw(st.integers(1, n))
    # Few values, so that there are many ties; small whole numbers, so that sums are exact.
    gains = np.array(data.draw(st.lists(st.integers(0, 2), min_size=m * n, max_size=m * n)), np.float64)
    gains = gains.reshape(m, n)
    items = np.empty(m, np.int64)
    total = best_list(gains, items)
    kept = in_order(gains, items)
    assert len(set(kept.tolist())) == m
    assert gains[np.arange(m), kept].sum() == total
    assert kept.tolist() <= items.tolist()


def test_where_nothing_differs_it_is_the_order_of_the_numbers() -> None:
    rng = np.random.default_rng(1)
    for m, n in ((1, 1), (3, 5), (6, 6), (2, 40)):
        assert in_order(np.full((m, n), 0.1), rng.permutation(n)[:m]).tolist() == list(range(m))
        falling = np.outer(1 / np.arange(1, m + 1), np.full(n, 0.3))
        assert in_order(falling, rng.permutation(n)[:m]).tolist() == list(range(m))


def test_what_was_given_stays_as_it_was() -> None:
    items = np.array([2, 1, 0])
    in_order(np.ones((3, 3)), items)
    assert items.tolist() == [2, 1, 0]


def test_fresh_rankers_and_even_worlds_keep_the_users_order() -> None:
    assert FTRLPBM(n_items=10, n_positions=5).current().tolist() == [0, 1, 2, 3, 4]
    assert GRAB(n_items=10, n_positions=5).current().tolist() == [0, 1, 2, 3, 4]
    assert MW(n_items=10, n_positions=5, horizon=100).current().tolist() == [0, 1, 2, 3, 4]
    world = PositionBased(attraction=[0.2, 0.5, 0.5, 0.5], examination=[1.0, 0.5, 0.5])
    assert world.best().items.tolist() == [1, 2, 3]


def test_equal_items_keep_their_order_after_something_was_learnt() -> None:
    ranker = GRAB(n_items=5, n_positions=3)
    ranker.state.N[...] = 10.0
    ranker.state.S[...] = [[1, 1, 9, 1, 1]] * 3
    assert ranker.current().tolist() == [0, 1, 2]  # item 2 is worth as much on every position
    ranker.state.S[...] = [[1, 1, 9, 1, 1], [1, 1, 5, 1, 1], [1, 1, 2, 1, 1]]
    assert ranker.current().tolist() == [2, 0, 1]
