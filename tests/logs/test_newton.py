"""Newton's method for the position-based model: at the maximum of every log, however sparse, flat or one-sided."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import xlog1py, xlogy

from rankloop import data, logs
from rankloop.feedback import ClickLog
from rankloop.logs import em, identifiability
from rankloop.logs.newton import Newton, _solve

Fit = tuple[em.Cells, em.Prior, Newton, em.Maximum]


def fit(log: ClickLog, smoothing: float) -> Fit:
    items, which = log.pairs()
    cells = em.Cells(which, log.positions, log.shown * 1.0, log.clicked * 1.0, len(items), log.n_positions)
    alpha, beta, prior = em.by_moments(cells, impressions=smoothing)
    group = identifiability.groups(cells)
    pinned = np.array([max(np.flatnonzero(group == g), key=beta.__getitem__) for g in np.unique(group)])
    climb = Newton(cells, alpha=alpha, beta=beta, prior=prior, pinned=pinned)
    return cells, prior, climb, climb.maximise(tolerance=1e-8, max_steps=200)


def independently(cells: em.Cells, prior: em.Prior, climb: Newton, end: em.Maximum) -> tuple[Any, float]:
    """The maximum by L-BFGS-B in log alpha and log beta, from a place far from ours."""
    n, free = cells.n_items, np.flatnonzero(climb.free)
    missed = cells.shown - cells.clicked

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        alpha, beta = np.exp(x[:n]), end.beta.copy()
        beta[free] = np.exp(x[n:])
        p = np.minimum(alpha[cells.items] * beta[cells.positions], 1 - 1e-13)
        value = xlogy(cells.clicked, p).sum() + xlog1py(missed, -p).sum()
        k, mean = prior.impressions, prior.mean
        value += k * (xlogy(mean, alpha) + xlog1py(1 - mean, -np.minimum(alpha, 1 - 1e-13))).sum()
        slope = cells.clicked - missed * p / (1 - p)
        of_items = cells.by_item(slope) + k * (mean - (1 - mean) * alpha / np.maximum(1 - alpha, 1e-13))
        return -value, -np.concatenate((of_items, cells.by_position(slope)[free]))

    bounds = [(-30.0, -1e-12)] * n + [(-30.0, 0.0)] * len(free)
    options = {"maxiter": 20_000, "maxfun": 50_000, "ftol": 1e-16, "gtol": 1e-10, "maxcor": 30}
    start = np.full(len(bounds), np.log(0.3))
    best = minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B", options=options)
    beta = end.beta.copy()
    beta[free] = np.exp(best.x[n:])
    return beta, -float(best.fun)


def sparse_log(seed: int) -> ClickLog | None:
    """A few items, some never moved, some always clicked, some never, at positions that few reach."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 8)), int(rng.integers(1, 6))
    shown = rng.poisson(rng.choice([0.5, 3.0, 30.0, 1_000.0], (n, m)))
    rate = rng.choice([0.02, 0.3, 0.9, 1.0], (n, 1)) * rng.choice([0.05, 0.5, 1.0], (1, m))
    clicked = rng.binomial(shown, rate)
    return ClickLog.from_matrices(shown=shown, clicked=clicked) if clicked.sum() else None


def distance_from_maximum(cells: em.Cells, prior: em.Prior, climb: Newton, end: em.Maximum) -> float:
    """How far the conditions of a maximum are missed, as a share of the clicks: the likelihood is concave in logs."""
    alpha, beta = end.alpha, end.beta
    missed = cells.shown - cells.clicked
    p = alpha[cells.items] * beta[cells.positions]
    slope = cells.clicked - np.divide(missed * p, 1 - p, out=np.zeros_like(p), where=missed > 0)
    of_items, at = cells.by_item(slope), cells.by_position(slope)[climb.free]
    extra = prior.impressions * (1 - prior.mean)
    of_items += prior.impressions * prior.mean
    of_items -= np.divide(extra * alpha, 1 - alpha, out=np.zeros_like(alpha), where=extra > 0)
    off = np.concatenate((np.where((alpha == 1) & (of_items > 0), 0, of_items), at))
    off[len(alpha) :][(beta[climb.free] == 1) & (at > 0)] = 0
    return float(np.abs(off).max() / cells.clicked.sum())


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_every_log_converges_to_a_maximum(smoothing: float) -> None:
    tried = 0
    for seed in range(300):
        log = sparse_log(seed)
        if log is None:
            continue
        cells, prior, climb, end = fit(log, smoothing)
        assert end.converged, seed
        assert len(end.trace) < 60, seed
        assert (np.diff(end.trace) >= -1e-9 * (1.0 + abs(end.trace[0]))).all(), seed
        assert distance_from_maximum(cells, prior, climb, end) < 1e-7, seed
        tried += 1
    assert tried > 200


# A real query on which EM takes far more than 2,000 steps.
HARD = "9866_1"


def test_real_queries_of_ten_items_and_five_positions() -> None:
    n = 0
    for sample in ("trainSample", "testSample"):
        try:
            log = data.read_clicks(data.find(f"clicks/yandex_wscd/{sample}.jsonl.gz"))
        except data.DataMissing as missing:
            pytest.skip(str(missing))
        for query in log.query_ids:
            part = log.select(query=query, top=10, positions=5)
            cells, prior, climb, end = fit(part, 1.0)
            assert end.converged, query
            assert len(end.trace) < 20, query
            assert distance_from_maximum(cells, prior, climb, end) < 1e-9, query
            n += 1
            if query != HARD:
                continue
            beta, value = independently(cells, prior, climb, end)
            assert value <= climb.objective(end.alpha, end.beta) + 1e-6, query
            np.testing.assert_allclose(end.beta, beta, atol=1e-5, err_msg=query)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", logs.ClickModelWarning)
                found = logs.fit_pbm(part)
            low, high = found.examination_interval.T
            assert ((low <= beta + 1e-5) & (beta - 1e-5 <= high)).all(), query
    assert n == 40


def test_the_same_log_gives_the_same_bytes() -> None:
    rng = np.random.default_rng(2)
    shown = rng.integers(5, 50, (6, 4))
    log = ClickLog.from_matrices(shown=shown, clicked=rng.binomial(shown, 0.3))
    one, other = logs.fit_pbm(log), logs.fit_pbm(log)
    assert one.examination.tobytes() == other.examination.tobytes()
    assert one.attraction.tobytes() == other.attraction.tobytes()


def test_equations_are_solved_and_flat_ones_damped() -> None:
    rng = np.random.default_rng(4)
    root = rng.standard_normal((5, 5))
    matrix, right = root @ root.T, rng.standard_normal(5)
    np.testing.assert_allclose(_solve(matrix, right), np.linalg.solve(matrix, right), rtol=1e-6)
    flat = np.array([[1.0, 1.0], [1.0, 1.0]])
    np.testing.assert_allclose(flat @ _solve(flat, np.array([2.0, 2.0])), [2.0, 2.0], rtol=1e-6)
    assert _solve(np.zeros((0, 0)), np.zeros(0)).shape == (0,)
