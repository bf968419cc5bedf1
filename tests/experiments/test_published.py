"""Claims that only full versions judge which the full run has no rows of yet: they hold of the figures in the docs.

What an earlier run found is in docs/experiments.md as means and standard errors; two runs at one standard error below
and above a mean have just these. So every claim is judged here on the figures that are published, and again under its
mutation. What the full run has rows of is judged in test_full_run.py.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
import pytest

from rankloop import experiments
from rankloop.experiments.mutations import survivors
from rankloop.experiments.pbm_2022.estimators import variances
from rankloop.experiments.pbm_2022.setting import KINDS, SOURCES, STOCHASTIC
from rankloop.experiments.top_2016 import fig1

T = 1_000_000


def test_estimators() -> None:
    # loss, reduced variance, mean; where users stay the same also the bare reward
    found = {
        ("gap-0.03", KINDS[0]): ((12_184, 238), (9_456, 149), (8_440, 140), (94_460, 16_541)),
        ("gap-0.01", KINDS[0]): ((10_695, 216), (9_306, 119), (8_685, 94), (59_044, 4_750)),
        ("yandex", KINDS[0]): ((9_459, 321), (6_365, 158), (5_216, 27), (5_226, 20)),
        ("gap-0.03", KINDS[1]): ((4_948, 571), (4_684, 512), (4_182, 357)),
        ("gap-0.03", KINDS[2]): ((8_663, 827), (8_057, 587), (7_505, 651)),
        ("gap-0.01", KINDS[1]): ((6_486, 191), (5_679, 217), (5_219, 145)),
        ("gap-0.01", KINDS[2]): ((9_384, 418), (8_307, 240), (7_849, 192)),
        ("yandex", KINDS[1]): ((-14_352, 4_385), (-2_607, 2_295), (-5_778, 2_046)),
        ("yandex", KINDS[2]): ((11_103, 453), (7_531, 284), (6_087, 26)),
    }
    names = ("loss", "reduced-variance", "mean", "bare reward")
    rows = [
        {"source": source, "kind": kind, "estimator": name, "seed": seed, "round": T, "regret": regret}
        | {"variance": variances(source, 0.1)[name]}
        for (source, kind), of in found.items()
        for name, level in zip(names, of, strict=False)
        for seed, regret in runs(*level)
    ]
    assert {row["source"] for row in rows if row["kind"] == STOCHASTIC} == set(SOURCES)
    judge("pbm-2022-estimators", pl.DataFrame(rows))


def test_solver() -> None:
    regrets = {
        0: (3_599, 119),
        10: (15_540, 122),
        30: (7_058, 56),
        100: (4_659, 123),
        300: (3_917, 262),
        1_000: (3_707, 261),
    }
    powers = {0: 0.66, 10: 0.82}
    excess = [5_700.0, 3_700.0, 670.0, 110.0, 35.0, 15_000.0, 1_500.0, 480.0, 220.0, 30.0]
    rows = [
        {"K": K, "seed": seed, "round": t, "regret": end * (t / 100_000) ** powers.get(K, 0.66)}
        | {"excess": None if K else excess}
        for K, level in regrets.items()
        for seed, end in runs(*level)
        for t in (10_000, 30_000, 100_000)
    ]
    judge("pbm-2022-solver", pl.DataFrame(rows, schema_overrides={"excess": pl.List(pl.Float64)}))


def test_figure_1_of_2016() -> None:
    sets = ("mq2008", "yahoo", "mslr", "synthetic")
    levels = {
        (fig1.LISTNET, fig1.PAPERS): (0.765, 0.752, 0.379, 0.903),
        ("KL", fig1.PAPERS): (0.754, 0.736, 0.354, 0.732),
        ("Squared", fig1.PAPERS): (0.750, 0.737, 0.363, 0.737),
        ("RankSVM", fig1.PAPERS): (0.745, 0.732, 0.295, 0.746),
        ("RankSVM", fig1.TENTH): (0.753, 0.729, 0.350, 0.709),
        (fig1.SMOOTH, fig1.PAPERS): (0.710, 0.612, 0.299, 0.554),
        (fig1.SMOOTH, "epsilon 0.3"): (0.753, 0.732, 0.353, 0.740),
        (fig1.RANDOM, fig1.PAPERS): (0.616, 0.609, 0.209, 0.378),
        (fig1.LISTNET, fig1.OURS): (0.786, 0.777, 0.460, 0.908),
        ("KL", fig1.OURS): (0.767, 0.756, 0.393, 0.822),
        ("Squared", fig1.OURS): (0.762, 0.756, 0.412, 0.854),
        ("RankSVM", fig1.OURS): (0.750, 0.756, 0.294, 0.799),
    }
    held_out = {
        (fig1.RANDOM, fig1.PAPERS): (0.616, 0.609, 0.208, 0.378),
        (fig1.LISTNET, fig1.OURS): (0.783, 0.763, 0.462, 0.906),
        ("KL", fig1.OURS): (0.777, 0.750, 0.430, 0.856),
        ("Squared", fig1.OURS): (0.773, 0.755, 0.425, 0.877),
    }
    # One run above its mean where the other is below it: their differences are not certain.
    error = dict.fromkeys(fig1.LEARNERS, 0.0015) | {"Squared": -0.0015}
    rows = []
    for (learner, constants), of in levels.items():
        new = held_out.get((learner, constants), of)
        for name, level, on_new in zip(sets, of, new, strict=True):
            for seed, value in runs(level, error[learner]):
                told = {"set": name, "learner": learner, "constants": constants, "seed": seed}
                rows += [told | {"round": t, "average": value, "held out": on_new} for t in (1_000, 200_000)]
    judge("top-2016-fig1", pl.DataFrame(rows))


def runs(mean: float, error: float) -> Iterator[tuple[int, float]]:
    """Two runs, by seed, with this mean and this standard error."""
    yield 1, mean - error
    yield 2, mean + error


def judge(name: str, rows: pl.DataFrame) -> None:
    experiment = experiments.get(name)
    claims = list(experiment.claims(rows, quick=False))
    assert len({claim.name for claim in claims}) == len(claims)
    assert not [f"{claim.name}: {claim.measured}" for claim in claims if not claim.holds]
    assert not survivors(experiment, rows, quick=False)


@pytest.mark.parametrize(("mean", "error"), [(2.0, 0.5), (-14_352, 4_385)])
def test_two_runs_have_the_mean_and_the_error(mean: float, error: float) -> None:
    values = np.array([value for _, value in runs(mean, error)])
    assert values.mean() == pytest.approx(mean)
    assert values.std(ddof=1) / np.sqrt(2) == pytest.approx(error)
