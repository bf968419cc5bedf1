"""Ranges of arguments: evenly covered, typed with three digits, and refused where they make no sense."""

from __future__ import annotations

from typing import Any

import pytest

from rankloop.ranges import Between, Falling, OneOf, Range, Whole

EVENLY = [i / 1_000 for i in range(1_000)]


@pytest.mark.parametrize("each", [Between(0.003, 3.0), Whole(1, 400), Falling(0.1, 10.0, power=0.5)])
def test_a_range_is_covered_evenly_on_a_logarithmic_scale(each: Any) -> None:
    values = [each.at(share) for share in EVENLY]
    scales = [value[0] if isinstance(value, tuple) else value for value in values]
    assert scales == sorted(scales)
    assert (scales[0], max(scales)) == (each.low, pytest.approx(each.high, rel=0.01))
    middle = (each.low * each.high) ** 0.5
    assert sum(scale <= middle for scale in scales) == pytest.approx(500, abs=20)
    assert all(float(f"{scale:.3g}") == scale for scale in scales)


def test_a_choice_is_made_equally_often_and_may_be_a_range() -> None:
    chosen = [OneOf(None, "adagrad", Whole(2, 50)).at(share) for share in EVENLY]
    assert (chosen.count(None), chosen.count("adagrad")) == (334, 333)
    assert {value for value in chosen if isinstance(value, int)} == set(range(2, 51))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Between(0.0, 1.0), "low must be a finite number above 0, got 0.0"),
        (lambda: Between(2.0, 1.0), "high must be a finite number above 2, got 1.0"),
        (lambda: Between(1.0, float("nan")), "high must be a finite number above 1, got nan"),
        (lambda: Whole(0, 3), "low must be a whole number of at least 1, got 0"),
        (lambda: Whole(4, 3), "high must be a whole number of at least 4, got 3"),
        (lambda: Falling(0.1, 1.0, power=-1.0), "power must be a finite number at least 0, got -1.0"),
        (lambda: OneOf(), "values must be at least one, got none"),
    ],
)
def test_nonsense_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_range_is_told_as_it_was_made() -> None:
    assert repr(OneOf("a", Whole(1, 2))) == "OneOf('a', Whole(low=1, high=2))"
    assert isinstance(Whole(1, 1), Range)
