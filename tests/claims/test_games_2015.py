"""What the 2015 paper says about games, number by number (sections 5, 6, 9 and appendices 12, 14, 15)."""

from __future__ import annotations

from fractions import Fraction
from math import factorial, log2

import numpy as np
import pytest

from rankloop.games import classify, ranking_game, verify
from rankloop.games.cells import find_cells, on_segment
from rankloop.games.exact import RowSpace

# Tables 1 and 2: rows are permutations 123, 132, 213, 231, 312, 321 (ranks of the objects), columns 000 to 111.
TABLE_1 = [
    [0, 3, 2, 5, 1, 4, 3, 6],
    [0, 2, 3, 5, 1, 3, 4, 6],
    [0, 3, 1, 4, 2, 5, 3, 6],
    [0, 1, 3, 4, 2, 3, 5, 6],
    [0, 2, 1, 3, 3, 5, 4, 6],
    [0, 1, 2, 3, 3, 4, 5, 6],
]
TABLE_2 = [
    [0, 0, 0, 0, 1, 1, 1, 1],
    [0, 0, 0, 0, 1, 1, 1, 1],
    [0, 0, 1, 1, 0, 0, 1, 1],
    [0, 1, 0, 1, 0, 1, 0, 1],
    [0, 0, 1, 1, 0, 0, 1, 1],
    [0, 1, 0, 1, 0, 1, 0, 1],
]


@pytest.mark.judges("2015-026", "2015-027", "2015-028", "2015-030", "2015-088")
def test_tables_1_and_2() -> None:
    game = ranking_game(measure="sum_loss", n_items=3, k=1)
    assert game.loss.tolist() == TABLE_1
    assert game.signals.tolist() == TABLE_2  # the first column is 000, so that symbol 0 means relevance 0
    # "L_{3,4} = 2*0 + 1*1 + 3*1 = 4; H_{3,4} = 1"
    assert (game.loss[2, 3], game.signals[2, 3]) == (4, 1)


@pytest.mark.judges("2015-030", "2015-031", "2015-032")
@pytest.mark.parametrize("m", [1, 2, 3, 4, 5])
def test_theorem_1_sum_loss_is_globally_observable(m: int) -> None:
    game = ranking_game(measure="sum_loss", n_items=m, k=1)
    seen = RowSpace(game.signal_rows(range(game.n_actions))[0])
    assert all(
        seen.coefficients(row) is not None for row in game.whole
    )  # the losses themselves, as in the proof
    assert len(seen.chosen) == m + 1  # erratum A19


@pytest.mark.judges("2015-029", "2015-034", "2015-036", "2015-037", "2015-073")
@pytest.mark.parametrize("m", [2, 3, 4])
def test_lemmas_2_and_3_every_order_is_best_somewhere_and_neighbours_swap_two_in_a_row(m: int) -> None:
    game = ranking_game(measure="sum_loss", n_items=m, k=1)
    cells = find_cells(game)
    assert len(cells.points) == factorial(m)
    assert len(cells.walls) == (m - 1) * factorial(m) // 2  # erratum A20: if and only if
    for i, j in cells.walls:
        one, other = game.orders[i], game.orders[j]
        differ = [at for at in range(m) if one[at] != other[at]]
        assert len(differ) == 2
        assert differ[1] == differ[0] + 1
        assert on_segment(game.whole, i, j) == [i, j]


@pytest.mark.judges("2015-020", "2015-035", "2015-038", "2015-073")
def test_theorem_4_local_observability_fails_at_three_items_for_the_papers_pair() -> None:
    game = ranking_game(measure="sum_loss", n_items=3, k=1)
    verdict = classify(game, route="cells")
    assert verdict.class_ == "hard"
    assert verify(game, verdict)
    assert (game.difference(0, 1) * game.unit).tolist() == [0, 1, -1, 0, 0, 1, -1, 0]  # equation (8)
    assert (0, 1) in verdict.neighbours
    assert RowSpace(game.signal_rows([0, 1])[0]).coefficients(game.difference(0, 1)) is None
    # Erratum A21: with two items it holds.
    assert classify(ranking_game(measure="sum_loss", n_items=2, k=1), route="cells").class_ == "easy"


@pytest.mark.judges("2015-020", "2015-025", "2015-081")
def test_the_same_for_dcg_with_the_printed_rows() -> None:
    game = ranking_game(measure="dcg", n_items=3, k=1)
    d = 1 / log2(3)
    np.testing.assert_allclose(-game.loss[0], [0, 1 / 2, d, 1 / 2 + d, 1, 3 / 2, 1 + d, 3 / 2 + d])
    np.testing.assert_allclose(-game.loss[1], [0, d, 1 / 2, 1 / 2 + d, 1, 1 + d, 3 / 2, 3 / 2 + d])
    assert RowSpace(game.signal_rows([0, 1])[0]).coefficients(game.difference(0, 1)) is None
    for grades in (2, 3):  # Result 4
        assert (
            classify(ranking_game(measure="dcg", n_items=3, k=1, grades=grades), route="cells").class_
            == "hard"
        )


