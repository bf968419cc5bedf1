"""A kernel inside another is compiled for it alone, and Python can call it all the same."""

from __future__ import annotations

from typing import Any

import numba
import pytest

from rankloop.kernels import parts
from rankloop.kernels.jit import hot, kernel

ONE_NUMBER: Any = (numba.float64,)


@kernel
def _add(x: Any, more: Any) -> Any:
    return x + more


@kernel
def _whole(x: Any) -> Any:
    return 2.0 * _add(x, 1.0)


def _plain(x: Any) -> Any:
    return 3.0 * x


@pytest.mark.parametrize("decorate", [kernel, hot])
def test_what_another_kernel_calls_is_not_what_python_calls(decorate: Any) -> None:
    part: Any = decorate(_plain)
    *_, types, _ = part.get_call_template(ONE_NUMBER, {})
    assert tuple(types) == ONE_NUMBER
    assert not part.overloads, "compiled for Python, which did not call it"
    assert part.get_overload(ONE_NUMBER) is not None
    # The same function anew: what it finds on disk must be what Python can call.
    again: Any = decorate(_plain)
    assert again(2.0) == part(2.0) == 6.0
    assert again.get_overload(ONE_NUMBER) is again.overloads[ONE_NUMBER].entry_point


def test_both_ways_give_the_same() -> None:
    assert _whole(4.0) == 2.0 * _add(4.0, 1.0) == 10.0


def test_what_python_calls_as_well_is_compiled_once() -> None:
    shared: Any = kernel(_plain)
    parts.keep_whole(shared)
    shared.get_call_template(ONE_NUMBER, {})
    assert shared.get_overload(ONE_NUMBER) is shared.overloads[ONE_NUMBER].entry_point


def test_without_a_folder_of_their_own_nothing_is_compiled_apart(tmp_path: Any) -> None:
    # numba finds a folder of the user's where ours cannot be written, and there the two would overwrite each other.
    shared: Any = numba.njit(cache=True)(_plain)
    parts.split(shared, lambda: numba.njit(cache=True, no_cpython_wrapper=True)(_plain), tmp_path)
    shared.get_call_template(ONE_NUMBER, {})
    assert ONE_NUMBER in shared.overloads
    assert shared(2.0) == 6.0
