"""The atlas: cells, what is told of them, and the page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import rankloop
from rankloop import rankers, simulation, suite
from rankloop.cli import app
from rankloop.suite import atlas

PUBLISHED = Path(__file__).parents[2] / "docs" / "tables" / "atlas.parquet"
SMALL = suite.Grid((0.02, 0.1, 0.5), (100, 1_000), ((5, 3),), 400, 4)
ENTRIES = [suite.Entry("TopRank"), suite.Entry("MW"), suite.Entry("FTRLPBM")]


@pytest.fixture(scope="module")
def drawn() -> suite.Atlas:
    return suite.draw_atlas(ENTRIES, SMALL, progress=False)


def test_gaps_without_room_have_no_cell_and_long_phases_are_one() -> None:
    assert {cell.gap for cell in SMALL.cells()} == {0.02, 0.1}
    assert {cell.phase for cell in SMALL._replace(phases=(100, 400, 1_000)).cells()} == {100, 400}


def test_a_cell_is_what_it_says() -> None:
    cell = atlas.Cell(10, 5, 300, 0.05)
    world = cell.make()
    first, turned = (clicks[0] for clicks in world.clicks)
    np.testing.assert_allclose(np.diff(np.sort(first)), 0.05)
    np.testing.assert_allclose(first + turned, 1.0)
    assert world.params.phase == 300
    assert list(np.argsort(-first)) != list(range(10))


def test_numbers_are_those_of_the_runs(drawn: suite.Atlas) -> None:
    """Replayed one by one: means, standard errors, leads and winners."""
    for cell in SMALL.cells():
        played = np.array(
            [
                [
                    simulation.play(
                        entry.make(suite.World("", "", "", lambda _, cell=cell: cell.make()), rounds=400),  # type: ignore[misc]
                        cell.make(),
                        rounds=400,
                        seed=seed,
                        points=1,
                    ).mean_value
                    for seed in range(4)
                ]
                for entry in ENTRIES
            ]
        )
        rows = drawn.rows.filter((pl.col("gap") == cell.gap) & (pl.col("phase") == cell.phase))
        assert rows["ranker"].to_list() == [entry.label for entry in ENTRIES]
        assert rows["version"].to_list() == [2, 1, 3]
        np.testing.assert_array_equal(rows["value"], played.mean(axis=1))
        np.testing.assert_allclose(rows["standard_error"], played.std(axis=1, ddof=1) / 2)
        order = np.argsort(-played.mean(axis=1))
        assert rows["won"].to_list() == [number == order[0] for number in range(3)]
        lead = played[order[0]] - played[order[1]]
        won = rows.row(int(order[0]), named=True)
        assert won["lead"] == pytest.approx(lead.mean())
        assert won["decided"] == (lead.mean() > 3.182446 * lead.std(ddof=1) / 2)  # Student's t, 3 degrees
        assert won["regret"] == pytest.approx(cell.make().ideal(400) - 400 * won["value"])
        assert won["random"] == pytest.approx((1 + 1 / 2 + 1 / 3) / 2)


def test_it_goes_on_where_it_stopped_and_writes_a_page(drawn: suite.Atlas, tmp_path: Path) -> None:
    again = suite.draw_atlas(ENTRIES, SMALL, folder=tmp_path, progress=False)
    assert again.rows.equals(drawn.rows)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").glob("*.parquet")}
    assert len(kept) == 12
    suite.draw_atlas(ENTRIES, SMALL, folder=tmp_path, progress=False)
    assert kept == {path: path.stat().st_mtime_ns for path in kept}
    page = atlas.write_atlas(drawn, tmp_path)
    assert "<svg" in page.read_text()
    assert f"4, {4 - int(drawn.rows.filter('won')['decided'].sum())} of them not decided" in page.read_text()
    assert (tmp_path / "atlas-5-3.png").exists()
    assert suite.read_atlas(tmp_path / "atlas.parquet").rows.equals(drawn.rows)


@pytest.mark.parametrize("size", suite.FULL.sizes)
def test_published_cells_are_what_this_machine_plays(size: tuple[int, int]) -> None:
    """They were played on a GPU; here to the bit, a cell of each size."""
    cell = atlas.Cell(*size, phase=23_600, gap=0.0317)
    own = [pl.col(name) == value for name, value in cell._asdict().items()]
    row = suite.read_atlas(PUBLISHED).rows.filter(pl.col("ranker") == "TopRank", *own).row(0, named=True)
    assert row["version"] == rankers.TopRank.algorithm_version
    ranker = rankers.TopRank(n_items=cell.n_items, n_positions=cell.n_positions, horizon=row["rounds"])
    traces = simulation.play_many(
        lambda: (ranker.clone(), cell.make()), rounds=row["rounds"], seeds=range(row["seeds"]), points=1
    )
    values = np.array([trace.mean_value for trace in traces])
    assert (row["value"], row["standard_error"]) == (values.mean(), values.std(ddof=1) / 24**0.5)


@pytest.mark.parametrize(
    ("entries", "grid", "words"),
    [
        (ENTRIES[:1], SMALL, "entries must be at least two rankers"),
        (ENTRIES[:1] * 2, SMALL, "entries must be at least two rankers, and none twice"),
        ([*ENTRIES, suite.Entry("FTPL")], SMALL, "FTPL cannot play: "),
        (ENTRIES, SMALL._replace(seeds=1), "seeds must be"),
        (ENTRIES, SMALL._replace(rounds=0), "rounds must be"),
    ],
)
def test_what_cannot_be_drawn_is_refused(entries: list[suite.Entry], grid: suite.Grid, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        suite.draw_atlas(entries, grid, progress=False)


def test_the_command(tmp_path: Path) -> None:
    words = ["atlas", "MW", "TopRank", "--rounds", "50", "--seeds", "2", "--out", str(tmp_path)]
    told = CliRunner().invoke(app, words)
    assert told.exit_code == 0, told.output
    assert f"Maps: {tmp_path / 'atlas.html'}" in told.output.replace("\n", "")
    assert CliRunner().invoke(app, ["atlas", "FTPL", "MW", "--out", str(tmp_path)]).exit_code == 2


def test_advise_is_right_in_every_cell_that_was_published() -> None:
    rows = pl.read_parquet(PUBLISHED)
    cells, wrong, of_one = 0, [], dict.fromkeys(("PBMTS", "FTRLPBM"), 0)
    answers = {
        (n_items, n_positions, users): rankloop.advise(
            "clicks", n_items=n_items, n_positions=n_positions, users=users
        ).ranker
        for n_items, n_positions in set(rows.select("n_items", "n_positions").iter_rows())
        for users in ("stay", "change", "unknown")
    }
    for (n_items, n_positions, phase, gap), cell in rows.group_by("n_items", "n_positions", "phase", "gap"):
        lost = dict(
            zip(cell["ranker"], (cell["best"] - cell["value"]) / (cell["best"] - cell["random"]), strict=True)
        )
        enough = max(1.5 * min(lost.values()), min(lost.values()) + 0.01)
        users = "stay" if phase >= cell["rounds"][0] else "change"
        names = [answers[n_items, n_positions, asked] for asked in (users, "unknown")]
        wrong += [(n_items, n_positions, phase, gap, name) for name in names if lost[name] > enough]
        for name in of_one:
            of_one[name] += lost[name] <= enough
        cells += 1
    assert (cells, wrong) == (636, [])
    assert of_one == {"PBMTS": 362, "FTRLPBM": 295}  # always the same answer would not do
