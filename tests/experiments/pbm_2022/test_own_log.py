"""Figure 2 with the users of a click log of one's own: estimated, named in the report, never mistaken for others."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from rankloop import cli, experiments, feedback
from rankloop.experiments.pbm_2022 import comparison, setting

USERS = feedback.PositionBasedModel(
    attraction=np.linspace(0.9, 0.1, 12), examination=[1.0, 0.7, 0.5, 0.4, 0.3]
)


def write(
    path: Path, *, seed: int = 1, queries: tuple[str, ...] = ("hats", "shoes", "few"), pages: int = 3_000
) -> Path:
    """Counts of queries asked less and less often; the last has only eight items."""
    rng = np.random.default_rng(seed)
    rows = []
    for place, query in enumerate(queries):
        n = 8 if query == "few" else 12
        items = rng.permuted(np.tile(np.arange(n), (pages // (place + 1), 1)), axis=1)[:, :5]
        log = feedback.ClickLog.count(items=items, clicks=USERS.click(items, rng=rng))
        for i, j, shown, clicked in zip(log.items, log.positions, log.shown, log.clicked, strict=True):
            rows.append((query, f"i{i}", int(j) + 1, int(shown), int(clicked)))
    pl.DataFrame(rows, schema=["query", "item", "position", "shown", "clicks"], orient="row").write_csv(path)
    return path


def test_the_command_plays_the_log_and_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "QUICK_HORIZON", 300)
    monkeypatch.setattr(comparison, "QUICK_PHASE", 30)
    monkeypatch.setattr(setting, "MOST_QUERIES", 1)
    path, out = write(tmp_path / "shop.csv"), tmp_path / "out"
    words = ["reproduce", "pbm-2022-fig2", "--quick", "--out", str(out), "--dataset", f"shop={path}"]
    result = CliRunner().invoke(cli.app, words)
    assert result.exit_code in (0, 1), result.output  # three hundred rounds settle no claim
    assert [folder.name for folder in out.iterdir() if folder.is_dir()] == ["pbm-2022-fig2-shop"]
    record = json.loads((out / "pbm-2022-fig2-shop" / "claims.json").read_text())
    called, _, digest = record["settings"]["source"].rpartition("@")
    assert (called, len(digest)) == ("shop, hats", 12)
    (note,) = record["notes"]
    assert note.startswith(
        f"Played on data of one's own instead of the Yandex log: shop ({path}), query 'hats': "
    )
    assert record["command"] == f"rankloop reproduce pbm-2022-fig2 --dataset shop={path} --quick"
    assert {row["panel"] for row in record["summary"]} == {
        "(a) shop, hats, stochastic",
        "(b) shop, hats, halves exchanged",
        "(c) shop, hats, all reversed",
    }
    assert [claim["name"] for claim in record["claims"]] == ["reversed"]


def test_users_are_those_of_the_queries_with_enough_items(tmp_path: Path) -> None:
    found = setting.read_log("shop", write(tmp_path / "shop.csv"))
    assert [one.source.partition("@")[0] for one in found.users] == ["shop, hats", "shop, shoes"]
    people = comparison.users_of(found.users[0].source)
    # The ten shown most often of twelve that are shown alike.
    assert 0.05 < people.attraction.min() < people.attraction.max() < 0.95
    np.testing.assert_allclose(people.examination, USERS.examination, atol=0.06)


def test_other_contents_are_other_jobs_and_the_same_contents_elsewhere_are_the_same(tmp_path: Path) -> None:
    def identities(path: Path) -> set[str]:
        experiment = experiments.get("pbm-2022-fig2", datasets={"mine": path})
        jobs = experiment.jobs(quick=True)
        return {job.identity(experiment="pbm-2022-fig2", version=1) for job in jobs}

    first = identities(write(tmp_path / "a.csv"))
    assert len(first) == 6 * 6 * 2
    assert identities(write(tmp_path / "b.csv")) == first
    assert not identities(write(tmp_path / "c.csv", seed=2)) & first


@pytest.mark.parametrize(
    ("datasets", "told"),
    [
        ({"my": "few.csv"}, r"data set 'my': no query of few.csv has 10 items .* items of a query are 8"),
        ({"my": "nowhere.csv"}, "data set 'my': .*nowhere.csv"),
        ({"my": "apart.csv"}, "query 'q', examination of position"),
        ({"my": "few.csv", "yours": "few.csv"}, "plays one click log, got"),
        ({"Yandex": "few.csv"}, "the name 'Yandex' is taken"),
        ({"../my": "few.csv"}, "got '../my'"),
    ],
)
def test_bad_logs_are_told_in_a_sentence(
    datasets: dict[str, str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "few.csv", queries=("few",), pages=200)
    rows = [("q", f"i{i}", i % 5 + 1, 100, 10 + i) for i in range(15)]  # every item at one position only
    schema = ["query", "item", "position", "shown", "clicks"]
    pl.DataFrame(rows, schema=schema, orient="row").write_csv(tmp_path / "apart.csv")
    with pytest.raises(ValueError, match=told):
        experiments.get("pbm-2022-fig2", datasets=datasets)
