"""Judgments from clicks: what they estimate, with intervals that cover, in the forms that other tools take."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from rankloop import cli, data, feedback, logs

N = 12
RNG = np.random.default_rng(5)
ATTRACTION, SATISFACTION = RNG.uniform(0.1, 0.8, N), RNG.uniform(0.2, 0.9, N)


def pages_of(n: int, seed: int, *, model: str = "dbn") -> feedback.Sessions:
    """Pages of users who read on unless they are content; some items stand higher than others."""
    rng = np.random.default_rng(seed)
    scores = np.arange(N) + rng.normal(0.0, 6.0, (n, N))
    items = np.argsort(scores, axis=1)[:, :6]
    users: Any = feedback.DynamicBayesianModel(
        attraction=ATTRACTION, satisfaction=SATISFACTION, continuation=0.9
    )
    if model == "pbm":
        users = feedback.PositionBasedModel(attraction=ATTRACTION, examination=0.8 ** np.arange(6))
    return feedback.Sessions(items=items, clicks=users.click(items, rng=rng))


def numbers(found: logs.Judgments) -> list[int]:
    return [int(item) for _, item in found.items]


@pytest.mark.parametrize(("model", "truth"), [("dbn", ATTRACTION * SATISFACTION), ("pbm", ATTRACTION)])
def test_intervals_cover_the_relevance(model: str, truth: np.ndarray) -> None:
    covered = []
    for seed in range(20):
        found = logs.Judgments.of(logs.fit_model(pages_of(3_000, seed, model=model), model, smoothing=0.0))
        right = truth[numbers(found)]
        covered += ((found.relevance.low <= right) & (right <= found.relevance.high)).tolist()
    assert 0.84 <= np.mean(covered) <= 0.96  # 240 intervals of 90%


def test_a_click_model_orders_items_better_than_coec_where_users_stop() -> None:
    fit = logs.fit_model(pages_of(20_000, 1), "dbn")
    found = logs.Judgments.of(fit)
    right = (ATTRACTION * SATISFACTION)[numbers(found)]
    assert np.corrcoef(found.relevance.value, right)[0, 1] > 0.99
    assert np.corrcoef(found.coec, right)[0, 1] < 0.9


def test_coec_counts_clicks_over_those_of_an_average_item_at_the_same_positions() -> None:
    pages = feedback.Sessions(items=[[0, 1], [1, 0], [0, 1], [1, 0]], clicks=[[1, 0], [1, 1], [0, 0], [0, 0]])
    found = logs.Judgments.of(logs.fit_model(pages, "pbm"))
    ctr = np.array([2 / 4, 1 / 4])  # of the two ranks
    expected = 2 * ctr[0] + 2 * ctr[1]
    np.testing.assert_allclose(found.coec, [2 / expected, 1 / expected])
    assert (found.shown.tolist(), found.clicked.tolist()) == ([4, 4], [2, 1])


def test_ratings_run_from_0_to_the_best_grade() -> None:
    found = logs.Judgments.of(logs.fit_model(pages_of(2_000, 1), "dbn"))
    ratings = found.ratings(grades=4)
    assert ratings.max() == 4.0
    assert ratings.min() > 0.0
    order = np.argsort(found.relevance.value)
    assert (np.diff(ratings[order]) >= 0).all()
    nothing = logs.Judgments.of(logs.fit_model(pages_of(2_000, 1), "pbm"), least=100)
    assert set(nothing.items) == set(found.items)


def test_the_forms_of_other_tools(tmp_path: Path) -> None:
    pages = feedback.Sessions(
        items=[[0, 1], [1, 0]] * 30,
        clicks=[[1, 0], [0, 1], [1, 0], [0, 0]] * 15,
        queries=[0, 1] * 30,
        query_ids=("red tea", 'cup "x"\n'),
        item_ids=("p,1", "p2"),
        name="shop",
    )
    found = logs.Judgments.of(logs.fit_model(pages, "pbm"))
    rows = list(csv.DictReader(io.StringIO(found.text("csv"))))
    assert [(row["query"], row["item"], row["impressions"]) for row in rows[:2]] == [
        ("red tea", "p,1", "30"),
        ("red tea", "p2", "30"),
    ]
    assert all(float(row["low"]) <= float(row["relevance"]) <= float(row["high"]) for row in rows)
    quepid = list(csv.reader(io.StringIO(found.text("quepid"))))
    assert quepid[:3] == [["query", "docid", "rating"], ["red tea", "p,1", "3"], ["red tea", "p2", "0"]]
    body = json.loads(found.text("workbench", grades=3))
    assert (body["type"], len(body["judgmentRatings"])) == ("IMPORT_JUDGMENT", 2)
    first = body["judgmentRatings"][0]
    assert (first["query"], first["ratings"][0]) == ("red tea", {"docId": "p,1", "rating": "3.000"})
    lines = found.text("letor").splitlines()
    assert lines[0].startswith('3 qid:1 # "p,1" "red tea" from 0.')
    assert lines[2].startswith('0 qid:2 # "p,1"') or lines[2].startswith("2 qid:2")
    assert len(lines) == 4


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"least": 0}, "least must be a whole number of at least 1"),
        ({"least": 10_000}, "least must be at most"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], told: str) -> None:
    fit = logs.fit_model(pages_of(200, 1), "pbm")
    with pytest.raises(ValueError, match=told):
        logs.Judgments.of(fit, **arguments)


def test_what_cannot_judge_is_refused() -> None:
    pages = pages_of(200, 1)
    with pytest.raises(ValueError, match="model must be one with items, got 'rctr'"):
        logs.Judgments.of(logs.fit_model(pages, "rctr"))
    found = logs.Judgments.of(logs.fit_model(pages, "pbm"))
    with pytest.raises(ValueError, match="form must be one of"):
        found.text("excel")
    with pytest.raises(ValueError, match="grades must be"):
        found.ratings(grades=0)


def test_the_command_reads_ubi_and_writes_judgments(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = []
    for i in range(40):
        shown = ["a", "b", "c"] if i % 2 else ["c", "b", "a"]
        lines.append({"query_id": f"{i}", "user_query": "tea", "query_response_hit_ids": shown})
        if i % 3:
            thing = {"object": {"object_id": "a"}}
            event = {"action_name": "click", "query_id": f"{i}", "timestamp": 1_717_200_000_000 + i}
            lines.append(event | {"event_attributes": thing})
    lines.append(
        {
            "action_name": "click",
            "query_id": "x",
            "timestamp": 1,
            "event_attributes": {"object": {"object_id": "a"}},
        }
    )
    log = tmp_path / "ubi.ndjson"
    log.write_text("".join(json.dumps(one) + "\n" for one in lines))
    run = CliRunner()
    answer = run.invoke(cli.app, ["judgments", str(log), "--model", "pbm"])
    assert answer.exit_code == 0, answer.output
    assert "left out: 1 with a click of a query that is not in the log" in answer.stderr
    rows = list(csv.DictReader(io.StringIO(answer.stdout)))
    assert max(rows, key=lambda row: float(row["relevance"]))["item"] == "a"
    out = tmp_path / "judgments.json"
    answer = run.invoke(
        cli.app, ["judgments", str(log), "--as", "workbench", "--out", str(out), "--model", "sdbn"]
    )
    assert answer.exit_code == 0, answer.output
    assert "3 judgments of 1 query, by sdbn" in answer.stdout
    assert json.loads(out.read_text())["judgmentRatings"][0]["query"] == "tea"
    for wrong, told in (
        (["--as", "excel"], "--as must be one of"),
        (["--model", "rcm"], "--model must be one of"),
        (["--least", "99"], "--least must be at most 40"),
        (["--out", str(tmp_path / "no" / "x.csv")], "there is no folder"),
        (["--grades", "0"], "--grades must be"),
    ):
        answer = run.invoke(cli.app, ["judgments", str(log), *wrong])
        assert answer.exit_code != 0
        assert told in " ".join(f"{answer.output}{answer.exception}".split()), (wrong, answer.output)
    assert data.read_sessions(log).n_rows == 40
