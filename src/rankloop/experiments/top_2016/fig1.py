"""Figure 1 of the 2016 paper: average NDCG@10 against time for learners that observe the top one or two documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from rankloop import plotting
from rankloop.experiments import runs
from rankloop.experiments.experiment import Claim, Job, Plain, seeded
from rankloop.experiments.mutations import Mutation, instead
from rankloop.experiments.runs import ahead, lead, mean_and_error
from rankloop.experiments.top_2016 import setting
from rankloop.experiments.top_2016.setting import LetorExperiment, label_of
from rankloop.experiments.words import points
from rankloop.spacing import thin

if TYPE_CHECKING:
    from matplotlib.axes import Axes


RANDOM, LISTNET, SMOOTH = "Random", "ListNet", "SmoothDCG"
CONVEX = ("RankSVM", "KL", "Squared")
LEARNERS = (*CONVEX, SMOOTH, LISTNET, RANDOM)
PAPERS, OURS = "the paper's", "ours"
TENTH = "a tenth of the paper's steps"
EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0)
COLOURS = {"RankSVM": plotting.ORANGE, "KL": plotting.BLUE, "Squared": plotting.GREEN}
COLOURS |= {SMOOTH: plotting.PURPLE, LISTNET: plotting.INK, RANDOM: plotting.MUTED}
HORIZON, QUICK_HORIZON = 200_000, 20_000
_START = 100  # of the curves
_WORK = {"mslr": 5.0, "yahoo": 1.6}  # time of a round, beside MQ2008's
_EARLY = 1_000  # before this round averages are those of a few hundred queries
_BY_CHANCE = 0.005  # of NDCG, between means of few runs
_VERY_CLOSE = 0.8
_NO_LEAD = 0.01
_LONG = "mslr"  # lists of up to 337 documents, five times as long as the others'
Floats = NDArray[np.float64]


def with_epsilon(epsilon: float) -> str:
    """The constants of the paper, but for SmoothDCG's smoothing.

    >>> with_epsilon(0.3)
    'epsilon 0.3'
    """
    return f"epsilon {epsilon:g}" if epsilon != EPSILONS[0] else PAPERS


class Levels:
    """Reads the rows: curves, levels at the end, and shares of the gap that feedback can close."""

    def __init__(self, results: pl.DataFrame) -> None:
        self.results = results
        self.sets = setting.sets(results)

    def curve(self, name: str, learner: str, constants: str = PAPERS) -> pl.DataFrame:
        """Average NDCG up to each round: mean over the runs, and a standard error below and above it."""
        rows = runs.chosen(self.results, set=name, learner=learner, constants=constants)
        return runs.over_runs(rows, "average", errors=1)

    def ends(self, name: str, learner: str, constants: str = PAPERS, *, column: str = "average") -> Floats:
        """The last row's `column` of every run, by seed."""
        return runs.ends(self.results, column, set=name, learner=learner, constants=constants)

    def mean(self, name: str, learner: str, constants: str = PAPERS, *, column: str = "average") -> float:
        """Mean of `ends` over the runs."""
        ends = self.ends(name, learner, constants, column=column).tolist()
        return float(sum(ends) / len(ends))

    def share(self, name: str, learner: str, constants: str = PAPERS, *, column: str = "average") -> float:
        """How much of the way from Random to ListNet a learner goes, at the end of its runs.

        ListNet has the paper's constants for all learners but those with `OURS`.
        """
        low = self.mean(name, RANDOM, column=column)
        high = self.mean(name, LISTNET, OURS if constants == OURS else PAPERS, column=column)
        return (self.mean(name, learner, constants, column=column) - low) / (high - low)

    def shares(
        self, name: str, learners: Sequence[str], constants: str = PAPERS, *, column: str = "average"
    ) -> dict[str, float]:
        """The share of each of some learners."""
        return {learner: self.share(name, learner, constants, column=column) for learner in learners}