def _residual(measure: str, m: int) -> float:
    """How far the first row minus the last is from anything that can be seen."""
    game = ranking_game(measure=measure, n_items=m, k=1)
    seen = np.column_stack([np.ones(game.n_outcomes), np.array(game.outcomes)])
    difference = game.loss[0] - game.loss[-1]
    exact = RowSpace(game.signal_rows(range(game.n_actions))[0]).coefficients(game.difference(0, -1))
    left = difference - seen @ np.linalg.lstsq(seen, difference, rcond=None)[0]
    assert (exact is None) == (np.linalg.norm(left) > 1e-9)
    return float(np.abs(left).max())


NDCG = log2(3) / (2 * (1 + log2(3)))


@pytest.mark.judges("2015-087")
def test_lemma_11_prints_the_right_rows() -> None:
    ndcg = ranking_game(measure="ndcg", n_items=3, k=1)
    np.testing.assert_allclose(
        -(ndcg.loss[0] - ndcg.loss[5]), [0, -1 / 2, 0, -NDCG, 1 / 2, 0, NDCG, 0], atol=1e-15
    )
    assert pytest.approx(0.3066, abs=5e-5) == NDCG
    mean = ranking_game(measure="average_precision", n_items=3, k=1)
    exact = [-mean.unit * int(value) for value in mean.whole[0]]
    assert exact == [1, Fraction(1, 3), Fraction(1, 2), Fraction(7, 12), 1, Fraction(5, 6), 1, 1]
    last = [-mean.unit * int(value) for value in mean.whole[5]]
    assert last == [1, 1, Fraction(1, 2), 1, Fraction(1, 3), Fraction(5, 6), Fraction(7, 12), 1]


# Erratum A18: the columns for m = 4, which the paper does not print.
COLUMNS = ["0000", "0001", "0010", "0100", "1000", "0011", "0101", "1001"]
COLUMNS += ["0110", "1010", "1100", "0111", "1011", "1101", "1110", "1111"]


@pytest.mark.judges("2015-063", "2015-089")
def test_lemma_11_auc_with_four_items() -> None:
    game = ranking_game(measure="auc", n_items=4, k=1)
    at = [game.outcomes.index(tuple(map(int, column))) for column in COLUMNS]
    first = [game.unit * int(game.whole[0][x]) for x in at]
    last = [game.unit * int(game.whole[-1][x]) for x in at]
    twelfths = [
        [0, 12, 8, 4, 0, 12, 9, 6, 6, 3, 0, 12, 8, 4, 0, 0],
        [0, 0, 4, 8, 12, 0, 3, 6, 6, 9, 12, 0, 4, 8, 12, 0],
    ]
    assert [first, last] == [[Fraction(value, 12) for value in row] for row in twelfths]
    assert game.orders[0] == (0, 1, 2, 3)
    assert game.orders[-1] == (3, 2, 1, 0)


@pytest.mark.judges("2015-061", "2015-062", "2015-063")
@pytest.mark.parametrize(
    ("measure", "m", "seen"),
    [
        ("sum_loss", 3, True),
        ("dcg", 3, True),
        ("ndcg", 3, False),
        ("average_precision", 3, False),
        ("auc", 3, True),
        ("auc", 4, False),
        ("auc", 5, False),
    ],
)
def test_lemma_11_what_can_be_seen(measure: str, m: int, seen: bool) -> None:
    assert (_residual(measure, m) < 1e-12) == seen


@pytest.mark.judges("2015-061", "2015-062")
def test_residuals_of_lemma_11() -> None:
    # Erratum A19, as lengths of what is left over.
    def length(measure: str, m: int) -> float:
        game = ranking_game(measure=measure, n_items=m, k=1)
        seen = np.column_stack([np.ones(game.n_outcomes), np.array(game.outcomes)])
        difference = game.loss[0] - game.loss[-1]
        left = difference - seen @ np.linalg.lstsq(seen, difference, rcond=None)[0]
        return float(np.linalg.norm(left))

    found = [length(*case) for case in (("ndcg", 3), ("average_precision", 3), ("auc", 4), ("auc", 5))]
    assert found == pytest.approx([0.1934, 0.2500, 0.3727, 0.6455], abs=5e-5)


@pytest.mark.judges("2015-024", "2015-064")
@pytest.mark.parametrize(("measure", "m"), [("ndcg", 3), ("average_precision", 3), ("auc", 4)])
def test_theorem_12_normalised_measures_are_hopeless(measure: str, m: int) -> None:
    game = ranking_game(measure=measure, n_items=m, k=1)
    verdict = classify(game, route="cells")
    assert verdict.class_ == "hopeless"
    assert verify(game, verdict)
    # AUC: "global observability does hold with m = 3".
    assert classify(ranking_game(measure="auc", n_items=3, k=1), route="cells").class_ == "hard"


@pytest.mark.judges("2015-023", "2015-060", "2015-070", "2015-084")
def test_the_open_question_precision_at_k() -> None:
    # Result 2 leaves it open. C(m, n) cells, C(m, n) n (m - n) / 2 pairs of neighbours; duplicates lend their eyes.
    for m, n in ((3, 2), (4, 2), (4, 3), (5, 2)):
        game = ranking_game(measure=f"precision@{n}", n_items=m, k=1)
        verdict = classify(game, route="cells")
        assert verdict.class_ == "easy"
        assert verify(game, verdict)
        sets = factorial(m) // factorial(n) // factorial(m - n)
        assert (len(verdict.pareto), len(verdict.neighbours)) == (sets, sets * n * (m - n) // 2)
