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
CONSTANTS = "tests/claims/test_constants.py"
EXP3 = "tests/rankers/test_ranked_exp3.py::test_a_click_on_what_was_wanted_is_an_exp3_step"
GAMES = "tests/claims/test_games_2015.py"
LOWER = "tests/claims/test_lower_bounds_2015.py"
DESCENT = "tests/claims/test_descent_2016.py"
ESTIMATORS = "tests/surrogates/test_estimators.py"
ANALYSIS = "tests/claims/test_ftrl_analysis_2022.py"
BOUNDS = "tests/claims/test_ftrl_bounds_2022.py"
PBM = "tests/claims/test_ftrl_pbm_2022.py"
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
    """One line of a file, or of a file in a folder, otherwise; and the tests that must notice.

    Where a test writes the statement itself, such as a bound that nothing in the package uses, its line is changed.
    """

    name: str
    statements: str  # of the ledger, or the page that states it
    file: str
    before: str
    after: str
    judges: tuple[str, ...]

    def place(self, root: Path) -> Path:
        """The file below `root` that has the line, once."""
        there = root / (self.file if self.file.startswith("tests/") else f"src/rankloop/{self.file}")
        files = [there] if self.file.endswith(".py") else there.rglob("*.py")
        texts = {path: path.read_text() for path in files}
        places = [path for path, text in texts.items() if self.before in text]
        if [texts[path].count(self.before) for path in places] != [1]:
            raise SystemExit(f"{self.name}: not once in {self.file}: {self.before!r}")
        return places[0]

    def apply(self, root: Path) -> None:
        """Change the copy."""
        path = self.place(root)
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
        "SumLoss: ranks counted from 0",
        "2015-011, 2015-026, 2015-028",
        "games/exact.py",
        "rank * r for rank, r in enumerate(shown, 1)))",
        "rank * r for rank, r in enumerate(shown, 0)))",
        (f"{GAMES}::test_tables_1_and_2",),
    ),
    Mutation(
        "the signal of the second item for that of the first",
        "2015-027, 2015-038, 2015-088",
        "games/signal_models.py",
        "return tuple(r[item] for item in order[:n])",
        "return tuple(r[item] for item in order[1 : n + 1])",
        (f"{GAMES}::test_tables_1_and_2",),
    ),
    Mutation(
        "DCG: gains 2^r for 2^r - 1",
        "2015-054",
        "kernels/measures.py",
        "return float(exp2m1(r))",
        "return float(exp2m1(r)) + 1.0",
        ("tests/rankers/test_rtop1f.py::test_grades_enter_through_the_gain_of_the_measure",),
    ),
    Mutation(
        "AUC: half again as many pairs",
        "2015-063, 2015-089",
        "games/exact.py",
        "return _wrong_pairs(shown) / pairs if pairs else Fraction(0)",
        "return _wrong_pairs(shown) * 2 / (3 * pairs) if pairs else Fraction(0)",
        (f"{GAMES}::test_lemma_11_auc_with_four_items",),
    ),
    Mutation(
        "NDCG: divided by the ideal and one",
        "2015-061",
        "games/exact.py",
        "return _dcg(top) / ideal if ideal else Fraction(1)",
        "return _dcg(top) / (1 + ideal) if ideal else Fraction(1)",
        (f"{GAMES}::test_residuals_of_lemma_11",),
    ),
    Mutation(
        "average precision: divided by the relevant items and one",
        "2015-062",
        "games/exact.py",
        "return _average_precision(top, sum(shown))",
        "return _average_precision(top, sum(shown) + 1)",
        (f"{GAMES}::test_residuals_of_lemma_11",),
    ),
    Mutation(
        "equation (8): the row of another pair",
        "2015-073",
        GAMES,
        "assert (game.difference(0, 1) * game.unit).tolist() == [0, 1, -1, 0, 0, 1, -1, 0]",
        "assert (game.difference(0, 2) * game.unit).tolist() == [0, 1, -1, 0, 0, 1, -1, 0]",
        (f"{GAMES}::test_theorem_4_local_observability_fails_at_three_items_for_the_papers_pair",),
    ),
    Mutation(
        "Corollary 5: gaps of T^(-2/5)",
        "2015-020, 2015-039, 2015-057",
        LOWER,
        "return 0.7 * T ** (-1 / 3)",
        "return 0.7 * T ** (-2 / 5)",
        (f"{LOWER}::test_gaps_of_the_cube_root_force_two_thirds_on_every_learner",),
    ),
    Mutation(
        "FTPL: perturbations as the first power of T",
        "2015-069",
        "rankers/ftpl.py",
        "reach = params.reach * np.sqrt(params.horizon if params.horizon > 0 else state.t[0] + 1)",
        "reach = params.reach * (params.horizon if params.horizon > 0 else state.t[0] + 1)",
        ("tests/rankers/test_ftpl.py::test_reach_of_the_perturbation",),
    ),
    Mutation(
        "PairwiseLoss: the offset of pairs without the items themselves",
        "2015-053",
        "kernels/measures.py",
        "return -0.5 * s * (s + 1.0), 1.0",
        "return -0.5 * s * (s - 1.0), 1.0",
        (
            "tests/measures/test_measures.py::test_sum_loss_exceeds_pairwise_loss_by_a_constant_for_binary_relevance",
        ),
    ),
    Mutation(
        "estimators of 2016: chances of a set as if drawn with replacement",
        "2016-096, 2016-122",
        "surrogates/estimators.py",
        "by_chance *= max(k - taken, 0) / (m - taken)",
        "by_chance *= max(k - taken, 0) / m",
        (f"{ESTIMATORS}::test_probabilities",),
    ),
    Mutation(
        "Algorithm 1: weights begin at 0.01",
        "2016-102",
        "rankers/linear.py",
        "        return np.zeros(n_features)\n",
        "        return np.full(n_features, 0.01)\n",
        ("tests/rankers/test_rtopkf_paper.py::test_a_run_is_algorithm_1_in_plain_python",),
    ),
    Mutation(
        "SmoothDCG: a slope without the mean gain",
        "2016-118",
        "surrogates/losses.py",
        "gradient: Floats = q * (G - (q * G).sum(axis=-1, keepdims=True)) / self.epsilon",
        "gradient: Floats = q * G / self.epsilon",
        ("tests/surrogates/test_losses.py::test_gradient_is_the_slope_of_the_value",),
    ),
    Mutation(
        "Theorem 4.1: exploration falls as T^(-1/2)",
        "2016-131",
        DESCENT,
        "assert power(-2 / 3, -1 / 3) == pytest.approx(2 / 3, abs=1e-9)",
        "assert power(-2 / 3, -1 / 2) == pytest.approx(2 / 3, abs=1e-9)",
        (f"{DESCENT}::test_theorem_4_1_adds_up",),
    ),
    Mutation(
        "Theorem 5.2: targets divided by the DCG of one relevant item more",
        "2016-137",
        "surrogates/losses.py",
        "np.divide(G, Z, out=np.zeros_like(G), where=Z > 0.0)",
        "np.divide(G, Z + 0.5, out=np.zeros_like(G), where=Z > 0.0)",
        ("tests/surrogates/test_impossibility.py::test_theorem_5_2",),
    ),
    Mutation(
        "Tsallis-INF: half again as many rounds",
        "2022-162, 2022-164",
        "rankers/ftrl_pbm_plan.py",
        "    state.t[0] += 1\n    t = float(state.t[0])\n",
        "    state.t[0] += 1\n    t = 1.5 * float(state.t[0])\n",
        (
            "tests/rankers/test_ftrl_pbm.py::test_one_position_is_tsallis_inf",
            "tests/rankers/test_ftrl_pbm.py::test_the_first_rounds_by_hand",
        ),
    ),
    Mutation(
        "Theorem 1 as a sum: without 2m log T and the sum",
        "2022-173",
        ANALYSIS,
        "theorem_1 = low + float((3 * np.sqrt(mean_x)",
        "theorem_1 = 3 * M + float((0.3 * np.sqrt(mean_x)",
        (f"{ANALYSIS}::test_stability_and_penalty_add_up_and_keep_their_bounds",),
    ),
    Mutation(
        "OSMD: a horizon ten thousand times too long",
        "2022-175",
        BOUNDS,
        "assert osmd(world, T, horizon=T) < bound(T)",
        "assert osmd(world, T, horizon=10_000 * T) < bound(T)",
        (f"{BOUNDS}::test_osmd_with_the_0_potential_needs_the_horizon",),
    ),
    Mutation(
        "Lemma 2: 2/3 for 1/2",
        "2022-183, 2022-208",
        PBM,
        "least = min(least, lost - 0.5 * float(Delta[np.arange(m), shown].sum()))",
        "least = min(least, lost - 2 / 3 * float(Delta[np.arange(m), shown].sum()))",
        (f"{PBM}::test_lemma_2_on_random_instances",),
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
        "feedback/anytime.py",
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


# Statements whose judge has a near mistake in itself, which must fail beside the statement.
INSIDE = {
    "2015-022": "the exponent of full information, 1/2",
    "2015-075": "no perturbation",
    "2016-124": "half of the right side",
    "2016-126": "scores ten times as wide",
    "2016-127": "the mean norm of a row",
    "2022-161": "gaps without a last examination of 0",
    "2022-171": "one list fewer",
    "2022-172": "matchings in proportion to n log n",
    "2022-209": "1 / (2 eta)",
    "2022-212": "a third of the bound",
    "2022-214": "the bound without its sum",
    "2022-217": "2 Delta^2, and half the root",
}


def passes(judges: tuple[str, ...], mutation: Mutation | None = None) -> bool:
    """Whether all judges pass on a copy, which is changed if there is a mutation."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "rankloop"
        root.mkdir()
        for entry in ROOT.iterdir():
            if entry.name in ("src", "tests"):
                shutil.copytree(
                    entry, root / entry.name, ignore=shutil.ignore_patterns("__pycache__", "*.so")
                )
            elif not entry.name.startswith("."):
                (root / entry.name).symlink_to(entry)
        if mutation is not None:
            mutation.apply(root)
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *judges],
            cwd=root,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)]),
                "NUMBA_DISABLE_JIT": "1",
                "PYTHONDONTWRITEBYTECODE": "1",
            },
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
