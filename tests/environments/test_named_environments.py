"""Environments by name: every name makes one that can be played, and a wrong one lists the right ones."""

from __future__ import annotations

import numpy as np
import pytest

from rankloop import environments, rankers, simulation


@pytest.mark.parametrize("name", list(environments.names()))
@pytest.mark.parametrize("n_items", [4, 6])
def test_every_name_can_be_played(name: str, n_items: int) -> None:
    people = environments.named(name, n_items=n_items, measure="ndcg")
    assert (people.n_items, people.measure) == (n_items, "ndcg")
    trace = simulation.play(rankers.Uniform(n_items=n_items), people, rounds=20, seed=1)
    assert np.isfinite(trace.total_regret)


@pytest.mark.parametrize("name", list(environments.names()))
def test_every_name_says_what_it_is(name: str) -> None:
    assert environments.names()[name].strip()


@pytest.mark.parametrize("name", list(environments.names()))
def test_every_name_can_be_played_as_it_comes(name: str) -> None:
    assert environments.named(name).n_items >= 2


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="noisy-halves"):
        environments.named("nowhere")


def test_switching_turns_over() -> None:
    people = environments.named("switching", n_items=3)
    assert people.users.tails[0, 0].tolist() == people.users.tails[1, 0][::-1].tolist()
