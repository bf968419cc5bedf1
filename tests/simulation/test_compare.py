"""Comparisons: the runs that play would give, pairs on common seeds, tables, figures, files and words for mistakes."""

from __future__ import annotations

import functools
import itertools
import math
import sys
import types
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from matplotlib.text import Text
from scipy import stats

from rankloop import environments, rankers, simulation
from rankloop.extras import MissingExtra
from rankloop.simulation import Comparison
from rankloop.simulation.compare import holm, mean_interval, paired_t, sign_flips

BY_CHANCE = rankers.Uniform(n_items=10, n_positions=5)
NASTY = "<b>&|_\\ world"


def _ftrl(world: Any) -> rankers.FTRLPBM:
    return rankers.FTRLPBM(n_items=world.n_items, n_positions=world.n_positions)


def _gap() -> environments.PositionBased:
    world = environments.named("gap-0.03")
    assert isinstance(world, environments.PositionBased)
    return world


@pytest.fixture(scope="module")
def found() -> Comparison:
    best = rankers.Fixed(order=_gap().best().items, n_items=10)
    return simulation.compare(
        {"random": BY_CHANCE, "FTRL": _ftrl, "best": lambda: best.clone()},
        {"gap": _gap, NASTY: environments.named("yandex")},
        rounds=1_500,
        seeds=[3, 5, 8, 1],
        points=30,
    )


def test_every_run_is_the_one_that_play_gives(found: Comparison) -> None:
    for seed, trace in zip((3, 5, 8, 1), found.traces["gap", "FTRL"], strict=True):
        alone = simulation.play(_ftrl(_gap()), _gap(), rounds=1_500, seed=seed, points=30)
        assert trace.seed == seed
        assert np.array_equal(trace.regret, alone.regret)
        assert np.array_equal(trace.value, alone.value)
    assert found.seeds == [3, 5, 8, 1]
    assert found.rounds.tolist() == list(range(50, 1_501, 50))


def test_other_executors_give_the_same_runs(found: Comparison) -> None:
    with ThreadPoolExecutor(2) as pool:
        elsewhere = simulation.compare(
            {"random": BY_CHANCE, "FTRL": _ftrl},
            {"gap": _gap},
            rounds=1_500,
            seeds=[3, 5],
            points=30,
            executor=pool,
        )
    for name in ("random", "FTRL"):
        assert np.array_equal(elsewhere.values("gap", name), found.values("gap", name)[:2])


def test_a_number_of_seeds_counts_from_nought() -> None:
    few = simulation.compare({"random": BY_CHANCE}, {"gap": _gap}, rounds=20, seeds=3)
    assert few.seeds == [0, 1, 2]


def test_an_instance_is_copied_with_its_state_and_stays_as_it_is() -> None:
    learned = _ftrl(_gap())
    simulation.play(learned, _gap(), rounds=3_000, seed=1)
    before = learned.state_arrays()
    both = simulation.compare(
        {"learned": learned, "fresh": learned.clone()}, {"gap": _gap()}, rounds=500, seeds=3, points=5
    )
    assert all(np.array_equal(value, before[name]) for name, value in learned.state_arrays().items())
    alone = learned.clone()
    alone.load(learned.save())
    wanted = simulation.play(alone, _gap(), rounds=500, seed=2, points=5)
    assert np.array_equal(both.traces["gap", "learned"][2].total, wanted.total)
    assert both.values("gap", "learned")[:, -1].mean() < both.values("gap", "fresh")[:, -1].mean()


def test_an_environment_begins_with_its_first_user() -> None:
    users = environments.FixedItems(np.eye(4)[[0, 1, 2, 3, 0, 1]], measure="dcg")
    simulation.play(rankers.Uniform(n_items=4), users, rounds=4, seed=1)
    simulation.compare({"random": rankers.Uniform(n_items=4)}, {"six": users}, rounds=6, seeds=2)


def test_the_tidy_frame(found: Comparison) -> None:
    frame = found.to_polars()
    assert frame.columns == [
        "world", "ranker", "seed", "round", "value", "mean_value", "total", "regret", "explored",
    ]  # fmt: skip
    assert len(frame) == 2 * 3 * 4 * 30
    row = frame.filter(world="gap", ranker="FTRL", seed=8, round=1_500).row(0, named=True)
    trace = found.traces["gap", "FTRL"][2]
    assert row["regret"] == trace.total_regret
    assert row["mean_value"] == trace.mean_value


