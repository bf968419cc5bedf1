"""The click benchmark compares like with like: the plain version takes the same steps, the long log is what it says."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks import clicks, session_em
from rankloop import data
from rankloop.feedback import ClickLog
from rankloop.logs.em import Cells, Prior, maximise
from tests.benchmarks.printed import printed


def test_sessions_and_counts_take_the_same_steps() -> None:
    items, hits = clicks.sessions(300)
    log = ClickLog.count(items=items, clicks=hits)
    cells = Cells(
        log.items, log.positions, log.shown * 1.0, log.clicked * 1.0, clicks.N_ITEMS, clicks.N_POSITIONS
    )
    alpha, beta = [0.5] * clicks.N_ITEMS, [0.4] * clicks.N_POSITIONS
    end = maximise(
        cells,
        alpha=np.array(alpha),
        beta=np.array(beta),
        prior=Prior(0.5, 0.0),
        pinned=np.array([], np.int64),
        tolerance=1e-15,
        max_steps=2,
    )
    for _ in range(2):
        alpha, beta = session_em.step(items.tolist(), hits.tolist(), alpha, beta)
    np.testing.assert_allclose(end.alpha, alpha, rtol=1e-10)
    np.testing.assert_allclose(end.beta, beta, rtol=1e-10)


def test_a_log_is_written_as_long_as_it_should_be_and_read_by_another_process(tmp_path: Path) -> None:
    clicks.write_log(tmp_path / "log.parquet", 200_000)
    log = data.read_clicks(tmp_path / "log.parquet")
    assert (log.n_rows, log.n_positions) == (200_000, clicks.N_POSITIONS)
    told = clicks._streamed(tmp_path / "log.parquet", 200_000)
    assert told.n_cells == log.n_cells
    assert 0 < told.start_megabytes <= told.peak_megabytes


def test_tables_add_up() -> None:
    found = [
        clicks.Fitting("sessions, Python", 1_000, 0.5, None, None),
        clicks.Fitting("counts", 20_000, 0.01, 0.25, 42),
        clicks.Streaming(1_000_000, 2.0, 5_000, 0.5, 0.4, 0.1, 100.0, 160.0),
    ]
    text = printed(clicks.tables(found))
    assert "1,000x" in text
    assert "1,000,000" in text
    assert "met  20,000 sessions in 0.250 s" in text
