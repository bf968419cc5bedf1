"""Verdicts at any time: rarely wrong however often one looks, and found where there is a difference."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from rankloop.feedback.anytime import Tally, sign_evidence, winning_share

LOOK = 100


def _signs(rng: np.random.Generator, n: int, *, win: float, lose: float) -> Any:
    """The preference of each of `n` lists."""
    x = rng.random(n)
    return (x < win).astype(int) - (x > 1.0 - lose)


def _tally(signs: Any, **settings: Any) -> Tally:
    tally = Tally(2, **settings)
    for sign in signs:
        tally.add([[0, sign], [-sign, 0]])
    return tally


def _ever_told(signs: Any, test: Any) -> bool:
    tally = Tally(2, test=test)
    for t, sign in enumerate(signs.tolist()):
        tally.add([[0, sign], [-sign, 0]])
        if t % LOOK == LOOK - 1 and tally.winner() is not None:
            return True
    return False


@pytest.mark.parametrize("test", ["sign", "bernstein"])
def test_rankings_that_are_alike_are_told_apart_in_at_most_five_of_a_hundred_runs(test: Any) -> None:
    rng = np.random.default_rng(5)
    wrong = sum(_ever_told(_signs(rng, 1_000, win=0.25, lose=0.25), test) for _ in range(100))
    assert wrong <= 5


def test_looking_as_often_at_a_test_for_one_look_is_wrong_far_more_often() -> None:
    rng = np.random.default_rng(5)
    signs = np.stack([_signs(rng, 5_000, win=0.25, lose=0.25) for _ in range(200)])
    total, decided = signs.cumsum(axis=1), np.abs(signs).cumsum(axis=1)
    looks = slice(LOOK - 1, None, LOOK)
    wrong = (np.abs(total[:, looks]) > 1.96 * np.sqrt(decided[:, looks])).any(axis=1)
    assert wrong.mean() > 0.2


def test_the_mixture_is_the_evidence_and_the_bounds_agree_with_it() -> None:
    # Two lists, both of which prefer the same: the mean of p^2 over beta(10, 10), against 1/4.
    assert math.exp(sign_evidence(2, 0)) == pytest.approx(10 * 11 / (20 * 21) * 4)
    assert sign_evidence(0, 0) == 0.0
    rng = np.random.default_rng(2)
    for _ in range(200):
        wins, losses = (int(x) for x in rng.integers(0, 300, 2))
        told = sign_evidence(wins, losses) >= math.log(20)
        share = winning_share(wins, losses)
        if share is None:
            continue
        assert told == (not share.low < 0.5 < share.high)
        assert 0.0 <= share.low <= share.mean <= share.high <= 1.0
    assert winning_share(0, 0) is None
    assert winning_share(5, 0).high == 1.0
    assert winning_share(0, 5).low == 0.0


def test_the_evidence_has_mean_one_where_there_is_no_difference() -> None:
    """By enumeration of twelve coins: which is why it is rarely large."""
    mean = sum(math.comb(12, w) / 2**12 * math.exp(sign_evidence(w, 12 - w)) for w in range(13))
    assert mean == pytest.approx(1.0)


@pytest.mark.parametrize("test", ["sign", "bernstein"])
def test_a_difference_is_found(test: Any) -> None:
    signs = _signs(np.random.default_rng(1), 3_000, win=0.3, lose=0.2)
    tally = _tally(signs, test=test)
    (pair,) = tally.pairs()
    assert tally.winner() == pair.winner == 0
    assert (pair.wins, pair.losses) == ((signs > 0).sum(), (signs < 0).sum())
    assert pair.share.low < 0.6 < pair.share.high
    assert pair.margin.low < 0.1 < pair.margin.high
    assert _tally(-signs, test=test).winner() == 1


def test_users_who_change_fool_neither_the_mean_nor_its_bounds() -> None:
    rng = np.random.default_rng(3)
    left_out = 0
    for _ in range(40):
        signs = np.concatenate([_signs(rng, 500, win=0.4, lose=0.1), _signs(rng, 500, win=0.1, lose=0.4)])
        margin = _tally(signs).pairs()[0].margin
        left_out += not margin.low <= 0.0 <= margin.high
    assert left_out <= 2


def test_of_several_rankings_the_winner_beats_all_others_and_alpha_is_split() -> None:
    rng = np.random.default_rng(4)
    tally = Tally(3)
    for _ in range(2_000):
        credit = rng.random(3) + np.array([0.0, 0.3, 0.1])
        tally.add(np.sign(credit[:, None] - credit))
    assert tally.winner() == 1
    assert len(tally.pairs()) == 3
    alone = Tally(2)
    alone.lists[:], alone.wins[:], alone.squares[:] = tally.lists, tally.wins[:2, :2], tally.squares[:2, :2]
    (pair,), first = alone.pairs(), tally.pairs()[0]
    assert first.share.low < pair.share.low
    assert first.share.high > pair.share.high
    assert first.margin.low < pair.margin.low
    assert Tally(3).winner() is None


def test_wrong_arguments_are_refused_and_nothing_is_counted() -> None:
    tally = Tally(2)
    for wrong in ([[0, 1], [1, 0]], [[0, 2], [-2, 0]], [0, 1], [[0, 1, 0], [-1, 0, 0], [0, 0, 0]]):
        with pytest.raises(ValueError, match="preferences must be a table of -1, 0 and 1 for 2 rankings"):
            tally.add(wrong)
    assert not tally.lists[0]
    assert not tally.squares.any()
    with pytest.raises(ValueError, match=r"n_rankings must be .*2.*got 1"):
        Tally(1)
    with pytest.raises(ValueError, match="test must be one of 'sign', 'bernstein', got 't'"):
        Tally(2, test="t")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"error must be .*got 0"):
        Tally(2, error=0)
    with pytest.raises(ValueError, match=r"wins must be .*got -1"):
        winning_share(-1, 2)
    with pytest.raises(ValueError, match=r"prior must be .*got 0"):
        sign_evidence(1, 2, prior=0)
