"""Readers of arguments: every way to write a value, and sentences that name the argument and the value."""

import pickle

import numpy as np
import pytest

from rankloop import arguments, base
from rankloop.arguments import ArgumentError, epsilon, number, numbers, one_of, share, shares, whole


def test_what_extending_shows_is_importable_from_base() -> None:
    assert (base.whole, base.numbers, base.one_of) == (whole, numbers, one_of)


def test_whole_numbers_of_any_type() -> None:
    for value in (3, 3.0, np.int8(3), np.float32(3.0), np.float64(3), np.uint64(3), np.array(3)):
        assert whole("n", value, at_least=3) == 3
        assert type(whole("n", value, at_least=1)) is int
    assert whole("n", 2**80, at_least=1) == 2**80
    assert whole("n", 1e15, at_least=1) == 10**15


def test_what_is_no_whole_number() -> None:
    wrong = (2, -3, 3.5, "3", b"3", None, True, np.nan, np.inf, [3], 3 + 0j, np.array([3, 4]), object())
    for value in wrong:
        with pytest.raises(ValueError, match="n must be a whole number of at least 3, got "):
            whole("n", value, at_least=3)


def test_an_error_has_the_name_of_its_argument_also_in_another_process() -> None:
    with pytest.raises(ArgumentError) as caught:
        whole("n", 0, at_least=1)
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert (error.argument, str(error)) == ("n", "n must be a whole number of at least 1, got 0")


def test_whole_numbers_with_a_largest() -> None:
    assert whole("k", 5, at_least=1, at_most=5) == 5
    with pytest.raises(ValueError, match="k must be a whole number from 1 to 5, got 6"):
        whole("k", 6, at_least=1, at_most=5)


def test_a_number_of_any_type() -> None:
    for value in (2, 2.0, np.float32(2.0), np.array(2)):
        assert number("x", value, above=1, at_most=2) == 2.0
        assert type(number("x", value)) is float


def test_what_is_no_such_number() -> None:
    for value in (1, 2.1, np.nan, np.inf, "2", None, True, [2], [[1], [2, 3]], 1j):
        with pytest.raises(ValueError, match="x must be a finite number above 1 and at most 2, got "):
            number("x", value, above=1, at_most=2)


def test_each_bound_of_a_number() -> None:
    for bounds, wrong, words in (
        ({}, np.inf, "x must be a finite number, got inf"),
        ({"above": 0}, 0.0, "x must be a finite number above 0, got 0.0"),
        ({"at_least": 0}, -1, "x must be a finite number at least 0, got -1"),
        ({"below": 1e6}, 1e6, r"x must be a finite number below 1e\+06, got 1000000.0"),
        ({"at_most": 300}, 301, "x must be a finite number at most 300, got 301"),
    ):
        with pytest.raises(ValueError, match=f"^{words}$"):
            number("x", wrong, **bounds)
    assert number("x", 0, at_least=0) == 0.0


def test_numbers_of_any_shape() -> None:
    given = np.array([[1.0, 2.0]])
    assert numbers("x", given) is given
    assert numbers("x", [[True, 2]]).tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("values", ["x", ["1"], None, [[1], [2, 3]], [1j], {}])
def test_what_are_no_numbers(values: object) -> None:
    rows = " in rows of one length" if values == [[1], [2, 3]] else ""
    with pytest.raises(ValueError, match=f"x must be numbers{rows}, got "):
        numbers("x", values)


def test_a_share() -> None:
    assert share("gamma", 1) == 1.0
    for wrong in (0, 1.01, np.nan, [0.5]):
        with pytest.raises(ValueError, match="gamma must be a finite number above 0 and at most 1, got "):
            share("gamma", wrong)


def test_shares_are_a_copy() -> None:
    given = np.array([[0.0, 1.0], [0.5, 0.5]]).T
    read = shares("chances", given, n_axes=2)
    assert read.flags.c_contiguous
    assert not np.shares_memory(read, given)
    assert np.array_equal(read, given)
    assert shares("share", 0.5, n_axes=0).shape == ()


@pytest.mark.parametrize(
    ("values", "options", "sentence"),
    [
        ([0.5, 1.5, 2], {}, "x must lie between 0 and 1, got 1.5"),
        ([np.nan], {}, "x must lie between 0 and 1, got nan"),
        ([0.0, 0.5], {"positive": True}, "x must be above 0 and at most 1, got 0"),
        ([[0.5]], {}, r"x must be a list of numbers from 0 to 1, got shape \(1, 1\)"),
        ([], {}, r"x must be a list of numbers from 0 to 1, got shape \(0,\)"),
        ([0.5], {"n_axes": 2}, r"x must be a matrix of numbers from 0 to 1, got shape \(1,\)"),
        ([0.5], {"n_axes": 0}, r"x must be one number from 0 to 1, got shape \(1,\)"),
        ([0.5], {"length": 2}, r"x must be 2 numbers from 0 to 1, got shape \(1,\)"),
        ("high", {}, "x must be numbers, got 'high'"),
    ],
)
def test_what_are_no_shares(values: object, options: dict[str, int], sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        shares("x", values, **options)  # type: ignore[arg-type]


def test_an_epsilon_has_a_finite_inverse() -> None:
    assert epsilon("epsilon", 1e-9) == 1e-9
    for wrong in (0, -1, np.inf, "small", [0.1]):
        with pytest.raises(ValueError, match="epsilon must be a finite number above 0, got "):
            epsilon("epsilon", wrong)
    with pytest.raises(ValueError, match="epsilon must be above 1e-300, or 1/epsilon overflows, got 1e-310"):
        epsilon("epsilon", 1e-310)


def test_one_of_a_few_words() -> None:
    assert one_of("solver", "newton", ["newton", "frank-wolfe"]) == "newton"
    with pytest.raises(ValueError, match="solver must be one of 'newton', 'frank-wolfe', got 'simplex'"):
        one_of("solver", "simplex", ("newton", "frank-wolfe"))
    with pytest.raises(ValueError, match=r"solver must be one of .*, got None"):
        one_of("solver", None, ("newton", "frank-wolfe"))  # type: ignore[arg-type]


def test_every_reader_has_an_example() -> None:
    for name, reader in vars(arguments).items():
        if callable(reader) and getattr(reader, "__module__", "") == arguments.__name__ and name[0] != "_":
            assert "Examples" in reader.__doc__