def test_means_and_intervals(found: Comparison) -> None:
    row = found.summary("mean_value").filter(world=NASTY, ranker="FTRL", round=750).row(0, named=True)
    ends = found.to_polars().filter(world=NASTY, ranker="FTRL", round=750)["mean_value"].to_numpy()
    wanted = stats.t.interval(0.95, 3, loc=ends.mean(), scale=stats.sem(ends))
    assert row["runs"] == 4
    assert (row["mean"], row["low"], row["high"]) == pytest.approx((ends.mean(), *wanted))


def test_differences_are_paired_by_seed(found: Comparison) -> None:
    frame = found.differences()
    assert len(frame) == 2 * 3
    row = frame.filter(world="gap", ranker="random", other="FTRL").row(0, named=True)
    first, second = (found.values("gap", name)[:, -1] for name in ("random", "FTRL"))
    wanted = stats.ttest_rel(first, second)
    assert row["difference"] == pytest.approx((first - second).mean())
    assert row["p"] == pytest.approx(wanted.pvalue)
    assert (row["low"], row["high"]) == pytest.approx(tuple(wanted.confidence_interval(0.95)))
    assert row["p_holm"] >= row["p"]
    assert frame.filter(world=NASTY, other="best", ranker="random")["better"].item() == "best"


def test_a_larger_value_is_better_and_a_larger_regret_is_worse(found: Comparison) -> None:
    for measure, sign in (("regret", 1), ("mean_value", -1)):
        row = found.differences(measure).filter(world=NASTY, ranker="random", other="FTRL").row(0, named=True)
        assert np.sign(row["difference"]) == sign
        assert row["better"] == "FTRL"


def test_a_smaller_loss_is_better() -> None:
    users = environments.FixedItems(environments.users.bernoulli([0.1, 0.9, 0.5]), measure="sum_loss")
    best = rankers.Fixed(order=[1, 2, 0], n_items=3)
    lost = simulation.compare(
        {"random": rankers.Uniform(n_items=3), "best": best}, {"users": users}, rounds=300, seeds=4
    )
    for measure in ("regret", "mean_value"):
        row = lost.differences(measure).row(0, named=True)
        assert row["difference"] > 0
        assert row["better"] == "best"
    assert "**" in lost.table("mean_value").splitlines()[3]


def test_fewer_pairs_are_corrected_less(found: Comparison) -> None:
    few, many = found.differences(against="FTRL"), found.differences()
    assert few["ranker"].to_list() == ["random", "best"] * 2
    assert set(few["other"]) == {"FTRL"}
    pair = {"world": "gap", "ranker": "random"}
    assert few.filter(**pair)["p_holm"].item() <= many.filter(**pair, other="FTRL")["p_holm"].item()


def test_the_permutation_test_and_an_earlier_round(found: Comparison) -> None:
    frame = found.differences(test="permutation", at=799)
    gaps = found.values("gap", "random")[:, 14] - found.values("gap", "FTRL")[:, 14]
    row = frame.filter(world="gap", ranker="random", other="FTRL").row(0, named=True)
    assert row["difference"] == pytest.approx(gaps.mean())
    assert row["p"] in {k / 16 for k in range(2, 17)}


def test_the_markdown_table(found: Comparison) -> None:
    head, rule, *rows = found.table().split("\n\n")[0].splitlines()
    assert "\\<b>&\\|\\_\\\\ world" in head
    assert set(rule) == set("|-: ")
    assert len({len(line) for line in (head, rule, *rows)}) == 1
    assert [row.count("**") for row in rows] == [0, 0, 4]
    assert "-0" not in rows[2]
    assert str(found) == found.table()
    assert "4 seeds" in found.table()


def test_what_is_not_significantly_worse_is_marked() -> None:
    twins = simulation.compare(
        {"one": BY_CHANCE, "two": BY_CHANCE}, {"gap": _gap}, rounds=50, seeds=3, measure="value"
    )
    assert "≈" in twins.table().splitlines()[3]
    assert twins.differences()["p"].to_list() == [1.0]


def test_the_latex_table(found: Comparison) -> None:
    text = found.table(form="latex")
    assert r"\textless" not in text
    assert r"\&|\_\textbackslash{} world" in text
    assert text.count(r" \\") == 4
    assert r"\textbf{" in text
    assert "95\\% interval" in text.splitlines()[0]


