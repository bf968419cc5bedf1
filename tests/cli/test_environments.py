"""Environments by name, real users among them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rankloop import environments
from rankloop.cli.environments import environment, environment_names


def test_names_are_those_of_the_package_and_of_the_data() -> None:
    names = environment_names()
    kinds = ("perfect", "navigational", "informational", "near-random")
    documents = {"documents", *(f"documents-{kind}" for kind in kinds)}
    assert set(environments.names()) | {"jester", "movielens"} | documents == set(names)
    assert all(names.values())


def test_a_simulated_one_takes_items_and_measure() -> None:
    found = environment("bernoulli", n_items=3, measure="sum_loss")
    assert (found.n_items, found.measure) == (3, "sum_loss")


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"environment must be one of noisy-halves, .*, got 'mars'"):
        environment("mars")


def test_real_users_without_data_say_where_it_should_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANKLOOP_DATA", str(tmp_path))
    with pytest.raises(ValueError, match="RANKLOOP_DATA"):
        environment("jester")


def test_documents_are_played_with_labels_or_clicks() -> None:
    assert environment("documents").reveals == "relevance"
    clicked = environment("documents-navigational", measure="dcg@5")
    assert (clicked.reveals, clicked.n_features, clicked.measure) == ("clicks", 20, "dcg@5")
    with pytest.raises(ValueError, match=r"n_items must be left out.*got 3"):
        environment("documents", n_items=3)
