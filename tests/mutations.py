"""Near mistakes in rankers and bounds, each against the judges that should notice: `python -m tests.mutations`.

A judge that only tells a learner from a random order lets a doubled rate pass. So every line here changes one constant
a little (a rate doubled, a power exchanged, a term of a proof left out) in a copy of the package, and runs the tests
that judge what depends on it, as plain Python. A mutation is killed if a test fails, and has survived if all pass; the
exit code is 1 if one survives. `python -m tests.mutations exp3` runs those with "exp3" in their name.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "rankloop"
CONSTANTS = "tests/claims/test_constants.py"
EXP3 = "tests/rankers/test_ranked_exp3.py::test_a_click_on_what_was_wanted_is_an_exp3_step"
TOP = "tests/rankers/test_top_ftrl_where_users_stay.py"
PRECISION = "tests/rankers/test_precision_ftrl.py"
OWN = "tests/games/test_own_measures.py"


@dataclass(frozen=True)
class Mutation:
    """One line of one file, otherwise; and the tests that must notice."""

    name: str
    statements: str  # of the ledger, or the page that states it
    file: str
    before: str
    after: str
    judges: tuple[str, ...]

    def apply(self, package: Path) -> None:
        """Change the copy; the line must be there, once."""
        path = package / self.file
        text = path.read_text()
        if text.count(self.before) != 1:
            raise SystemExit(f"{self.name}: {self.file} has {text.count(self.before)} times {self.before!r}")
        path.write_text(text.replace(self.before, self.after))


MUTATIONS = (
    Mutation(
        "preprint: constants doubled",
        "2016-144",
        "rankers/linear.py",
        "return Schedule(float(elementary.power(horizon, -power)))",
        "return Schedule(2.0 * float(elementary.power(horizon, -power)))",
        (f"{CONSTANTS}::test_the_constants_of_the_preprint",),
    ),
    Mutation(
        "camera-ready: learning rate doubled",
        "2016-145",
        "rankers/rtopkf.py",
        "Schedule(0.01, 2 / 3)",
        "Schedule(0.02, 2 / 3)",
        (f"{CONSTANTS}::test_the_constants_of_the_camera_ready",),
    ),
    Mutation(
        "RankedExp3: weights grow three times as fast",
        "2022-198, 2022-205",
        "rankers/ranked_exp3.py",
        "exp(params.gamma / (n * chances[j]))",
        "exp(3.0 * params.gamma / (n * chances[j]))",
        (EXP3,),
    ),
    Mutation(
        "RankedExp3: weights grow half again as fast",
        "2022-198, 2022-205",
        "rankers/ranked_exp3.py",
        "exp(params.gamma / (n * chances[j]))",
        "exp(1.5 * params.gamma / (n * chances[j]))",
        (EXP3,),
    ),
    Mutation(
        "FeedExp3: explores as t^(-1/2)",
        "2015-040",
        "rankers/feedexp3.py",
        "gamma = min(1.0, params.gamma * power(float(state.t[0] + 1), -1.0 / 3.0))",
        "gamma = min(1.0, params.gamma * power(float(state.t[0] + 1), -1.0 / 2.0))",
        (f"{CONSTANTS}::test_feedexp3_explores_as_t_to_the_minus_one_third",),
    ),
    Mutation(
        "FeedExp3: explores half again as often",
        "2015-040",
        "rankers/feedexp3.py",
        "gamma=float(power(k_star * n_pools, 2 / 3)",
        "gamma=float(1.5 * power(k_star * n_pools, 2 / 3)",
        (f"{CONSTANTS}::test_feedexp3_explores_as_t_to_the_minus_one_third",),
    ),
    Mutation(
        "FTRLPBM: another learning rate",
        "2022-193, 2022-184",
        "rankers/ftrl_pbm_plan.py",
        "    state.t[0] += 1\n    t = float(state.t[0])\n",
        "    state.t[0] += 1\n    t = 2.0 * float(state.t[0])\n",
        (f"{CONSTANTS}::test_the_learning_rate_of_ftrl_pbm",),
    ),
    Mutation(
        "FTRLPBM: another learning rate where x is found in full",
        "2022-193, 2022-184",
        "rankers/ftrl_pbm.py",
        "t, solver_scratch = rounds_kept(params, state), scratch[0]",
        "t, solver_scratch = 2.0 * rounds_kept(params, state), scratch[0]",
        (f"{CONSTANTS}::test_the_learning_rate_of_ftrl_pbm",),
    ),
    Mutation(
        "FTRLPBM: the bound with 5 for 6",
        "2022-216",
        "rankers/ftrl_pbm.py",
        "6 * m * np.sqrt(float(n) * T)",
        "5 * m * np.sqrt(float(n) * T)",
        (f"{CONSTANTS}::test_the_bound_of_theorem_1_is_its_sum",),
    ),
    Mutation(
        "classify: three grades of NDCG one label earlier",
        "2015-065",
        "games/classify.py",
        "        _decide(game, m - 1, start=0, base=True)\n        return m, m\n",
        "        _decide(game, m - 1, start=0, base=True)\n        return m - 2, m - 1\n",
        (f"{CONSTANTS}::test_grades_never_make_a_game_easier",),
    ),
    Mutation(
        "classify: a measure by its name",
        "docs/howto/own-measure.md",
        "games/ranking_game.py",
        "return dataclasses.replace(measure, cutoff=None, max_grade=known.max_grade) == known",
        "return measure.family == known.family",
        (OWN,),
    ),
    Mutation(
        "classify: floats as they are",
        "docs/howto/own-measure.md",
        "games/ranking_game.py",
        "return recovered(self.scoring(tuple(order), tuple(relevance)))",
        "return Fraction(self.scoring(tuple(order), tuple(relevance)))",
        (OWN,),
    ),
    Mutation(
        "TopFTRL: leads with twice the variance",
        "docs/rankers/TopFTRL.md",
        "rankers/top_ftrl.py",
        "steady = STEADY * largest",
        "steady = 0.5 * STEADY * largest",
        (f"{TOP}::test_fact_1_by_enumeration",),
    ),
    Mutation(
        "TopFTRL: steps of two thirds of a lead",
        "docs/rankers/TopFTRL.md",
        "rankers/top_ftrl.py",
        "max(steady, SHORTEST) * largest / ahead",
        "max(steady, 0.75 * SHORTEST) * largest / ahead",
        (f"{TOP}::test_fact_1_by_enumeration",),
    ),
    Mutation(
        "TopFTRL: fewer bad rounds than proved",
        "docs/rankers/TopFTRL.md",
        "rankers/top_ftrl.py",
        "BAD = 31_100.0",
        "BAD = 20_000.0",
        (f"{TOP}::test_the_constants_follow",),
    ),
    Mutation(
        "PrecisionFTRL: a weight half again as large",
        "docs/rankers/PrecisionFTRL.md",
        "rankers/precision_ftrl.py",
        "return np.sqrt(params.n * float(t) / params.k)",
        "return 1.5 * np.sqrt(params.n * float(t) / params.k)",
        (f"{PRECISION}::test_one_step_of_learning",),
    ),
)


def survives(mutation: Mutation) -> bool:
    """Whether all judges pass on the changed copy."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "rankloop"
        shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
        mutation.apply(package)
        path = os.pathsep.join([folder, str(ROOT)])
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *mutation.judges],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": path, "NUMBA_DISABLE_JIT": "1", "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode not in (0, 1):
        raise SystemExit(
            f"{mutation.name}: the judges could not run\n{done.stdout[-2_000:]}{done.stderr[-2_000:]}"
        )
    return done.returncode == 0


def main(wanted: str = "") -> int:
    """Run all with `wanted` in their name; 1 if one survives."""
    chosen = [each for each in MUTATIONS if wanted.lower() in each.name.lower()]
    survived = []
    for mutation in chosen:
        alive = survives(mutation)
        survived += [mutation.name] if alive else []
        print(f"{'SURVIVED' if alive else 'killed':<9} {mutation.name} ({mutation.statements})", flush=True)
    print(f"{len(chosen) - len(survived)} of {len(chosen)} killed")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