class _Read(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_what_a_notebook_shows(found: Comparison) -> None:
    reader = _Read()
    reader.feed(found._repr_html_())
    assert NASTY in reader.text  # as text, not as tags
    assert "3 rankers in 2 worlds: 1,500 rounds, 4 seeds" in reader.text
    assert reader.tags.count("td") == 6
    assert repr(found) == "<Comparison of 3 rankers in 2 worlds: 1,500 rounds, 4 seeds, regret>"


def test_one_seed_is_said_in_words() -> None:
    alone = simulation.compare({"random": BY_CHANCE, "FTRL": _ftrl}, {"gap": _gap}, rounds=100, seeds=1)
    assert "One seed: no intervals and no test." in alone.table()
    assert "±" not in alone.table()
    assert "≈" not in alone.table()
    assert alone.summary()["low"].null_count() == 2 * 100
    row = alone.differences().row(0, named=True)
    assert [row[name] for name in ("low", "high", "p", "p_holm")] == [None] * 4
    assert row["better"] == ""
    assert any("One seed" in text.get_text() for text in alone.plot().texts)
    assert "1 seed," in repr(alone)


def test_one_ranker_is_no_pair(tmp_path: Path) -> None:
    alone = simulation.compare({"random": BY_CHANCE}, {"gap": _gap}, rounds=20, seeds=2)
    assert len(alone.differences()) == 0
    assert "Differences" not in alone.save(tmp_path).read_text()


def test_a_panel_for_each_world_and_a_line_for_each_ranker(found: Comparison) -> None:
    figure = found.plot()
    assert len(figure.axes) == 2
    for axes in figure.axes:
        assert [line.get_label() for line in axes.get_lines()] == ["random", "FTRL", "best"]
        assert len(axes.collections) == 3  # bands
        assert axes.get_xscale() == "log"
        mean = found.values("gap", "random").mean(axis=0)
    assert figure.axes[0].get_lines()[0].get_ydata()[-1] == mean[-1]
    assert figure.axes[0].get_title(loc="left").splitlines()[0] == "gap"
    plain = found.plot("mean_value", log=False, titles=False, columns=1)
    assert {axes.get_xscale() for axes in plain.axes} == {"linear"}
    assert not [text for text in plain.texts if text.get_gid() in {"title", "caption"}]
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]


def test_a_folder_with_everything(found: Comparison, tmp_path: Path) -> None:
    page = found.save(tmp_path / "new" / "folder")
    names = {file.name for file in page.parent.iterdir()}
    parquet = {f"{name}.parquet" for name in ("runs", "summary", "differences")}
    assert names == {"report.html", "comparison.png", "comparison.svg", "comparison.pdf"} | parquet
    text = page.read_text()
    assert "<b>&|" not in text
    assert "http" not in text.replace("http-equiv", "")
    assert "FTRLPBM(n_items=10, n_positions=5)" in text
    read = Comparison.load(page.parent)
    assert read.table() == found.table()
    assert read.to_polars().equals(found.to_polars())
    assert read.rankers == found.rankers
    assert read.traces["gap", "FTRL"][1].provenance["versions"]["numpy"] == np.__version__


def test_a_folder_that_holds_no_comparison(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no saved comparison"):
        Comparison.load(tmp_path)
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "runs.parquet")
    with pytest.raises(ValueError, match="a comparison that rankloop saved"):
        Comparison.load(tmp_path)
    (tmp_path / "file").write_text("")
    alone = simulation.compare({"random": BY_CHANCE}, {"gap": _gap}, rounds=5, seeds=1)
    with pytest.raises(ValueError, match="folder must be a folder"):
        alone.save(tmp_path / "file")


def test_a_world_that_does_not_know_the_regret() -> None:
    users = environments.FixedItems(environments.users.bernoulli(np.linspace(0.1, 0.9, 10)), measure="err")
    ranker = {"random": rankers.Uniform(n_items=10)}
    assert simulation.compare(ranker, {"users": users}, rounds=5, seeds=2).measure == "mean_value"
    asked = simulation.compare(ranker, {"users": users}, rounds=5, seeds=2, measure="regret")
    with pytest.raises(ValueError, match="regret is not known in world 'users'"):
        asked.table()
    assert "regret is not known" in asked._repr_html_()


