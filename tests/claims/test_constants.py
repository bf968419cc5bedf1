"""Constants and rates that the papers state, by single steps and exact values: a rate that is off by a little is seen.

Regret alone forgives such mistakes: many rates learn. Each of these judges has near mutations in `tests/mutations.py`.
"""

from __future__ import annotations

import numpy as np
import pytest

from rankloop import rankers
from rankloop.environments import FixedItems, users
from rankloop.experiments.pbm_2022.bounds import theorem_2
from rankloop.games.classify import rates
from rankloop.rankers import FTRLPBM

CLASSES = ("trivial", "easy", "hard", "hopeless")


@pytest.mark.judges("2016-144")
def test_the_constants_of_the_preprint() -> None:
    for T in (1_000, 20_000):
        made = {"learning_rate": "preprint", "exploration": "preprint", "horizon": T}
        params = rankers.RTopKF(n_features=3, **made).params
        assert (params.eta, params.eta_power) == (pytest.approx(T ** (-2 / 3)), 0.0)
        assert (params.gamma, params.gamma_power) == (pytest.approx(T ** (-1 / 3)), 0.0)


@pytest.mark.judges("2016-145")
def test_the_constants_of_the_camera_ready() -> None:
    params = rankers.RTopKF(n_features=3, learning_rate="camera-ready").params
    assert (params.eta, params.eta_power) == (0.01, pytest.approx(2 / 3))
    assert (params.gamma, params.gamma_power) == (0.1, pytest.approx(1 / 3))


@pytest.mark.judges("2022-193")
@pytest.mark.parametrize("estimator", ["loss", "mean"])  # they find x by different kernels
@pytest.mark.parametrize("rounds", [20, 90])
def test_the_learning_rate_of_ftrl_pbm(rounds: int, estimator: str) -> None:
    """Equation (2) at 1 / (2 sqrt t): sqrt(t / x) - L is a number for each item plus one for each position."""
    ranker, rng = FTRLPBM(n_items=4, n_positions=2, estimator=estimator), np.random.default_rng(1)
    for _ in range(rounds):
        shown = ranker.rank(rng=rng)
        ranker.learn(shown, rng.random(2) < 0.8 - 0.2 * shown.items)
    t = float(ranker.state.t[0])
    M = np.sqrt(t / ranker.x) - ranker.state.L_hat
    mixed = M - M[:1] - M[:, :1] + M[0, 0]
    assert np.abs(mixed).max() < 1e-6 * np.abs(M).max()
    for seed in range(20):  # and lists are drawn from that x
        shown = ranker.rank(rng=np.random.default_rng(seed))
        np.testing.assert_allclose(shown.propensities, ranker.x[[0, 1], shown.items], atol=1e-6)


@pytest.mark.judges("2022-185")
def test_theorem_2_is_what_is_printed() -> None:
    """(18 sum of 1 / Delta_ij + 4m) log T + 6m, with 1 + log T where 1/t is summed (erratum C8)."""
    alpha, beta, T = [0.9, 0.6, 0.5, 0.1], [1.0, 0.7, 0.2], 10_000
    falls = [0.3, 0.5, 0.2]  # of examinations, from each position to the next
    gap = {
        (i, j): falls[j if j < i else j - 1] * abs(alpha[i] - alpha[j]) for i in range(4) for j in range(3)
    }
    total = sum(1 / gap[i, j] for i, j in gap if i != j)
    wanted = 18 * total * (1 + np.log(T)) + 4 * 3 * np.log(T) + 6 * 3
    assert theorem_2(np.array(alpha), np.array(beta), T) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.judges("2015-040")
def test_feedexp3_explores_as_t_to_the_minus_one_third() -> None:
    ranker = rankers.FeedExp3(n_items=3)
    draws, shares = 4_000, []
    for t in (10**6, 8 * 10**6):
        ranker.state.t[0] = t - 1
        explored = np.mean([ranker.rank(rng=np.random.default_rng(seed)).explored for seed in range(draws)])
        wanted = ranker.params.gamma * t ** (-1 / 3)
        assert 0.01 < wanted < 0.5
        assert abs(explored - wanted) < 4 * np.sqrt(wanted / draws)
        shares.append(explored)
    assert shares[0] / shares[1] == pytest.approx(2.0, abs=0.35)
    # Theorem 6.5 of Cesa-Bianchi and others (2006): gamma and eta from k*, the number of signals, and log N.
    p, log_n = ranker.params, np.log(6)
    assert p.gamma**3 == pytest.approx((ranker.k_star * p.n_pools) ** 2 * log_n)
    assert p.gamma * p.eta == pytest.approx(log_n)


@pytest.mark.judges("2022-216")
def test_the_bound_of_theorem_1_is_its_sum() -> None:
    # 3 / sqrt(t) summed is just below 6 sqrt(T), and what the paper's last line leaves out is 3m + 2m log T.
    for n, m, T in ((9, 2, 10_000), (30, 10, 100_000)):
        bound = FTRLPBM(n_items=n, n_positions=m).regret_bound(T)
        summed = m * np.sqrt(n) * (3 / np.sqrt(np.arange(1, T + 1))).sum()
        lower_terms = bound - summed - 3 * m - 2 * m * np.log(T)
        assert 0 <= lower_terms < 6 * m * np.sqrt(n)


@pytest.mark.judges("2015-065")
def test_grades_never_make_a_game_easier() -> None:
    names = [
        "sum_loss",
        "pairwise_loss",
        "dcg",
        "dcg@2",
        "precision@1",
        "precision@2",
        "ndcg",
        "ndcg@2",
        "err",
    ]
    harder = 0
    for m in (3, 4, 5, 6):
        plain, graded = (rates(n_items=m, names=names, grades=grades) for grades in (2, 3))
        for one, other in zip(plain, graded, strict=True):
            for binary, more in zip(one.classes, other.classes, strict=True):
                assert CLASSES.index(more) >= CLASSES.index(binary), (one.measure, m)
                harder += CLASSES.index(more) > CLASSES.index(binary)
    assert harder > 0


@pytest.mark.judges("2015-005")
@pytest.mark.parametrize("drawn", [False, True])
def test_who_comes_does_not_depend_on_what_was_shown(drawn: bool) -> None:
    matrix = np.random.default_rng(1).integers(0, 2, (40, 4))
    shown = [
        rankers.Fixed(order=[0, 1, 2, 3]),
        rankers.Fixed(order=[3, 1, 0, 2]),
        rankers.RTop1F(n_items=4, horizon=40),
    ]
    seen = []
    for ranker in shown:
        people = FixedItems(users.bernoulli([0.8, 0.6, 0.4, 0.2]) if drawn else matrix)
        theirs, mine = np.random.default_rng(5), np.random.default_rng(6)
        rows = []
        for _ in range(40):
            people.arrive(rng=theirs)
            rows.append(people.state.relevance.copy())
            ranking = ranker.rank(rng=mine)
            ranker.learn(ranking, people.respond(ranking, rng=theirs)[: ranker.feedback.length(4)])
        seen.append(rows)
    np.testing.assert_array_equal(seen[0], seen[1])
    np.testing.assert_array_equal(seen[0], seen[2])
    if not drawn:
        np.testing.assert_array_equal(seen[0], matrix)
