"""Changes to a ticket that a ranker must refuse to learn from."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rankloop.base import Ranking

Tamper = Callable[[Ranking], Ranking]


def with_items(*items: int) -> Tamper:
    """The same ticket about other items."""
    return lambda ticket: dataclasses.replace(ticket, items=np.array(items))


def wrong_items(n_items: int) -> list[Any]:
    """Parameters of a test, of tickets about three items: too few of them, one twice, one that does not exist."""
    return [
        pytest.param(with_items(0, 1), id="fewer items"),
        pytest.param(with_items(0, 1, 1), id="repeated item"),
        pytest.param(with_items(0, 1, n_items), id="item out of range"),
        pytest.param(with_items(0, 1, -1), id="negative item"),
    ]