_SURROGATES: dict[str, dict[str, Plain]] = {
    "RankSVM": {"surrogate": "ranksvm", "k": 2},
    "KL": {"surrogate": "kl", "k": 1},
    "Squared": {"surrogate": "squared", "k": 1},
    SMOOTH: {"surrogate": "smooth_dcg", "k": 1},
}
# Section 6, "Setting of experiments"; and what a first trial on these data sets found, the same for all of them.
_SCHEDULES: dict[str, dict[str, Plain]] = {
    PAPERS: {"learning_rate": [0.01, 2 / 3], "exploration": [0.1, 1 / 3]},
    OURS: {"learning_rate": [0.1, 2 / 3], "exploration": [1.0, 1 / 3]},
    TENTH: {"learning_rate": [0.001, 2 / 3], "exploration": [0.1, 1 / 3]},
}
_EPSILON: dict[str, Plain] = {PAPERS: 0.01, OURS: 1.0}
_LISTNET: dict[str, Plain] = {PAPERS: [0.01, 1 / 2], OURS: [1.0, 1 / 2]}


def arguments(learner: str, constants: str) -> dict[str, Plain]:
    """The settings of a learner by the names that the tables use.

    >>> arguments("SmoothDCG", "epsilon 0.3")["epsilon"]
    0.3
    """
    if learner == RANDOM:
        return {"surrogate": "uniform"}
    if learner == LISTNET:
        return {"surrogate": "listnet", "learning_rate": _LISTNET[constants]}
    if learner != SMOOTH:
        return _SURROGATES[learner] | _SCHEDULES[constants]
    if constants in _EPSILON:
        return _SURROGATES[SMOOTH] | _SCHEDULES[constants] | {"epsilon": _EPSILON[constants]}
    return _SURROGATES[SMOOTH] | _SCHEDULES[PAPERS] | {"epsilon": float(constants.removeprefix("epsilon "))}