MISTAKES = [
    ({"rankers": {}}, "rankers must name at least one, got none"),
    ({"worlds": {}}, "worlds must name at least one, got none"),
    ({"rankers": [BY_CHANCE]}, "rankers must be a mapping such as"),
    ({"rankers": {"": BY_CHANCE}}, "rankers must have names that are not empty, got ''"),
    ({"rankers": {1: BY_CHANCE}}, "rankers must have names that are not empty, got 1"),
    ({"rankers": {"a b": BY_CHANCE, "a  b": BY_CHANCE}}, "two names that look the same: 'a b' and 'a  b'"),
    ({"rankers": {"r": "FTRLPBM"}}, r"rankers\['r'\] must be a ranker or a function that makes one, got str"),
    ({"worlds": {"w": 3}}, r"worlds\['w'\] must be an environment or a function that makes one, got int"),
    ({"rankers": {"r": _gap}}, r"rankers\['r'\] must make a ranker, made PositionBased"),
    ({"worlds": {"w": lambda: BY_CHANCE}}, r"worlds\['w'\] must make an environment, made Uniform"),
    (
        {"rankers": {"small": rankers.Uniform(n_items=3)}},
        "ranker 'small' does not fit world 'gap': ranker shows 3 positions",
    ),
    ({"rankers": {"same": lambda: BY_CHANCE}, "seeds": 2}, "every run needs its own ranker"),
    ({"rounds": 0}, "rounds must be"),
    ({"seeds": 0}, "seeds must be a whole number of at least 1, got 0"),
    ({"seeds": []}, "seeds must be a number of runs or at least one seed, got none"),
    ({"seeds": [1, 2, 1]}, "seeds must differ, got 1 more than once"),
    ({"seeds": [1, -2]}, r"seeds\[1\] must be a whole number"),
    ({"seeds": "12"}, "seeds must be a whole number"),
    ({"measure": "ndcg"}, "measure must be one of 'regret', 'value', 'mean_value', got 'ndcg'"),
    ({"level": 1.0}, "level must be"),
    ({"points": 0}, "points must be"),
]


@pytest.mark.parametrize(("given", "words"), MISTAKES)
def test_a_mistake_is_named(given: dict[str, Any], words: str) -> None:
    good: dict[str, Any] = {
        "rankers": {"random": BY_CHANCE},
        "worlds": {"gap": _gap},
        "rounds": 10,
        "seeds": 1,
    }
    asked = good | given
    with pytest.raises(ValueError, match=words):
        simulation.compare(asked.pop("rankers"), asked.pop("worlds"), **asked)


def test_nothing_is_played_before_all_pairs_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["rankloop.simulation.compare"]
    monkeypatch.setattr(module, "play_many", lambda *_, **__: pytest.fail("it was played"))
    with pytest.raises(ValueError, match="ranker 'small' does not fit world 'gap'"):
        simulation.compare(
            {"random": BY_CHANCE, "small": rankers.Uniform(n_items=3)}, {"gap": _gap}, rounds=10, seeds=1
        )


def test_a_maker_that_fails_says_which_one() -> None:
    with pytest.raises(TypeError, match="n_items") as failed:
        simulation.compare({"no size": rankers.FTRLPBM}, {"gap": _gap}, rounds=10, seeds=1)
    assert failed.value.__notes__ == ["while calling rankers['no size']"]


