"""Mistakes made on purpose: what they do to the rows, and that a claim which survives its own is found out."""

from __future__ import annotations

import polars as pl
import pytest

from rankloop.experiments.experiment import Claim
from rankloop.experiments.mutations import altered, instead, survivors, times, together
from tests.experiments.toy import Toy

ROWS = pl.DataFrame(
    {
        "learner": ["a", "b", "a", "b"],
        "T": [1, 1, 2, 2],
        "regret": [1.0, 5.0, 2.0, 9.0],
        "bound": [3.0, 7.0, 4.0, 8.0],
    }
)


def test_another_learner_takes_the_place_where_it_is_said_to() -> None:
    found = instead("b", "a", T=2).change(ROWS)
    assert sorted(found.rows()) == [
        ("a", 1, 1.0, 3.0),
        ("a", 2, 9.0, 8.0),
        ("b", 1, 5.0, 7.0),
        ("b", 2, 9.0, 8.0),
    ]
    assert instead("b", "a", T=2).name == "b in the place of a (2)"
    with pytest.raises(ValueError, match=r"no rows of 'c' to put in the place of 'a' \(2\)"):
        instead("c", "a", T=2).change(ROWS)


def test_columns_change_in_the_chosen_rows_and_keep_their_type() -> None:
    found = altered("wrong", where=pl.col("regret") > 4, T=pl.col("T") * 10).change(ROWS)
    assert found["T"].to_list() == [1, 10, 2, 20]
    assert found.schema == ROWS.schema
    both = together("both", times(2, learner="a"), times(10, "bound")).change(ROWS)
    assert both["regret"].to_list() == [2.0, 5.0, 4.0, 9.0]
    assert both["bound"].to_list() == [30.0, 70.0, 40.0, 80.0]


def test_a_claim_that_survives_its_mutation_is_named() -> None:
    toy = Toy()
    rows = pl.concat([toy.run(job) for job in toy.jobs(quick=True)])
    assert [line.split(" survives ")[0] for line in survivors(toy, rows, quick=True)] == ["true"]


def test_a_claim_says_when_it_was_worded() -> None:
    told = {"text": "t", "holds": True, "measured": "1", "source": "s", "mutation": times(2)}
    one, other = (Claim(name="n", fixed=fixed, **told) for fixed in (True, False))  # type: ignore[arg-type]
    assert (one.worded, other.worded) == ("before the run", "after a run")
    assert one.record()["mutation"] == "regret times 2"
    with pytest.raises(TypeError, match="mutation"):
        Claim(name="n", text="t", holds=True, measured="1", source="s", fixed=True)  # type: ignore[call-arg]