class TopFigure1(LetorExperiment):
    """Average NDCG@10 of RTop-kF with four surrogates, between a random order and full information."""

    name = "top-2016-fig1"
    title = "Learning from one or two labels per list, and from all of them"
    paper = setting.PAPER + ", Figure 1"
    caption = (
        "Each round a query comes and its documents are ranked by a linear score. KL, Squared and SmoothDCG then "
        "observe the label of the top document, RankSVM of the top two, ListNet of all; Random of none. Shown is "
        "the average NDCG@10 of the rankings shown so far. Each run holds out another fifth of the queries."
    )
    departures = points("""
        - Yahoo's full challenge set and Yandex's are not free to share. There are a sample of the first (251 queries),
          all of MQ2008, a fragment of MSLR-WEB, and a synthetic set with a linear truth; the line above the claims
          names those that were played.
        - Radius, scaling of the features, sequence of the queries and number of runs are not in the paper (erratum
          B11): radius 10, every feature from 0 to 1 within a query and rows no longer than 1, each pass over the
          queries shuffled, five runs. A query without relevant documents counts as NDCG 1, whatever is shown.
        - SmoothDCG is a gain: we climb it (erratum B3). The paper's rule, read literally, descends.
        - Beside the paper's constants stand ours, ten times larger steps and exploration and epsilon 1, the same for
          all data sets, with ListNet at a step of t^(-1/2).
    """)

    def jobs(self, *, quick: bool) -> list[Job]:
        everyone = [(learner, constants) for constants in (PAPERS, OURS) for learner in LEARNERS]
        everyone.remove((RANDOM, OURS))
        everyone += [(SMOOTH, with_epsilon(one)) for one in (EPSILONS[-1:] if quick else EPSILONS[1:])]
        everyone += [("RankSVM", TENTH)]
        sets, rounds = setting.available(), QUICK_HORIZON if quick else HORIZON

        def job(dataset: str, learner: str, constants: str, seed: int) -> Job:
            settings: dict[str, Plain] = {"set": dataset, "learner": learner, "constants": constants}
            settings |= {"arguments": arguments(learner, constants), "rounds": rounds}
            cost = rounds * _WORK.get(dataset, 1.0) * (2.0 if learner == LISTNET else 1.0)
            return seeded(f"{label_of(dataset)}, {learner}, {constants}", seed=seed, cost=cost, **settings)

        return [
            job(dataset, learner, constants, seed)
            for dataset in ({sets[0]: None, sets[-1]: None} if quick else sets)
            for learner, constants in everyone
            for seed in range(1, 4 if quick else 11)  # each part twice
        ]

    def run(self, job: Job) -> pl.DataFrame:
        """Average NDCG so far at about 200 rounds, and at the end the greedy order's on the queries held out."""
        train, held_out = setting.parts(job.settings["set"], job.seed)
        ranker = setting.make_ranker(job.settings["arguments"], train)
        trace = setting.play_on(ranker, train, rounds=job.settings["rounds"], seed=job.seed)
        points = len(trace.rounds)
        kept = sorted({*thin(points, points=150), *thin(points, points=60, logarithmic=False)})
        columns = {
            "round": trace.rounds[kept],
            "average": (trace.total / trace.rounds)[kept],
            "explored": trace.explored[kept],
            "held out": [None] * (len(kept) - 1) + [setting.greedy_value(ranker, held_out)],
        }
        settings = {name: [job.settings[name]] * len(kept) for name in ("set", "learner", "constants")}
        return pl.DataFrame(settings | columns, schema_overrides={"held out": pl.Float64})

    def claims(self, results: pl.DataFrame, *, quick: bool) -> Iterator[Claim]:
        """The paper's sentences where they hold, and our findings where they do not."""
        of = Levels(results)
        for judge in (_against_the_ends, _closer, _among_surrogates, _beyond_the_paper):
            yield from judge(of, quick=quick)

    def figures(self, results: pl.DataFrame, *, quick: bool) -> dict[str, Figure]:
        of = Levels(results)
        return {
            "average-ndcg": _draw_curves(
                of,
                PAPERS,
                title="What the label of one document, or of two, teaches of what all labels teach",
                subtitle="the paper's constants; bands: one standard error over the runs",
                caption="ListNet (black) observes the label of every document, KL, Squared and SmoothDCG of the one on "
                "top, RankSVM of the top two, Random of none. " + _ways(of, PAPERS),
            ),
            "average-ndcg-ours": _draw_curves(
                of,
                OURS,
                title="The same with larger steps and more exploration",
                subtitle="steps 0.1 t^(-2/3), exploration t^(-1/3), epsilon 1, ListNet's steps t^(-1/2)",
                caption="Our constants, which are the same for all data sets. "
                + _ways(of, OURS)
                + _leaders(of),
            ),
            "epsilon": _draw_epsilon(of),
            "held-out": _draw_held_out(of),
        }

    def summary(self, results: pl.DataFrame) -> pl.DataFrame:
        of, rows = Levels(results), []
        played = results.select("set", "learner", "constants").unique(maintain_order=True)
        for name, learner, constants in played.iter_rows():
            who, ends = (name, learner, constants), of.ends(name, learner, constants)
            rows.append(
                {
                    "data set": label_of(name),
                    "learner": learner,
                    "constants": constants,
                    "average NDCG@10": round(of.mean(*who), 4),
                    "lowest run": round(float(ends.min()), 4),
                    "highest run": round(float(ends.max()), 4),
                    "share of the gap": round(of.share(*who), 3),
                    "held-out NDCG@10": round(of.mean(*who, column="held out"), 4),
                }
            )
        return pl.DataFrame(rows)


def _each(texts: Mapping[str, str]) -> str:
    return "; ".join(f"{label_of(name)} {text}" for name, text in texts.items())


def _told(numbers: Mapping[str, float]) -> str:
    return ", ".join(f"{learner} {number:.2f}" for learner, number in numbers.items())


