"""The position-based model from counts: Newton's method ends where EM would, and says what is not known."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import xlog1py, xlogy

from rankloop import data, environments, feedback, logs
from rankloop.feedback import ClickLog, PositionBasedModel
from rankloop.logs import intervals, pbm
from rankloop.logs.pbm import Newton, _solve

ALPHA = np.array([0.7, 0.5, 0.4, 0.3, 0.2, 0.1])
BETA = np.array([1.0, 0.6, 0.4, 0.25])


@pytest.fixture(autouse=True)
def strict() -> Iterator[None]:
    """Nothing is warned of unless the test says so."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def sessions(n: int, seed: int, *, alpha: Any = ALPHA, beta: Any = BETA) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    items = rng.permuted(np.tile(np.arange(len(alpha)), (n, 1)), axis=1)[:, : len(beta)]
    return items, PositionBasedModel(attraction=alpha, examination=beta).click(items, rng=rng)


def simulated(n: int, seed: int, **truth: Any) -> ClickLog:
    items, clicks = sessions(n, seed, **truth)
    return ClickLog.count(items=items, clicks=clicks)


def by_item(found: logs.FittedPBM) -> np.ndarray:
    return found.attraction[np.argsort([int(item) for _, item in found.items])]


def session_by_session(
    items: np.ndarray, clicks: np.ndarray, alpha: np.ndarray, beta: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """One step of EM as the textbooks write it, with position 0 looked at for certain."""
    likes, looks = np.zeros_like(alpha), np.zeros_like(beta)
    shown, times = np.zeros_like(alpha), np.zeros_like(beta)
    for page, clicked in zip(items, clicks, strict=True):
        for j, (i, c) in enumerate(zip(page, clicked, strict=True)):
            none = 1 - alpha[i] * beta[j]
            likes[i] += 1 if c else alpha[i] * (1 - beta[j]) / none
            looks[j] += 1 if c else beta[j] * (1 - alpha[i]) / none
            shown[i] += 1
            times[j] += 1
    return likes / shown, np.append(1.0, (looks / times)[1:])


def cells_of(log: ClickLog) -> intervals.Cells:
    return intervals.Cells(
        log.items,
        log.positions,
        log.shown.astype(float),
        log.clicked.astype(float),
        len(log.item_ids),
        log.n_positions,
    )


def test_a_step_of_em_session_by_session_stays_where_newton_ends() -> None:
    items, clicks = sessions(300, 1)
    found = logs.fit_pbm(ClickLog.count(items=items, clicks=clicks), smoothing=0.0, tolerance=1e-12)
    alpha, beta = by_item(found), found.examination
    again = session_by_session(items, clicks, alpha, beta)
    np.testing.assert_allclose(again[0], alpha, atol=1e-9)
    np.testing.assert_allclose(again[1], beta, atol=1e-9)
    moved = session_by_session(items, clicks, 0.9 * alpha, beta)
    assert np.abs(moved[0] - 0.9 * alpha).max() > 1e-3


def test_em_is_ignored_with_a_warning() -> None:
    with pytest.warns(DeprecationWarning, match="method is ignored"):
        found = logs.fit_pbm(simulated(500, 4), method="em")
    assert len(found.trace) < 20


@pytest.mark.judges("2022-218")
@pytest.mark.parametrize("smoothing", [0.0, 3.0])
def test_it_ends_at_the_maximum_and_never_goes_down(smoothing: float) -> None:
    log = simulated(2_000, 2)
    found = logs.fit_pbm(log, smoothing=smoothing, tolerance=1e-9)
    assert found.converged
    assert (np.diff(found.trace) >= -1e-7).all()
    shown, clicked = log.matrices()
    looks = np.append(1.0, found.examination[1:])
    mean = clicked.sum() / (shown * intervals.by_moments(cells_of(log), impressions=smoothing)[1]).sum()

    def loss(x: np.ndarray) -> float:
        a, b = x[:6, None], np.append(1.0, x[6:])
        p = a * b
        likelihood = (clicked * np.log(p) + (shown - clicked) * np.log1p(-p)).sum()
        return -float(likelihood + smoothing * (mean * np.log(a) + (1 - mean) * np.log1p(-a)).sum())

    at = np.concatenate((by_item(found), looks[1:]))
    best = minimize(loss, at, bounds=[(1e-6, 1 - 1e-6)] * 9, method="L-BFGS-B", tol=1e-14)
    assert loss(at) - best.fun < 1e-3
    np.testing.assert_allclose(at, best.x, atol=2e-3)
    assert found.trace[-1] == pytest.approx(-loss(at), abs=1e-3)


@pytest.mark.judges("2022-218")
def test_the_truth_comes_out_and_lies_in_the_intervals_as_often_as_said() -> None:
    alpha_hits, beta_hits = [], []
    for seed in range(200):
        found = logs.fit_pbm(simulated(1_500, 1_000 + seed), confidence=0.9, smoothing=0.5)
        numbers = np.array([int(item) for _, item in found.items])
        low, high = found.attraction_interval.T
        alpha_hits.append((low <= ALPHA[numbers]) & (ALPHA[numbers] <= high))
        low, high = found.examination_interval[1:].T
        beta_hits.append((low <= BETA[1:]) & (BETA[1:] <= high))
    # 200 logs: nine of ten intervals hold the truth, give or take four standard errors of a parameter's share.
    for hits in (np.mean(alpha_hits, axis=0), np.mean(beta_hits, axis=0)):
        assert (np.abs(hits - 0.9) < 4 * np.sqrt(0.09 / 200)).all()
    found = logs.fit_pbm(simulated(200_000, 5))
    np.testing.assert_allclose(by_item(found), ALPHA, atol=0.01)
    np.testing.assert_allclose(found.examination, BETA, atol=0.01)


def test_intervals_do_not_depend_on_the_blocks_they_are_computed_in(monkeypatch: pytest.MonkeyPatch) -> None:
    log = simulated(2_000, 3)
    whole = logs.fit_pbm(log)
    monkeypatch.setattr(intervals, "_BLOCK", 2)
    parts = logs.fit_pbm(log)
    np.testing.assert_allclose(parts.attraction_interval, whole.attraction_interval, rtol=1e-10)
    np.testing.assert_allclose(parts.examination_interval, whole.examination_interval, rtol=1e-10)


def test_intervals_shrink_with_the_root_of_the_log() -> None:
    wide, narrow = (logs.fit_pbm(simulated(n, 6)) for n in (2_000, 32_000))
    ratio = np.ptp(wide.attraction_interval, axis=1) / np.ptp(narrow.attraction_interval, axis=1)
    np.testing.assert_allclose(ratio, 4.0, rtol=0.15)


def test_the_position_looked_at_most_is_the_reference_wherever_it_is() -> None:
    found = logs.fit_pbm(simulated(50_000, 7, beta=BETA[::-1]))
    assert found.reference == 3
    assert found.examination[3] == 1.0
    assert found.examination_interval[3].tolist() == [1.0, 1.0]
    np.testing.assert_allclose(found.examination, BETA[::-1], atol=0.03)


def test_only_products_can_be_told() -> None:
    one = logs.fit_pbm(simulated(100_000, 8, alpha=0.9 * ALPHA, beta=BETA))
    other = logs.fit_pbm(simulated(100_000, 8, alpha=ALPHA, beta=0.9 * BETA))
    np.testing.assert_allclose(by_item(one), by_item(other), atol=0.02)


def test_rare_items_are_pulled_to_the_middle_and_common_ones_stay() -> None:
    shown, clicked = simulated(20_000, 9).matrices()
    shown = np.vstack((shown, [[1, 0, 0, 0], [1, 0, 0, 0]]))
    clicked = np.vstack((clicked, [[1, 0, 0, 0], [0, 0, 0, 0]]))
    log = ClickLog.from_matrices(shown=shown, clicked=clicked)
    raw, smooth = (by_item(logs.fit_pbm(log, smoothing=s)) for s in (0.0, 2.0))
    assert raw[6] > 0.99
    assert raw[7] < 0.01
    middle = clicked.sum() / (shown * BETA).sum()
    np.testing.assert_allclose(smooth[6:], [(1 + 2 * middle) / 3, 2 * middle / 3], atol=0.01)
    np.testing.assert_allclose(smooth[:6], raw[:6], atol=0.002)
    found = logs.fit_pbm(log)
    rare = [i for i, (_, item) in enumerate(found.items) if item in "67"]
    assert (np.ptp(found.attraction_interval[rare], axis=1) > 0.5).all()


def test_a_log_that_never_moves_an_item_is_called_so() -> None:
    shown = np.diag([100, 100, 100])
    with pytest.warns(
        logs.ClickModelWarning, match="positions 2 and 3 cannot be compared with that of position 1"
    ):
        found = logs.fit_pbm(ClickLog.from_matrices(shown=shown, clicked=np.diag([50, 30, 10])))
    assert len(found.warnings) == 1
    assert found.examination_interval[1:].tolist() == [[0.0, 1.0], [0.0, 1.0]]
    by_name = dict(zip((item for _, item in found.items), found.attraction_interval.tolist(), strict=True))
    assert by_name["1"] == by_name["2"] == [0.0, 1.0]
    assert 0.3 < by_name["0"][0] < by_name["0"][1] < 0.7


def test_only_items_that_were_clicked_link_positions() -> None:
    shown = np.array([[500, 500, 0, 0], [0, 0, 500, 500], [500, 500, 500, 500]])
    clicked = np.array([[300, 150, 0, 0], [0, 0, 100, 50], [0, 0, 0, 0]])
    with pytest.warns(
        logs.ClickModelWarning,
        match=r"positions 3 and 4 cannot.*the item that ties positions 1 and 2 to the others: 0 \(450 clicks\)",
    ):
        logs.fit_pbm(ClickLog.from_matrices(shown=shown, clicked=clicked))
    clicked[2, 0] = 200
    found = logs.fit_pbm(ClickLog.from_matrices(shown=shown, clicked=clicked))
    assert found.warnings == ()


def test_a_position_without_a_click_or_without_an_impression() -> None:
    shown = np.array([[500, 400, 0, 90], [300, 100, 0, 10]])
    clicked = np.array([[300, 150, 0, 0], [100, 10, 0, 0]])
    with pytest.warns(logs.ClickModelWarning, match="nothing was shown at position 3"):
        found = logs.fit_pbm(ClickLog.from_matrices(shown=shown, clicked=clicked))
    assert np.isnan(found.examination[2])
    assert found.examination_interval[2].tolist() == [0.0, 1.0]
    low, high = found.examination_interval[3]
    assert low == 0.0
    # Someone would have clicked about 0.6 of 90 impressions: none did, so few can have looked.
    assert 0.02 < high < 0.15
    with pytest.raises(ValueError, match="examination of position 3 is unknown"):
        found.save("nowhere.json")


def test_a_position_that_is_hardly_known_is_called_so() -> None:
    shown = np.array([[500, 4], [300, 0]])
    clicked = np.array([[300, 2], [100, 0]])
    with pytest.warns(
        logs.ClickModelWarning, match=r"position 2 is hardly known.*the item that ties .*: 0 \(302 clicks\)"
    ):
        logs.fit_pbm(ClickLog.from_matrices(shown=shown, clicked=clicked))


def test_nothing_is_certain_when_everything_was_clicked() -> None:
    found = logs.fit_pbm(ClickLog.from_matrices(shown=[[10, 10]], clicked=[[10, 10]]), smoothing=0.0)
    np.testing.assert_allclose(found.examination, 1.0)
    assert 0.6 < found.examination_interval[1, 0] < 0.95
    # The reference tells as much as ten trials that all succeed, and the other position only about itself: Wilson's
    # interval for ten of ten.
    z = 1.959964
    np.testing.assert_allclose(found.attraction_interval[0], [10 / (10 + z**2), 1.0], atol=1e-3)


def test_too_few_steps_are_told() -> None:
    with pytest.warns(logs.ClickModelWarning, match="stopped after 2 steps, before it converged"):
        found = logs.fit_pbm(simulated(500, 4), max_steps=1, tolerance=1e-12)
    assert not found.converged
    assert "not converged" in repr(found)


def test_whoever_reads_a_fit_that_did_not_converge_is_warned(tmp_path: Path) -> None:
    path = tmp_path / "pbm.json"
    with pytest.warns(logs.ClickModelWarning):
        logs.fit_pbm(simulated(500, 4), max_steps=1, tolerance=1e-12).save(path)
    with pytest.warns(feedback.UnconvergedWarning, match=r"pbm.json: the fit .* before it converged"):
        assert feedback.read_parameters(path).provenance["converged"] is False
    with pytest.warns(feedback.UnconvergedWarning, match=r"pbm.json: the fit .* before it converged"):
        environments.PositionBased.read(path)
    logs.fit_pbm(simulated(500, 4)).save(path)
    feedback.read_parameters(path)  # any warning is an error here
    environments.PositionBased.read(path)


def test_queries_have_items_of_their_own_and_share_positions() -> None:
    rng = np.random.default_rng(3)
    a, b = (simulated(20_000, seed, alpha=alpha) for seed, alpha in ((1, ALPHA), (2, rng.permutation(ALPHA))))
    both = ClickLog(
        queries=np.repeat([0, 1], [a.n_cells, b.n_cells]),
        items=np.concatenate((a.items, b.items)),
        positions=np.concatenate((a.positions, b.positions)),
        shown=np.concatenate((a.shown, b.shown)),
        clicked=np.concatenate((a.clicked, b.clicked)),
        query_ids=("a", "b"),
        item_ids=a.item_ids,
        rows=np.array([20_000, 20_000]),
        n_positions=4,
    )
    found = logs.fit_pbm(both)
    assert len(found.items) == 12
    assert set(found.names) == {f"{query}/{item}" for query in "ab" for item in range(6)}
    np.testing.assert_allclose(found.examination, BETA, atol=0.02)
    np.testing.assert_allclose(found.attraction, np.repeat(ALPHA, 2), atol=0.03)


def test_the_file_holds_the_model_and_where_it_came_from(tmp_path: Path) -> None:
    found = logs.fit_pbm(simulated(5_000, 4))
    found.save(tmp_path / "pbm.json")
    read = feedback.read_parameters(tmp_path / "pbm.json")
    np.testing.assert_array_equal(read.attraction, found.attraction)
    np.testing.assert_array_equal(read.examination, found.examination)
    assert read.items == found.names
    assert read.provenance["rows"] == 5_000
    assert read.provenance["converged"] is True
    items = [3, 0, 5]
    np.testing.assert_array_equal(
        read.model().click_probabilities(items), found.model().click_probabilities(items)
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"smoothing": -1}, "smoothing must be"),
        ({"smoothing": np.nan}, "smoothing must be"),
        ({"confidence": 1.0}, "confidence must be a finite number above 0 and below 1, got 1.0"),
        ({"tolerance": 0.0}, "tolerance must be a finite number above 0 and below 1"),
        ({"max_steps": 0}, "max_steps must be a whole number of at least 1, got 0"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        logs.fit_pbm(simulated(100, 1), **arguments)


def test_a_log_without_a_click_is_refused() -> None:
    with pytest.raises(ValueError, match="log must have a click"):
        logs.fit_pbm(ClickLog.from_matrices(shown=[[5, 5]], clicked=[[0, 0]]))


def test_real_pages() -> None:
    try:
        path = data.find("clicks/yandex_wscd/trainSample.jsonl.gz")
    except data.DataMissing as missing:
        pytest.skip(str(missing))
    log = data.read_clicks(path)
    found = logs.fit_pbm(log.select(query="9982_0", top=10))
    assert found.converged
    assert found.warnings == ()
    np.testing.assert_allclose(found.attraction[:3], [0.528, 0.329, 0.251], atol=0.002)
    np.testing.assert_allclose(found.examination[:5], [1.0, 0.698, 0.640, 0.529, 0.361], atol=0.002)
    # Users look less and less further down, on all queries together.
    everything = logs.fit_pbm(log)
    assert (np.diff(everything.examination[:8]) < 0).all()
    assert everything.examination[9] < 0.3


Fit = tuple[intervals.Cells, intervals.Prior, Newton, pbm.Maximum]


def fit(log: ClickLog, smoothing: float) -> Fit:
    items, which = log.pairs()
    cells = intervals.Cells(
        which, log.positions, log.shown * 1.0, log.clicked * 1.0, len(items), log.n_positions
    )
    alpha, beta, prior = intervals.by_moments(cells, impressions=smoothing)
    group = intervals.comparable_groups(cells)
    pinned = np.array([max(np.flatnonzero(group == g), key=beta.__getitem__) for g in np.unique(group)])
    climb = Newton(cells, alpha=alpha, beta=beta, prior=prior, pinned=pinned)
    return cells, prior, climb, climb.maximise(tolerance=1e-8, max_steps=200)


def independently(
    cells: intervals.Cells, prior: intervals.Prior, climb: Newton, end: pbm.Maximum
) -> tuple[Any, float]:
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


def distance_from_maximum(
    cells: intervals.Cells, prior: intervals.Prior, climb: Newton, end: pbm.Maximum
) -> float:
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