def test_makers_of_several_kinds() -> None:
    def optional(n_items: int = 10) -> rankers.Uniform:
        return rankers.Uniform(n_items=n_items, n_positions=5)

    makers = {"partial": functools.partial(rankers.Uniform, n_items=10, n_positions=5), "optional": optional}
    several = simulation.compare(makers, {"gap": _gap}, rounds=10, seeds=2)
    assert set(several.rankers.values()) == {"Uniform(n_items=10, n_positions=5)"}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda found: found.values("no", "FTRL"), "world must be one of"),
        (lambda found: found.values("gap", "no"), "ranker must be one of"),
        (lambda found: found.summary("no"), "measure must be one of"),
        (lambda found: found.differences(against="no"), "against must be one of"),
        (lambda found: found.differences(test="no"), "test must be one of 't', 'permutation'"),
        (lambda found: found.differences(at=49), "at must be a whole number from 50 to 1500, got 49"),
        (lambda found: found.table(form="no"), "form must be one of"),
        (lambda found: found.plot(columns=0), "columns must be"),
    ],
)
def test_a_mistake_in_a_question_is_named(found: Comparison, call: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call(found)


def test_pandas_is_asked_for_in_words(found: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match="to_pandas needs pandas: pip install pandas"):
        found.to_pandas()
    stub = types.ModuleType("pandas")
    stub.DataFrame = dict  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pandas", stub)
    assert list(found.to_pandas()) == found.to_polars().columns


def test_the_interval_is_students() -> None:
    values = np.random.default_rng(1).normal(size=(7, 3))
    mean, low, high = mean_interval(values, level=0.9)
    for i in range(3):
        wanted = stats.t.interval(0.9, 6, loc=values[:, i].mean(), scale=stats.sem(values[:, i]))
        assert (low[i], high[i]) == pytest.approx(wanted)
        assert mean[i] == pytest.approx(values[:, i].mean())


def test_a_single_run_has_a_mean_and_no_interval() -> None:
    mean, low, high = mean_interval([[2.0, 3.0]])
    assert mean.tolist() == [2.0, 3.0]
    assert np.isnan(low).all()
    assert np.isnan(high).all()
    assert math.isnan(paired_t([1.0]))
    assert math.isnan(sign_flips([1.0]))


def test_the_t_test_is_scipys() -> None:
    pairs = np.random.default_rng(2).normal(loc=0.4, size=9)
    assert paired_t(pairs) == pytest.approx(stats.ttest_1samp(pairs, 0.0).pvalue)


def test_differences_without_spread() -> None:
    assert paired_t([0.0, 0.0, 0.0]) == 1.0
    assert paired_t([2.0, 2.0, 2.0]) == 0.0
    assert sign_flips([0.0, 0.0, 0.0]) == 1.0
    assert sign_flips([2.0, 2.0, 2.0]) == 0.25


def test_sign_flips_are_enumerated() -> None:
    pairs = [0.3, -1.2, 2.5, 0.7, 1.1, 0.1]
    patterns = [
        abs(math.fsum(s * d for s, d in zip(signs, pairs, strict=True)))
        for signs in itertools.product((1, -1), repeat=6)
    ]
    reached = abs(math.fsum(pairs))
    assert sign_flips(pairs) == sum(sum_ >= reached - 1e-12 for sum_ in patterns) / 64


def test_sign_flips_that_are_drawn_agree_with_those_that_are_counted() -> None:
    pairs = np.random.default_rng(3).normal(loc=0.3, size=18)
    signs = 1.0 - 2.0 * (np.arange(1 << 18)[:, None] >> np.arange(18) & 1)
    exact = np.mean(np.abs(signs @ pairs) >= abs(pairs.sum()) - 1e-9)
    assert sign_flips(pairs) == pytest.approx(exact, abs=4 * math.sqrt(exact / 20_000))
    assert sign_flips(pairs) == sign_flips(pairs)


def test_holms_rule() -> None:
    assert holm([0.04, 0.01, 0.03, 0.005]) == pytest.approx([0.06, 0.03, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []
    found = holm([math.nan, 0.02, 0.01])
    assert math.isnan(found[0])
    assert found[1:] == [0.02, 0.02]


@pytest.mark.parametrize(("width", "inches"), [("column", 3.4), ("page", 7.0), (5.0, 5.0)])
def test_a_figure_is_as_wide_as_a_paper_asks_and_its_type_is_readable(
    width: float | str, inches: float, found: Comparison
) -> None:
    figure = found.plot(width=width)
    assert figure.get_figwidth() == pytest.approx(inches)
    figure.draw_without_rendering()
    texts = [text for text in figure.findobj(Text) if text.get_text().strip() and text.get_visible()]
    assert min(text.get_fontsize() for text in texts) >= 7.0
    dashes = {str(line._dash_pattern) for line in figure.get_axes()[0].get_lines()}
    assert len(dashes) == 3  # one for each ranker: they differ in grey print, too


def test_no_band_reaches_zero_on_a_logarithmic_axis() -> None:
    worlds = {"gap": _gap}
    few = simulation.compare(
        {"random": BY_CHANCE, "FTRL": _ftrl}, worlds, rounds=300, seeds=2, points=10, level=0.99
    )
    mean, low, _ = mean_interval(few.values("gap", "random", "regret"), level=few.level)
    assert (mean > 0.0).all()
    assert (low < 0.0).any()  # two seeds say little
    (axes,) = few.plot(log=True).get_axes()
    assert axes.get_yscale() == "log"
    for band in axes.collections:
        assert all((path.vertices[:, 1] > 0.0).all() for path in band.get_paths())
    with pytest.raises(ValueError, match="width must be one of"):
        few.plot(width="colum")