def _chance(learner: str) -> Mutation:
    """The runs of a random order in the place of a learner's, whatever its constants."""

    def change(rows: pl.DataFrame) -> pl.DataFrame:
        own = rows.filter(pl.col("learner") == learner).select("set", "seed", "constants").unique()
        random = rows.filter(pl.col("learner") == RANDOM).drop("constants", "learner")
        made = random.join(own, on=["set", "seed"], maintain_order="left")
        made = made.with_columns(learner=pl.lit(learner)).select(rows.columns)
        return pl.concat([rows.filter(pl.col("learner") != learner), made])

    return Mutation(f"{RANDOM} in the place of {learner}", change)


def _mean_lead(leads: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """The mean of leads on several data sets, and its standard error: their runs have nothing in common."""
    gains, errors = np.transpose(list(leads))
    return float(gains.mean()), float(np.sqrt((errors**2).sum()) / len(errors))


def _against_the_ends(of: Levels, *, quick: bool) -> Iterator[Claim]:
    leads, overtaken = {}, []
    for name in of.sets:
        curves = {one: of.curve(name, one).filter(pl.col("round") >= _EARLY) for one in LEARNERS}
        full = curves.pop(LISTNET)
        next_best = max(curves, key=lambda one: curves[one]["mean"][-1])
        leads[name] = lead(*(of.ends(name, one) for one in (LISTNET, next_best)))
        ahead = (full.filter(one["mean"] > full["mean"] + _BY_CHANCE) for one in curves.values())
        passed = [t for rows in ahead for t in rows["round"]]
        if passed:
            overtaken.append(f"{label_of(name)} until round {max(passed):,}")
    throughout = f"another was ahead on {', '.join(overtaken)}" if overtaken else "at no time overtaken"
    sentence = _each({name: f"{gain:+.3f} ± {error:.3f}" for name, (gain, error) in leads.items()})
    mean, its_error = _mean_lead(leads.values())
    yield Claim(
        name="listnet-highest",
        text=f"With full information, ListNet is highest throughout: from round {_EARLY:,} on no other has a mean "
        f"higher by more than {_BY_CHANCE} on any data set, and in the end its lead over the next is, as the mean over "
        "the data sets, more than two standard errors",
        holds=not overtaken and mean > 2 * its_error,
        measured=f"lead over the next at the end: {mean:+.3f} ± {its_error:.3f}; {sentence}; {throughout}",
        source="Section 6: “ListNet, with full information, has highest average NDCG value throughout”",
        mutation=instead("KL", LISTNET),
    )
    least = {name: min(min(of.ends(name, learner)) for learner in CONVEX) for name in of.sets}
    most = {name: max(of.ends(name, RANDOM)) for name in of.sets}
    sentence = _each({name: f"{least[name]:.3f} > {most[name]:.3f}" for name in of.sets})
    yield Claim(
        name="above-random",
        text="With a convex surrogate every run ends above every run of a random order",
        holds=all(least[name] > most[name] for name in of.sets),
        measured=f"lowest of them against highest of Random: {sentence}",
        source="Section 6: “all three convex surrogates, perform significantly better than the purely random”",
        fixed=True,
        mutation=_chance("KL"),
    )


def _closer(of: Levels, *, quick: bool) -> Iterator[Claim]:
    # The quick version stops after a tenth of the rounds, when the synthetic set is half learnt.
    constants = OURS if quick else PAPERS
    shares = {name: of.shares(name, CONVEX, constants) for name in of.sets}
    flat = {(name, learner): of_gap for name, of_set in shares.items() for learner, of_gap in of_set.items()}
    yield Claim(
        name="closer-to-listnet",
        text="All three convex surrogates end closer to ListNet than to Random"
        + (", RankSVM on long lists apart" if _LONG in of.sets else ""),
        holds=all(of_gap > 0.5 for where, of_gap in flat.items() if where != (_LONG, "RankSVM")),
        measured=f"share of the gap, constants {constants}: "
        + _each({name: _told(of_set) for name, of_set in shares.items()}),
        source="Section 6: “much closer to full feedback ListNet in performance”",
        fixed=_LONG not in of.sets and not quick,
        mutation=_chance("KL"),
    )
    if _LONG in of.sets:
        papers, kl = shares[_LONG]["RankSVM"], shares[_LONG]["KL"]
        tenth = of.share(_LONG, "RankSVM", TENTH)
        yield Claim(
            name="ranksvm-on-long-lists",
            text="The paper finds this of RankSVM too. On MSLR's lists, 107 documents on average, it stays about "
            "halfway, and with a tenth of the steps it comes at least a tenth of the gap further: a pair seen while "
            "exploring weighs m(m-1)/(2 gamma)",
            holds=papers < 0.7 and tenth > papers + 0.1,
            measured=f"share of the gap {papers:.2f}, with a tenth of the steps {tenth:.2f} (KL {kl:.2f})",
            source="Section 6; erratum B2",
            mutation=instead(PAPERS, TENTH, column="constants", learner="RankSVM"),
        )
    if "yahoo" in of.sets:
        of_set = of.shares("yahoo", ("RankSVM", "KL"))
        yield Claim(
            name="very-close-on-yahoo",
            text=f"On Yahoo's sample RankSVM and KL are very close to ListNet, read as at least {_VERY_CLOSE:.0%} of "
            "the way from Random",
            holds=min(of_set.values()) >= _VERY_CLOSE,
            measured=_told(of_set),
            source="Section 6: “in the Yahoo dataset, our algorithms, with RankSVM and KL, are very close”",
            mutation=_chance("KL"),
        )


def _among_surrogates(of: Levels, *, quick: bool) -> Iterator[Claim]:
    if not quick:  # two runs cannot tell
        leads = {name: lead(of.ends(name, "KL"), of.ends(name, "Squared")) for name in of.sets}
        mean, error = _mean_lead(leads.values())
        sentence = _each({name: f"{gain:+.4f} ± {error:.4f}" for name, (gain, error) in leads.items()})
        yield Claim(
            name="kl-not-ahead",
            text="The paper finds KL ahead of the squared loss; here its lead is, as the mean over the data sets, less "
            f"than {_NO_LEAD}",
            holds=mean < _NO_LEAD,
            measured=f"lead of KL, run by run: {mean:+.4f} ± {error:.4f}; {sentence}",
            source="Section 6: “KL, being listwise in nature, does better than squared loss”",
            mutation=instead(LISTNET, "KL", constants=PAPERS),
        )
    firsts, behind = {}, dict.fromkeys((PAPERS, OURS), False)
    for name in of.sets:
        first = {}
        for constants in behind:
            ends = {learner: of.ends(name, learner, constants) for learner in CONVEX}
            first[constants] = max(ends, key=lambda learner: sum(ends[learner]))
            behind[constants] |= any(ahead(ends[other], ends["RankSVM"]) for other in ("KL", "Squared"))
        firsts[name] = f"{first[PAPERS]}, with ours {first[OURS]}"
    yield Claim(
        name="ranksvm-not-ahead",
        text="The paper finds RankSVM ahead and credits its second label; here KL or the squared loss is ahead of "
        "it by two standard errors on some data set, with the paper's constants and with ours. One step size for "
        "all fits none: RankSVM's gradient is a sum over pairs, and its estimate is relatively no less noisy "
        "((m-1)/gamma against m/gamma)",
        holds=all(behind.values()),
        measured=f"first of the three: {_each(firsts)}",
        source="Section 6: “RankSVM does better than the other surrogates”; erratum B8",
        mutation=instead(LISTNET, "RankSVM", constants=PAPERS),
    )
    if quick:  # SmoothDCG's runs differ too much for a tenth of the rounds to tell
        return
    behind_kl = {
        (name, other): lead(*(of.ends(name, learner) for learner in (other, SMOOTH)))
        for name in of.sets
        for other in ("KL", "Squared")
    }
    yield Claim(
        name="smooth-poor",
        text="SmoothDCG with epsilon = 0.01 is poor: behind KL and the squared loss on every data set, by more than "
        "two standard errors" + (f", {label_of(_LONG)} apart, where it is open" if _LONG in of.sets else ""),
        holds=all(gain > 2 * error for (name, _), (gain, error) in behind_kl.items() if name != _LONG),
        measured="lead over it: "
        + ", ".join(
            f"{label_of(name)} {other} {gain:+.3f} ± {error:.3f}"
            for (name, other), (gain, error) in behind_kl.items()
        ),
        source="Section 6: “with SmoothDCG, on the other hand, produce poor performance”",
        fixed=_LONG not in of.sets,
        mutation=instead("KL", SMOOTH, constants=PAPERS),
    )


def _beyond_the_paper(of: Levels, *, quick: bool) -> Iterator[Claim]:
    epsilon, enough = (1.0, 0.75) if quick else (0.3, 0.7)
    behind, texts = {}, {}
    for name in of.sets:
        kl, poor = of.share(name, "KL"), of.share(name, SMOOTH)
        smooth = of.share(name, SMOOTH, with_epsilon(epsilon))
        behind[name] = smooth < enough * kl
        texts[name] = f"{poor:.2f} → {smooth:.2f} (KL {kl:.2f})"
    yield Claim(
        name="epsilon",
        text="The paper blames the lack of convexity; but with the same steps and exploration and epsilon = "
        f"{epsilon:g} SmoothDCG goes at least {enough:.0%} as far as KL",
        holds=not any(behind.values()),
        measured=f"share of the gap: {_each(texts)}",
        source="Section 6: “the reason is the non-convexity of the surrogate”; erratum B4",
        mutation=_chance(SMOOTH),
    )
    enough = 0.6 if quick else 0.65
    shares = {name: of.shares(name, ("KL", "Squared"), OURS, column="held out") for name in of.sets}
    yield Claim(
        name="held-out",
        text="What was learnt from one label per round holds for new queries: on held-out ones the greedy order of "
        f"KL and of the squared loss closes at least {enough:.0%} of the gap, with our constants on both sides",
        holds=all(min(of_set.values()) >= enough for of_set in shares.values()),
        measured=f"share of the held-out gap: {_each({name: _told(of_set) for name, of_set in shares.items()})}",
        source="Ours; the paper evaluates on the queries it learns from",
        mutation=_chance("KL"),
    )


def _ways(of: Levels, constants: str) -> str:
    """How far each surrogate goes from Random to ListNet, over the data sets that were played."""
    sentences = []
    for learner in (*CONVEX, SMOOTH):
        shares = [of.share(name, learner, constants) for name in of.sets]
        sentences.append(f"{learner} {plotting.span(shares)}")
    return f"Of the way from Random to ListNet they end at: {', '.join(sentences)}."


def _leaders(of: Levels) -> str:
    changed = []
    for name in of.sets:
        first, ours = (
            max(CONVEX, key=lambda learner: of.mean(name, learner, constants)) for constants in (PAPERS, OURS)
        )
        if first != ours:
            changed.append(f"{label_of(name)} ({first}, now {ours})")
    leads = f" Another of the three convex surrogates leads than with the paper's on {', '.join(changed)}."
    return leads if changed else ""


def _panels(of: Levels, **words: Any) -> tuple[Figure, dict[str, Axes]]:
    """A panel for each data set, two in a row."""
    rows, columns = (len(of.sets) + 1) // 2, min(len(of.sets), 2)
    width, height = 13.0 if columns > 1 else 8.6, 1.0 + 4.0 * rows
    figure, panels = plotting.canvas(rows=rows, columns=columns, width=width, height=height, **words)
    for axes in panels[len(of.sets) :]:
        axes.remove()
    return figure, dict(zip(of.sets, panels, strict=False))


def _draw_curves(of: Levels, constants: str, **words: str) -> Figure:
    figure, panels = _panels(of, **words)
    for name, axes in panels.items():
        for learner in LEARNERS:
            means = of.curve(name, learner, PAPERS if learner == RANDOM else constants)
            means = means.filter(pl.col("round") >= _START)
            label = f"{learner} {means['mean'][-1]:.3f}"
            plotting.mean_curve(axes, means, label=label, colour=COLOURS[learner], dashed=learner == RANDOM)
        plotting.log_axis(axes)
        axes.set_xlim(_START, float(means["round"][-1]))
        plotting.name_axes(axes, x="up to round t", y=f"{label_of(name)}: average NDCG@10")
    return plotting.finish(figure)


def _draw_epsilon(of: Levels) -> Figure:
    def played(name: str) -> list[float]:
        constants = set(of.results.filter(pl.col("set") == name)["constants"])
        return [epsilon for epsilon in EPSILONS if with_epsilon(epsilon) in constants]

    tried, sentences = played(of.sets[0]), []
    for name in of.sets:
        low, high = (of.share(name, SMOOTH, constants) for constants in (PAPERS, with_epsilon(tried[-1])))
        kl = of.share(name, "KL")
        sentences.append(f"{label_of(name)} {low:.0%}, {high:.0%} (KL {kl:.0%})")
    figure, panels = _panels(
        of,
        title="SmoothDCG by its epsilon",
        subtitle="steps and exploration as in the paper, only epsilon changes; bands: all runs",
        caption=f"Of the way from Random to ListNet SmoothDCG goes, with epsilon {tried[0]:g} and {tried[-1]:g}: "
        f"{'; '.join(sentences)}. Its order depends on w / epsilon alone, which moves by eta / epsilon^2: at the left "
        f"end steps are {(tried[-1] / tried[0]) ** 2:,.0f} times those at the right end.",
    )
    for name, axes in panels.items():
        shown = played(name)
        ends = np.array([of.ends(name, SMOOTH, with_epsilon(epsilon)) for epsilon in shown])
        mean, band, colour = ends.mean(axis=1), (ends.min(axis=1), ends.max(axis=1)), COLOURS[SMOOTH]
        plotting.curve(axes, shown, mean, band=band, label=SMOOTH, colour=colour, points=True)
        for learner in ("KL", RANDOM):
            level = [of.mean(name, learner)] * len(shown)
            plotting.curve(axes, shown, level, label=learner, colour=COLOURS[learner], dashed=True)
        plotting.log_axis(axes)
        axes.set_xticks(shown)
        plotting.name_axes(axes, x="epsilon", y=f"{label_of(name)}: average NDCG@10")
    return plotting.finish(figure)


def _draw_held_out(of: Levels) -> Figure:
    one_label = ("KL", "Squared", SMOOTH)
    shares = [of.share(name, one, OURS, column="held out") for name in of.sets for one in one_label]
    figure, panels = _panels(
        of,
        title="What was learnt from the top of the list, on new queries",
        subtitle="NDCG@10 of the greedy order on held-out queries at the end; bars: two standard errors to each side",
        caption="Each run holds out another fifth of the queries. Filled dots: our constants. Open dots: the "
        f"paper's. With ours, one label per round (KL, Squared, SmoothDCG) closes {plotting.span(shares)} of the "
        "gap between Random and ListNet.",
    )
    for name, axes in panels.items():
        for place, learner in enumerate(reversed(LEARNERS)):
            for constants, lift in ((PAPERS, -0.16), (OURS, 0.16))[: 1 if learner == RANDOM else 2]:
                mean, error = mean_and_error(of.ends(name, learner, constants, column="held out"))
                colour, ours = COLOURS[learner], constants == OURS
                plotting.dot(axes, mean, place + lift, error=2 * error, colour=colour, filled=ours, line=1.4)
        plotting.name_axes(axes, x="held-out NDCG@10", y=label_of(name))
        axes.xaxis.set_major_locator(MaxNLocator(6))
        plotting.row_axis(axes, LEARNERS)
    return figure
