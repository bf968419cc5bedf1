"""Planted faults, each against the judges that should notice: `python -m tests.mutations`.

A judge that only tells a learner from a random order lets a doubled rate pass. So every line here changes one constant
a little (a rate doubled, a power exchanged, a term of a proof or a check left out) in a copy of the package, and runs
the tests that judge what depends on it, as plain Python. There are some for rankers and bounds, for what kernels share,
for statistics, and for the service. A mutation is killed if a test fails, and has survived if all pass; the
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
RANDOM = "tests/kernels/test_random.py"
OFF_POLICY = "tests/logs/test_off_policy.py"
CONFIDENCE = "tests/serving/test_confidence.py"
SERVED = "tests/serving/test_served_ranker.py"
RAILS = "tests/serving/log/test_guard_rails_exact.py"


@dataclass(frozen=True)
class Mutation:
    """One line of a file, or of a file in a folder, otherwise; and the tests that must notice."""

    name: str
    statements: str  # of the ledger, or the page that states it
    file: str
    before: str
    after: str
    judges: tuple[str, ...]

    def place(self, package: Path) -> Path:
        """The file that has the line, once."""
        files = [package / self.file] if self.file.endswith(".py") else (package / self.file).rglob("*.py")
        texts = {path: path.read_text() for path in files}
        places = [path for path, text in texts.items() if self.before in text]
        if [texts[path].count(self.before) for path in places] != [1]:
            raise SystemExit(f"{self.name}: not once in {self.file}: {self.before!r}")
        return places[0]

    def apply(self, package: Path) -> None:
        """Change the copy."""
        path = self.place(package)
        path.write_text(path.read_text().replace(self.before, self.after))


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
    Mutation(
        "RTop1F: half again as many blocks",
        "2015-042, 2015-078",
        "rankers/rtop1f.py",
        "power(n_items, 1 / 3) * power(T / n_slots, 2 / 3)",
        "1.5 * power(n_items, 1 / 3) * power(T / n_slots, 2 / 3)",
        ("tests/rankers/test_rtop1f.py::test_number_of_blocks_is_the_papers_rounded_and_capped",),
    ),
    Mutation(
        "RTop1F: blocks as the square root of T",
        "2015-042, 2015-059",
        "rankers/rtop1f.py",
        "power(T / n_slots, 2 / 3)",
        "power(T / n_slots, 1 / 2)",
        ("tests/rankers/test_rtop1f.py::test_number_of_blocks_of_the_papers_simulation",),
    ),
    Mutation(
        "RTop1F: perturbations reach half again as far",
        "2015-043, 2015-056",
        "rankers/rtop1f.py",
        "reaches = [gain * np.sqrt(m * K) for K in counts]",
        "reaches = [1.5 * gain * np.sqrt(m * K) for K in counts]",
        ("tests/rankers/test_rtop1f.py::test_reach_of_the_perturbation",),
    ),
    Mutation(
        "RTop1F: the bound without the cost of exploring",
        "2015-050, 2015-055, 2015-058, 2015-079",
        "rankers/rtop1f.py",
        "total += R * self.n_slots * int(K) + float(T_e) * R * A / float(one_by_epsilon)",
        "total += float(T_e) * R * A / float(one_by_epsilon)",
        ("tests/rankers/test_rtop1f.py::test_regret_bound_of_theorems_7_9_and_10",),
    ),
    Mutation(
        "FTPL: the bound with 1.5 for 2",
        "2015-074, 2015-076",
        "rankers/ftpl.py",
        "return float(D * reach + R * A * self.horizon / reach)",
        "return float(0.75 * (D * reach + R * A * self.horizon / reach))",
        ("tests/rankers/test_ftpl.py::test_regret_bound_of_appendix_13",),
    ),
    Mutation(
        "DCG: ranks counted one further",
        "2015-013, 2015-017",
        "kernels/discounts.py",
        "log2(rank + 1.0) for rank in range(1, n_items + 1)",
        "log2(rank + 2.0) for rank in range(1, n_items + 1)",
        ("tests/measures/test_measures.py::test_dcg_and_ndcg_of_scikit_learn",),
    ),
    Mutation(
        "the simulation of 2015: noise half again as large",
        "2015-066",
        "environments/users.py",
        "flip = 0.5 * erfc(0.5 / noise / sqrt(2))",
        "flip = 0.5 * erfc(0.5 / (1.5 * noise) / sqrt(2))",
        ("tests/environments/test_users.py::test_noisy_halves_come_as_the_paper_made_them",),
    ),
    Mutation(
        "estimators of 2016: half again as much exploration",
        "2016-122, 2016-123",
        "surrogates/estimators.py",
        "return (1.0 - gamma) * (set(wanted) <= set(best[:k])) + gamma * by_chance",
        "return (1.0 - gamma) * (set(wanted) <= set(best[:k])) + 1.5 * gamma * by_chance",
        ("tests/surrogates/test_estimators.py",),
    ),
    Mutation(
        "RTopKF: exploration falls as t^(-1/2)",
        "2016-130, 2016-145",
        "rankers/rtopkf_paper.py",
        "return scale * power(float(t + 1), -exponent) if exponent > 0.0 else scale",
        "return scale * power(float(t + 1), -1.5 * exponent) if exponent > 0.0 else scale",
        ("tests/rankers/test_linear.py::test_the_kernels_keep_the_schedules",),
    ),
    Mutation(
        "Theorem 3: the better list half again as good",
        "2022-188, 2022-189",
        "environments/click_worlds.py",
        "self.delta = sqrt((n - m + 1) / self.horizon) / 8",
        "self.delta = 1.5 * sqrt((n - m + 1) / self.horizon) / 8",
        ("tests/environments/test_click_worlds.py::test_the_world_of_theorem_3",),
    ),
    Mutation(
        "Theorem 2: 12 for 18",
        "2022-185",
        "experiments/pbm_2022/bounds.py",
        "return float(18 * total * (1 + np.log(T))",
        "return float(12 * total * (1 + np.log(T))",
        ("tests/claims/test_constants.py::test_theorem_2_is_what_is_printed",),
    ),
    Mutation(
        "Definition 1: the gap of the next position",
        "2022-182, 2022-183, 2022-184",
        "experiments/pbm_2022/bounds.py",
        "falls[np.where(j < i, j, j - 1)]",
        "falls[np.where(j < i, j, j)]",
        (f"{CONSTANTS}::test_theorem_2_is_what_is_printed",),
    ),
    Mutation(
        "FTRLPBM: losses shifted by a tenth",
        "2022-166",
        "rankers/ftrl_pbm_plan.py",
        "(1.0 - clicks[j]) / propensities[j]",
        "(1.1 - clicks[j]) / propensities[j]",
        ("tests/rankers/test_ftrl_pbm.py::test_the_first_rounds_by_hand",),
    ),
    Mutation(
        "TopRank: half of the confidence",
        "2022-194",
        "rankers/top_rank.py",
        "square = S * S / (2.0 * N)",
        "square = S * S / (1.5 * N)",
        (
            "tests/rankers/test_top_rank.py::test_the_edge_comes_when_the_lead_reaches_its_bound_and_not_before",
        ),
    ),
    Mutation(
        "MW: steps half again as large",
        "2022-199",
        "rankers/mw.py",
        "eta = math.sqrt((1 - self.gamma) * log(n) / (n * T))",
        "eta = 1.5 * math.sqrt((1 - self.gamma) * log(n) / (n * T))",
        ("tests/rankers/test_mw.py::test_constants_come_from_the_horizon_and_bad_arguments_are_named",),
    ),
    Mutation(
        "PMED: lists forced half again as often",
        "2022-197",
        "rankers/pmed.py",
        "least, count = params.alpha * np.sqrt(log_t), 0",
        "least, count = 1.5 * params.alpha * np.sqrt(log_t), 0",
        ("tests/rankers/test_pmed.py::test_lists_seen_too_seldom_are_forced",),
    ),
    Mutation(
        "the worlds of 2022: examinations 1, 2/3, ...",
        "2022-191",
        "environments/named.py",
        "examination=1 / np.arange(1, 6))",
        "examination=1.5 / np.arange(1.5, 6.5))",
        ("tests/environments/test_named.py::test_the_best_list_of_the_paper",),
    ),
    Mutation(
        "the worlds of 2022: phases of 50,000 rounds",
        "2022-192",
        "environments/click_worlds.py",
        "def reversing(cls, world: ClickMatrix, *, phase: int = 100_000) -> Self:",
        "def reversing(cls, world: ClickMatrix, *, phase: int = 50_000) -> Self:",
        ("tests/environments/test_named.py::test_the_periodic_worlds_are_those_of_the_paper",),
    ),
    Mutation(
        "kernels: an order that never stays as it is",
        "kernels/random",
        "kernels/random.py",
        "    for i in range(m):\n        j = below(key, first + i, i + 1)\n",
        "    for i in range(m):\n        j = below(key, first + i, max(i, 1))\n",
        (f"{RANDOM}::test_shuffle_gives_every_order_of_four_equally_often",),
    ),
    Mutation(
        "kernels: 52 bits for 53",
        "kernels/random",
        "kernels/random.py",
        "float(word(key, i) >> np.uint64(11)) * _TO_UNIT",
        "float(word(key, i) >> np.uint64(12)) * 2.0 * _TO_UNIT",
        (f"{RANDOM}::test_uniform_is_the_upper_53_bits",),
    ),
    Mutation(
        "kernels: a coefficient of exp off in its tenth digit",
        "kernels/elementary",
        "kernels/elementary.py",
        "0.0013888888888886552",
        "0.0013888888886886552",
        ("tests/kernels/test_elementary.py::test_errors_are_below_one_unit_in_the_last_place",),
    ),
    Mutation(
        "kernels: lanes added one after the other",
        "kernels/vectors",
        "kernels/vectors.py",
        "        lanes = lanes[: len(lanes) // 2] + lanes[len(lanes) // 2 :]\n",
        "        lanes = lanes[::2] + lanes[1::2]\n",
        ("tests/kernels/test_vectors.py::test_the_twins_add_in_lanes",),
    ),
    Mutation(
        "statistics: Holm's rule with one test fewer",
        "docs/howto/compare.md",
        "simulation/compare.py",
        "(len(known) - step) * p",
        "max(1, len(known) - step - 1) * p",
        ("tests/simulation/test_compare.py::test_holms_rule",),
    ),
    Mutation(
        "statistics: an interval of one side for one of two",
        "docs/howto/evaluate-a-log.md",
        "logs/off_policy.py",
        "half = float(ndtri(0.5 + confidence / 2)) * error + bias",
        "half = float(ndtri(confidence)) * error + bias",
        (OFF_POLICY,),
    ),
    Mutation(
        "statistics: a switch that keeps quiet about its bias",
        "docs/howto/evaluate-a-log.md",
        "logs/off_policy.py",
        "half = float(ndtri(0.5 + confidence / 2)) * error + bias",
        "half = float(ndtri(0.5 + confidence / 2)) * error",
        (f"{OFF_POLICY}::test_switch_clips_what_is_rare_and_its_interval_has_the_bias",),
    ),
    Mutation(
        "statistics: one bet for thirty",
        "serving/confidence",
        "serving/confidence.py",
        "wanted = math.log(len(_LAMBDAS) / error)",
        "wanted = math.log(1 / error)",
        (f"{CONFIDENCE}::test_the_reach_is_where_the_mixture_is_as_large_as_the_error_allows",),
    ),
    Mutation(
        "service: any number is a click",
        "docs/howto/serve.md",
        "serving",
        'if kind == "clicks" and not ((values == 0.0) | (values == 1.0)).all():',
        'if kind == "clicks" and not (values >= 0.0).all():',
        (f"{SERVED}::test_clicks_that_are_neither_0_nor_1_are_refused_and_use_nothing_up",),
    ),
    Mutation(
        "service: who held a lease goes on writing",
        "docs/howto/replicas.md",
        "serving",
        "if not found or found[0][0] != epoch:",
        "if not found or found[0][0] < epoch:",
        ("tests/serving/stores/test_stores.py::test_store_keeps_the_contract[sqlite]",),
    ),
    Mutation(
        "service: an answer before the disk has it",
        "docs/howto/serve.md",
        "serving",
        "PRAGMA synchronous = FULL",
        "PRAGMA synchronous = NORMAL",
        ("tests/serving/faults/test_power_loss.py",),
    ),
    Mutation(
        "service: a batch costs as much as one list",
        "docs/howto/operate.md",
        "serving",
        "self._guard.charge(caller, len(body) - 1)",
        "self._guard.charge(caller, 0)",
        ("tests/serving/test_scopes.py::test_a_batch_counts_its_lists_against_the_rate",),
    ),
    Mutation(
        "service: the share that explores is the one that does not",
        "docs/howto/guard-rails.md",
        "serving",
        'coin(key, b"exploration") >= cap',
        'coin(key, b"exploration") >= 1.0 - cap',
        (RAILS,),
    ),
)


def passes(judges: tuple[str, ...], mutation: Mutation | None = None) -> bool:
    """Whether all judges pass on a copy, which is changed if there is a mutation."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "rankloop"
        shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
        if mutation is not None:
            mutation.apply(package)
        path = os.pathsep.join([folder, str(ROOT)])
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *judges],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": path, "NUMBA_DISABLE_JIT": "1", "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode not in (0, 1):
        raise SystemExit(f"the judges could not run\n{done.stdout[-2_000:]}{done.stderr[-2_000:]}")
    return done.returncode == 0


def main(wanted: str = "") -> int:
    """Run all with `wanted` in their name; 1 if one survives, or if a judge fails without any."""
    chosen = [each for each in MUTATIONS if wanted.lower() in each.name.lower()]
    if not passes(tuple(dict.fromkeys(judge for each in chosen for judge in each.judges))):
        print("a judge fails although nothing was changed")
        return 1
    survived = []
    for mutation in chosen:
        alive = passes(mutation.judges, mutation)
        survived += [mutation.name] if alive else []
        print(f"{'SURVIVED' if alive else 'killed':<9} {mutation.name} ({mutation.statements})", flush=True)
    print(f"{len(chosen) - len(survived)} of {len(chosen)} killed")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
