"""The benchmark of FTRL-PBM compares like with like: SciPy's version is the paper's, the bare passes are passes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks import bare_pbm, pbm, scipy_ftrl_pbm
from benchmarks.timing import Effort
from rankloop import rankers
from rankloop.kernels import list_network
from rankloop.rankers import ftrl_pbm as reference
from tests.benchmarks.printed import printed

TINY = Effort(slice_seconds=0.001, laps=1)


def _scipy(n: int, m: int, K: int) -> scipy_ftrl_pbm.FTRLPBM:
    return scipy_ftrl_pbm.FTRLPBM(n_items=n, n_positions=m, K=K, rng=np.random.default_rng(1))


def test_scipy_takes_the_steps_of_the_reference() -> None:
    plain = _scipy(6, 3, 25)
    plain.play(pbm.people_for(6, 3).clicks[0].T, 40)
    eta = 1 / (2 * np.sqrt(plain.t))
    expected = reference.frank_wolfe(plain.x.T.copy(), plain.L_hat.T.copy(), eta, 25)
    np.testing.assert_allclose(plain.solve().T, expected, atol=1e-12)


def test_scipy_goes_to_the_exact_minimiser() -> None:
    ranker, plain = rankers.FTRLPBM(n_items=6, n_positions=3), _scipy(6, 3, 20_000)
    rng = np.random.default_rng(2)
    for _ in range(30):
        shown = ranker.rank(rng=rng)
        ranker.learn(shown, rng.integers(0, 2, 3))
    plain.L_hat, plain.t = ranker.state.L_hat.T.copy(), int(ranker.state.t[0])
    np.testing.assert_allclose(plain.solve().T, ranker.x, atol=1e-3)


@pytest.mark.parametrize(("n", "m"), [(6, 3), (4, 4)])
def test_scipy_draws_lists_with_the_right_marginals(n: int, m: int) -> None:
    plain = _scipy(n, m, 50)
    plain.play(pbm.people_for(n, m).clicks[0].T, 20)
    drawn, seen = 800, np.zeros((n, m))
    for _ in range(drawn):
        items = plain.sample()
        assert len(set(items.tolist())) == m
        seen[items, np.arange(m)] += 1
    error = np.sqrt(plain.x * (1 - plain.x) / drawn)
    assert (np.abs(seen / drawn - plain.x) <= 4.5 * error + 1e-3).all()


def test_the_bare_passes_evaluate_x_and_its_columns() -> None:
    rng = np.random.default_rng(3)
    L, u, v = rng.random((4, 9)), rng.random(9), 3 + rng.random(4)
    rounds = 7
    expected = rounds / (L + u + v[:, None]) ** 2
    x, columns = np.empty_like(L), np.empty(4)
    bare_pbm.double_loop(rounds, L, u, v, x, columns)
    np.testing.assert_allclose(x, expected)
    np.testing.assert_allclose(columns, expected.sum(axis=1))
    x, rows, room = np.empty_like(L), np.empty(9), list_network.new_scratch(9, 4)
    bare_pbm.own_pass(rounds, L, u, v, x, rows, room)
    np.testing.assert_allclose(x, expected)
    np.testing.assert_allclose(room.columns, expected.sum(axis=1))


def test_rows_ratios_and_aims_belong_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pbm, "WARM_ROUNDS", 50)
    monkeypatch.setattr(pbm, "SIZES", ((10, 5), (50, 10)))
    found = pbm.measure(TINY, lambda _: None, sizes=((10, 5), (50, 10)), more=())
    assert [one.size for one in found] == [(10, 5), (50, 10)]
    first = found[0].rounds_per_second
    assert set(first) == {pbm.FUSED, pbm.SCIPY, pbm.BARE, pbm.BARE_OWN}
    assert found[0].fused_over(pbm.SCIPY) == first[pbm.FUSED] / first[pbm.SCIPY]
    text = printed(pbm.tables(found))
    assert f"{first[pbm.FUSED]:,.0f}" in text
    assert "aim 8,000x" in text
    assert text.count("within 3x") == 2


def _made(n: int, m: int, seconds: float) -> pbm.Rates:
    rates = {
        pbm.FUSED: 1 / seconds,
        pbm.SCIPY: 1e-3 / seconds,
        pbm.BARE: 2 / seconds,
        pbm.BARE_OWN: 4 / seconds,
    }
    return pbm.Rates(n, m, rates, n > 100, 20 * n * m)


def test_exponents_are_fitted_along_one_size_at_a_time() -> None:
    found = [_made(n, m, 1e-6 * n**0.8 * m**1.5) for n, m in (*pbm.SIZES, *pbm.MORE_SIZES)]
    assert pbm.exponent(found, pbm.FUSED, m=10) == pytest.approx(0.8)
    assert pbm.exponent(found, pbm.FUSED, n=1_000) == pytest.approx(1.5)
    text = printed(pbm.tables(found))
    assert "≥ 1,000x" in text
    assert "0.80" in text
    assert "1.50" in text
    assert "met  memory O(nm): 20 to 20 bytes" in text
    assert "furthest 4.0x" in text


def test_memory_grows_with_the_entries_of_x_alone() -> None:
    small, large = (pbm.bytes_held(n, 10) for n in (2_000, 20_000))
    assert 8 <= (large - small) / (18_000 * 10) <= 40


def test_the_command_knows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pbm, "measure", lambda effort, tell: [_made(10, 5, 1e-6)])
    command.main(["pbm", "--json", str(tmp_path / "numbers.json")])
    assert "1,000,000" in capsys.readouterr().out
    assert json.loads((tmp_path / "numbers.json").read_text())["pbm"][0]["n"] == 10
