"""The benchmark of PDGD compares like with like: NumPy takes the same steps."""

from __future__ import annotations

import numpy as np

from benchmarks import numpy_pdgd, oltr
from rankloop import rankers


def test_numpy_takes_the_same_steps() -> None:
    rng = np.random.default_rng(1)
    ours = rankers.PDGD(n_features=4, n_positions=5, learning_rate=0.5)
    plain = numpy_pdgd.PDGD(n_features=4, n_positions=5, learning_rate=0.5, rng=rng)
    plain.w[:] = ours.state.w[:] = rng.normal(size=4)
    for _ in range(60):
        X = rng.random((int(rng.integers(1, 12)), 4))
        shown = ours.rank(X, rng=rng)
        top = shown.items[: min(5, len(X))]
        clicks = rng.integers(0, 2, len(top)).astype(np.float64)
        plain.learn(X, top, X @ plain.w, clicks)
        ours.learn(shown, clicks)
        np.testing.assert_allclose(plain.w, ours.state.w, rtol=1e-7, atol=1e-10)


def test_numpys_users_click_as_the_model_says() -> None:
    rng, attraction, stop = np.random.default_rng(2), np.array([0.2, 0.9]), np.array([0.1, 0.8])
    drawn = np.array([numpy_pdgd.clicks_on(np.array([1, 0, 1]), attraction, stop, rng) for _ in range(4_000)])
    goes_on = (1 - 0.9 * 0.8) * (1 - 0.2 * 0.1)
    expected = np.array([0.9, (1 - 0.9 * 0.8) * 0.2, goes_on * 0.9])
    assert (np.abs(drawn.mean(axis=0) - expected) < 4 * np.sqrt(expected * (1 - expected) / 4_000)).all()


def test_a_table_has_a_line_for_each_aim() -> None:
    one = oltr.Rates("tiny", {oltr.FUSED: 100.0, oltr.NUMPY: 4.0, oltr.BARE: 250.0})
    assert one.fused_over(oltr.NUMPY) == 25.0
    _, numpy, bare = oltr.tables([one])
    assert "met" in str(numpy)
    assert "missed" in str(bare)
