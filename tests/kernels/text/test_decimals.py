"""Numbers in text come out as Python reads them, to the last bit, or are left to Python."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rankloop.kernels import text as decimals

digits = st.text("0123456789", max_size=22)
signs = st.sampled_from(["", "+", "-"])
exponents = st.one_of(
    st.just(""), st.builds(lambda e, s, x: f"{e}{s}{x}", st.sampled_from("eE"), signs, st.integers(0, 400))
)


def read(text: str) -> tuple[int, float, int]:
    return decimals.number(np.frombuffer(text.encode() + b"\n", np.uint8), 0)


@given(sign=signs, whole=digits, point=st.sampled_from(["", "."]), fraction=digits, exponent=exponents)
@example(sign="", whole="9999999999999999999", point="", fraction="", exponent="e-22")
@example(sign="-", whole="9223372036854775808", point="", fraction="", exponent="e-1")
@example(
    sign="", whole="9007199254740993", point=".", fraction="0", exponent=""
)  # halfway between two float64
@example(sign="", whole="0", point=".", fraction="0", exponent="e99999999999999999999")
def test_any_decimal(sign: str, whole: str, point: str, fraction: str, exponent: str) -> None:
    if not point:
        fraction = ""
    text = f"{sign}{whole}{point}{fraction}{exponent}"
    known, value, end = read(text)
    if not whole + fraction:
        assert known == decimals.MISREAD
        return
    assert end == len(text)
    assert known in (decimals.READ, decimals.LEFT)
    if known == decimals.READ:
        assert value == float(text)
        assert np.signbit(value) == np.signbit(float(text))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_what_python_writes(number: float) -> None:
    known, value, _ = read(repr(number))
    assert known == decimals.LEFT or value == number


@given(st.floats(1e-5, 1e15, allow_subnormal=False))
@example(0.00015161952330121215)
def test_seventeen_digits_need_no_help(number: float) -> None:
    text = f"{number:.17f}".rstrip("0") if number < 10.0 else repr(number)
    known, value, _ = read(text)
    assert known == decimals.READ
    assert value == float(text)


@pytest.mark.parametrize("text", ["", "+", "-", ".", "e5", "1e", "1e+", "nan", "inf", "--1", "abc", "-.e1"])
def test_what_is_no_number(text: str) -> None:
    assert read(text)[0] == decimals.MISREAD


@pytest.mark.parametrize(
    ("text", "end"), [("1_0", 1), ("1.2.3", 3), ("0x10", 1), ("1e5.0", 3), ("5:6", 1), ("1 2", 1)]
)
def test_a_number_ends_where_it_ends(text: str, end: int) -> None:
    assert read(text)[2] == end
