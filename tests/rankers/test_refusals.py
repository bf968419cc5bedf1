"""What every compiled ranker refuses, with nothing changed: tickets that nobody issued, feedback that nobody gave."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from rankloop.base import Ranking
from rankloop.compiled import CompiledRanker
from tests import examples
from tests.examples import RANKERS


def _tickets(ticket: Ranking, n_items: int, n_own: int) -> Iterator[tuple[str, Ranking]]:
    items, memo = ticket.items, ticket.memo
    wrong_items = {
        "an item twice": np.concatenate([items[:1], items[:-1]]),
        "an item out of range": np.concatenate([items[:-1], [n_items]]),
        "a negative item": np.concatenate([items[:-1], [-1]]),
        "an item too many": np.append(items, items[0]),
        "int32": items.astype(np.int32),
        "floats": items.astype(np.float64),
        "two dimensions": items[None],
    }
    for name, wrong in wrong_items.items():
        yield name, dataclasses.replace(ticket, items=wrong)
    yield "a part of the memo too many", dataclasses.replace(ticket, memo=(*memo, np.zeros((1, 1, 1))))
    for i, part in enumerate(memo):
        yield f"memo without part {i}", dataclasses.replace(ticket, memo=memo[:i] + memo[i + 1 :])
        if part.size:
            longer = (*memo[:i], np.concatenate([part, part]), *memo[i + 1 :])
            yield f"memo part {i} too long", dataclasses.replace(ticket, memo=longer)
        if i < n_own:  # the request, which may be kept after them, may be of other types
            other = (*memo[:i], part.astype(np.float32), *memo[i + 1 :])
            yield f"memo part {i} of float32", dataclasses.replace(ticket, memo=other)
    if ticket.propensities is not None:
        yield "no propensities", dataclasses.replace(ticket, propensities=None)
        yield "a propensity too few", dataclasses.replace(ticket, propensities=ticket.propensities[:-1])


def _feedback(good: Any) -> Iterator[tuple[str, Any]]:
    yield "none", None
    yield "one too many", [*good, 0.0]
    if len(good):
        yield "one too few", good[:-1]
        yield "words", ["x"] * len(good)
        yield "a number", 1.0
        yield "nothing in a list", [None] * len(good)
        yield "two dimensions", [good]
        for number in (np.nan, np.inf, -1.0):
            yield str(number), [*good[:-1], number]


def _refuses(ranker: CompiledRanker, ticket: Ranking, feedback: Any) -> bool:
    before = ranker.save()
    try:
        ranker.learn(ticket, feedback)
    except ValueError as error:
        says_what = any(word in str(error) for word in ("ranking", "items", "feedback"))
        return says_what and all(np.array_equal(value, before[name]) for name, value in ranker.save().items())
    return False


@pytest.mark.parametrize("name", RANKERS)
def test_what_no_ranker_learns_from_changes_nothing(name: str) -> None:
    tried = 0
    for ranker in examples.of_ranker(name):
        rng = np.random.default_rng(1)
        ticket = ranker.rank(ranker.example_context(rng), rng=rng)
        n = len(ticket.items)
        if not isinstance(ranker, CompiledRanker) or n < 2:
            continue
        n_own = len(ranker.blank_memo(n))
        good = [1.0] * ranker.feedback.length(n)
        ranker.learn(ticket, good)
        cases = [(case, wrong, good) for case, wrong in _tickets(ticket, ranker.n_items or n, n_own)]
        if ranker.n_positions is not None:
            for n_kept in (0, n - 1):
                cases += [(f"{n_kept} items", dataclasses.replace(ticket, items=ticket.items[:n_kept]), good)]
        cases += [(case, ticket, wrong) for case, wrong in _feedback(good)]
        taken = [case for case, wrong, feedback in cases if not _refuses(ranker, wrong, feedback)]
        assert not taken, f"{ranker!r} took {taken}"
        ranker.learn(ticket, good)  # the ticket itself is still good
        tried += 1
    assert tried > 0
