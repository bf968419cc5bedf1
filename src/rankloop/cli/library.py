"""The commands of the library: list, simulate, demo, advise, tune and warm; and environments by name.

Each command imports what it needs when it is called, so that help is quick.
"""

from __future__ import annotations

import inspect
import json
import sys
import textwrap
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from rankloop.cli.settings import (
    AddressOption,
    AnswerAsJson,
    CountOption,
    ItemsOption,
    JsonFlag,
    RankerOption,
    ResultAsJson,
    RunsAtOnce,
    TopOption,
    Where,
    WhereOption,
    check_address,
    interruption_told,
    measure_option,
    offer_environments,
    offer_measures,
    plain_console,
    say,
    started,
)
from rankloop.extras import MissingExtra, local_folder, require

if TYPE_CHECKING:
    from rich.console import Console

    from rankloop.advice import Advice
    from rankloop.compiled import CompiledEnvironment
    from rankloop.measures import Measure


class Kind(StrEnum):
    """What `rankloop list` can list."""

    RANKERS = "rankers"
    ENVIRONMENTS = "environments"
    MEASURES = "measures"
    EXPERIMENTS = "experiments"


def list_things(
    kind: Annotated[Kind | None, Argument(help="What to list.", show_default="everything")] = None,
    as_json: JsonFlag = False,
) -> None:
    """List rankers, environments, measures and experiments.

    [b]Examples[/b]

      rankloop list

      rankloop list measures --json
    """
    listed = {each.value: describe(each.value) for each in ([kind] if kind else list(Kind))}
    if as_json:
        typer.echo(json.dumps(listed[kind.value] if kind else listed, indent=2, ensure_ascii=False))
        return
    console = plain_console()
    width = max(len(name) for entries in listed.values() for name in entries)
    for heading, entries in listed.items():
        console.print(f"[bold]{heading}[/bold]")
        for name, description in entries.items():
            say(console, f"  {name:<{width}}  {description}")


def describe(kind: str) -> dict[str, str]:
    """Everything of a kind, each with one line: rankers, environments, measures or experiments."""
    if kind == "rankers":
        from rankloop.rankers import registry

        return {name: _ranker_line(name) for name in registry.names()}
    if kind == "environments":
        return environment_names()
    if kind == "measures":
        from rankloop import measures

        return dict(_measure_line(measures.get(name)) for name in measures.names())
    if kind == "experiments":
        from rankloop import experiments

        try:
            return {name: experiments.get(name).title for name in experiments.names()}
        except MissingExtra as missing:  # what there is can be listed all the same
            return dict.fromkeys(experiments.names(), str(missing))
    raise ValueError(f"kind must be one of rankers, environments, measures, experiments, got {kind!r}")


def _ranker_line(name: str) -> str:
    from rankloop.rankers import registry

    try:
        return (inspect.getdoc(registry.find(name)) or "").split("\n\n")[0].replace("\n", " ")
    except ValueError as error:  # of another package, which may be broken; the list is not
        return f"cannot be used: {error}"


def _measure_line(measure: Measure) -> tuple[str, str]:
    traits = [
        "loss" if measure.is_loss else "gain",
        "linear in the relevance" if measure.linear else "not linear in the relevance",
    ]
    if measure.binary:
        traits.append("binary relevance only")
    ending = {"none": "", "optional": "[@k]", "required": "@k"}[measure.cutoffs]
    return measure.family + ending, ", ".join(traits)


def simulate(
    ranker: RankerOption = "TopFTRL",
    environment: Annotated[
        str,
        Option(
            help="An environment, see [b]rankloop list environments[/b].", autocompletion=offer_environments
        ),
    ] = "noisy-halves",
    items: ItemsOption = None,
    rounds: Annotated[str, Option(metavar="N", help="Rounds to play; 1e5 will do.")] = "1e5",
    measure: Annotated[str | None, measure_option("dcg, or clicks where users click")] = None,
    seed: Annotated[int, Option(help="Seed: the same seed gives the same run.")] = 1,
    settings: Annotated[
        list[str] | None, Option("--set", metavar="KEY=VALUE", help="An argument of the ranker; repeatable.")
    ] = None,
    as_json: ResultAsJson = False,
) -> None:
    """Play a ranker in an environment, report value and regret.

    [b]Examples[/b]

      rankloop simulate --ranker TopFTRL --environment noisy-halves --items 10 --rounds 1e6

      rankloop simulate --ranker RTop1F --set explore=random --set k=2 --seed 7 --json

      rankloop simulate --environment adversary-ndcg --items 3 --measure ndcg --set measure=dcg

      rankloop simulate --ranker FTRLPBM --environment yandex-periodic-1 --rounds 1e6

      rankloop simulate --ranker mypackage.rankers:Mine --rounds 1e5
    """
    from rankloop.simulation.by_name import read_settings

    result = simulate_one(
        ranker=ranker,
        environment=environment,
        n_items=items,
        rounds=whole_number("rounds", rounds),
        measure=measure,
        seed=seed,
        settings=read_settings(settings or []),
        console=None if as_json else plain_console(),
    )
    if as_json:
        typer.echo(json.dumps(result, indent=2))
        return
    width = max(len(key) for key in result)
    for key, value in result.items():
        typer.echo(f"{key.replace('_', ' '):<{width}}  {_in_words(value)}")


def _in_words(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def simulate_one(
    *,
    ranker: str,
    environment: str,
    n_items: int | None = None,
    rounds: int,
    measure: str | None = None,
    seed: int,
    settings: dict[str, Any] | None = None,
    console: Console | None = None,
) -> dict[str, Any]:
    """Play and return the result as plain numbers.

    >>> simulate_one(ranker="FTPL", environment="bernoulli", n_items=3, rounds=100, seed=1)["rounds"]
    100
    """
    import numpy as np

    from rankloop import simulation
    from rankloop.cli.charts import watched
    from rankloop.environments.click_worlds import ClickWorlds

    world = named_environment(environment, n_items=n_items, measure=measure)
    player = make_ranker(ranker, world, rounds=rounds, settings=settings or {})
    with watched(player, world, rounds=rounds, console=console) as watch:
        trace = simulation.play(
            player, world, rounds=rounds, seed=seed, watch=watch, progress=None if watch is None else False
        )
    regret_known = bool(np.isfinite(trace.total_regret))
    result: dict[str, Any] = {
        "ranker": ranker,
        "environment": environment,
        "measure": trace.measure,
        "items": world.n_items,
        "positions": world.n_positions,
        "rounds": trace.n_rounds,
        "seed": seed,
        "mean_value": trace.mean_value,
        "total_regret": trace.total_regret if regret_known else None,
        "average_regret": trace.total_regret / trace.n_rounds if regret_known else None,
    }
    if isinstance(world, ClickWorlds):  # against the best list of each phase, not only the best of all
        missed = float(world.ideal(trace.n_rounds)) - trace.total_value
        result |= {"total_phase_regret": missed, "average_phase_regret": missed / trace.n_rounds}
    result["exploration_share"] = trace.exploration_share
    return result | trace.counters | {"seconds": round(trace.seconds, 3)}


def make_ranker(name: str, world: CompiledEnvironment, *, rounds: int, settings: dict[str, Any]) -> Any:
    """The ranker called `name`, its arguments taken from `settings` or else from what is played."""
    from rankloop.rankers.registry import find
    from rankloop.simulation import by_name

    takes_order = "order" in inspect.signature(find(name)).parameters and "order" not in settings
    also = {"order": world.best().items} if takes_order else {}
    return by_name.make_ranker(name, environment=world, rounds=rounds, settings=settings, also=also)


def whole_number(name: str, text: str) -> int:
    """A count such as 20000 or 1e5.

    >>> whole_number("rounds", "1e5"), whole_number("rounds", "20_000")
    (100000, 20000)
    """
    try:
        number = float(text.replace(",", ""))
    except ValueError:
        number = 0.0
    if number >= 1e15:
        raise ValueError(f"{name} must be below 1e15, which takes years to play, got {text!r}")
    if not (number >= 1 and number == int(number)):
        raise ValueError(f"{name} must be a whole number of at least 1, such as 20000 or 1e5, got {text!r}")
    return int(number)


# Environments by name. `rankloop.environments` knows the simulated ones; ratings and documents come from
# `rankloop.data`, and only this layer may put the two together.

_RATINGS = {
    "jester": (
        "real users and the jokes they like (Jester), drawn with replacement",
        "ratings/jester_users_0001_2500.csv.gz",
    ),
    "movielens": (
        "real users and the films they like (MovieLens), drawn with replacement",
        "ratings/ml-latest-small",
    ),
}
_CLICKS = {f"documents-{kind}": kind for kind in ("perfect", "navigational", "informational", "near-random")}


def environment_names() -> dict[str, str]:
    """Every name with its description."""
    from rankloop import environments

    labels = {"documents": "synthetic queries with documents of 20 features, whose labels are revealed"}
    clicks = {
        name: f"the same, with {kind} users who click on ten shown documents"
        for name, kind in _CLICKS.items()
    }
    return environments.names() | labels | clicks | {name: words for name, (words, _) in _RATINGS.items()}


def named_environment(
    name: str, *, n_items: int | None = None, measure: str | None = None
) -> CompiledEnvironment:
    """The environment called `name`; of real users, those who rated all of the `n_items` most-rated items.

    None of either leaves it to the environment; see `rankloop.environments.named`.

    >>> named_environment("bernoulli", n_items=3).n_items
    3
    """
    from rankloop import data, environments

    if name == "documents" or name in _CLICKS:
        if n_items is not None:
            raise ValueError(f"n_items must be left out: every query of {name!r} has its own, got {n_items}")
        queries = data.synthetic_letor(n_queries=500, n_features=20, seed=1)
        if name in _CLICKS:
            return environments.ClickedQueries(queries, clicks=_CLICKS[name], measure=measure)
        return environments.QueryStream(queries, measure=measure or "ndcg@10")
    if name in _RATINGS:
        try:
            ratings = data.read_ratings(data.find(_RATINGS[name][1]))
        except data.DataMissing as missing:
            raise ValueError(str(missing)) from None
        relevance = ratings.most_rated(10 if n_items is None else n_items).relevance()
        return environments.FixedItems(environments.users.listed(relevance), measure=measure or "dcg")
    if name not in environments.names():
        from rankloop.arguments import nearest

        known = environment_names()
        wanted = f"environment must be one of {', '.join(known)}, got {name!r}"
        raise ValueError(wanted + nearest(name, known))
    return environments.named(name, n_items=n_items, measure=measure)


def demo(
    out: Annotated[Path, Option(help="Folder for results and report.")] = Path("results/demo"),
) -> None:
    """Watch a ranker learn, then reproduce two figures.

    TopFTRL learns from a million simulated users; a report shows the figures.

    Takes half a minute.

    [b]Examples[/b]

      rankloop demo --out results/demo
    """
    from rankloop import experiments

    experiments.check_installed()
    from rankloop.cli.papers import Reproduction, run_experiments

    typer.echo("TopFTRL learns from the relevance of the top item alone, of ten:")
    told = simulate_one(
        ranker="TopFTRL", environment="noisy-halves", rounds=1_000_000, seed=1, console=plain_console()
    )
    typer.echo(f"Average DCG regret after {told['rounds']:,} users: {told['average_regret']:.4f}")
    run_experiments(["top1-2015-fig1", "top1-2015-fig2"], Reproduction(quick=True, out=str(out)))


def advise(
    feedback: Annotated[
        str | None, Option(help="top, clicks or labels; asked for where it is left out.")
    ] = None,
    items: CountOption = 10,
    positions: Annotated[int | None, Option(help="Number of positions shown, for clicks.")] = None,
    top: TopOption = 1,
    features: Annotated[
        bool, Option("--features", help="Each request brings its own documents with features.")
    ] = False,
    n_features: Annotated[int, Option(help="How many features a document has, with [b]--features[/b].")] = 20,
    users: Annotated[
        str | None, Option(help="stay, change or unknown; asked for where it is left out.")
    ] = None,
    measure: Annotated[str, Option(help="The measure that matters.", autocompletion=offer_measures)] = "dcg",
    per_day: Annotated[int | None, Option(help="How many users come a day.")] = None,
    examination: Annotated[
        str | None, Option(help="Chance that each position is looked at, as 1,0.5,0.3.")
    ] = None,
    replicas: Annotated[bool, Option("--replicas", help="Several processes will serve it.")] = False,
    late: Annotated[
        bool | None, Option("--late/--in-time", help="Many lists are shown before feedback on one comes.")
    ] = None,
    arrivals: Annotated[bool | None, Option("--arrivals/--same-items", help="Items come and go.")] = None,
    repeats: Annotated[
        bool, Option("--repeats", help="The same queries come again and again, with [b]--features[/b].")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Which ranker to take, by a few questions.

    Its arguments, its guarantee, its measured regret and the next best.

    [b]Examples[/b]

      rankloop advise

      rankloop advise --feedback clicks --items 40 --positions 8 --users unknown

      rankloop advise --feedback top --users stay --measure precision@5 --per-day 20000 --json

      rankloop advise --feedback clicks --features --n-features 136 --users unknown
    """
    from rankloop.advice import FEEDBACK, USERS
    from rankloop.advice import advise as choose
    from rankloop.arguments import one_of

    known = None if examination is None else _numbers(examination)
    observed = feedback if feedback is not None else _ask("What do you observe?", FEEDBACK, "--feedback")
    one_of("feedback", observed, FEEDBACK)
    who = users if users is not None else _ask("Your users", USERS, "--users")
    if observed == "clicks" and not features and sys.stdin.isatty():
        if late is None:
            late = typer.confirm("Are many lists shown before feedback on one comes?", default=False)
        if arrivals is None:
            arrivals = typer.confirm("Do items come and go?", default=False)
    advice = choose(
        observed,
        users=who,
        n_items=items,
        n_positions=positions if positions is not None or known is None else len(known),
        k=top,
        features=features,
        n_features=n_features,
        measure=measure,
        per_day=per_day,
        examination=known,
        replicas=replicas,
        late=bool(late),
        arrivals=bool(arrivals),
        repeats=repeats,
    )
    if as_json:
        typer.echo(json.dumps(_plain_advice(advice), indent=2))
        return
    # The safest and the usually best ranker answer the question; the next one comes last.
    for line in sorted(str(advice).splitlines(), key=lambda line: line.startswith("Next best:")):
        typer.echo(textwrap.fill(line, 100, subsequent_indent="  ", break_long_words=False))


def _ask(title: str, choices: dict[str, str], option: str) -> str:
    if not sys.stdin.isatty():
        raise ValueError(f"give {option}: {', '.join(choices)}")
    typer.echo(title)
    for name, words in choices.items():
        typer.echo(f"  {name:<8} {words}")
    answer: str = typer.prompt("Your answer")
    return answer.strip()


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"--examination must be numbers with commas between them, got {text!r}") from None


def _plain_advice(advice: Advice) -> dict[str, Any]:
    plain = {
        "ranker": advice.ranker,
        "arguments": advice.arguments,
        "call": advice.call,
        "guarantee": advice.guarantee,
        "world": advice.world.name,
        "users": advice.world.rounds,
        advice.world.unit: advice.result[0],
        "standard_error": advice.result[1],
        "share_of_random": advice.share,
        "notes": list(advice.notes),
    }
    if advice.runner_up is not None:
        plain["next_best"] = _plain_advice(advice.runner_up)
    return plain


@dataclass(frozen=True)
class Searched:
    """What `rankloop tune` plays in: an environment, or queries, some of which only the evaluation meets."""

    environment: Annotated[
        str | None,
        Option(
            help="An environment, see [b]rankloop list environments[/b].", autocompletion=offer_environments
        ),
    ] = None
    letor: Annotated[
        list[Path] | None, Option(metavar="FILE", help="Instead: queries in LETOR text, files or a folder.")
    ] = None
    preset: Annotated[str | None, Option(help="The published set that the files are of, such as mslr.")] = (
        None
    )
    held_out: Annotated[
        float, Option(help="Share of the queries that only the evaluation at the end meets.")
    ] = 0.25

    def make(
        self, *, n_items: int | None, measure: str | None, seed: int
    ) -> tuple[CompiledEnvironment, CompiledEnvironment | None]:
        """The environment of the search, and that of the evaluation where it is another."""
        name = self.environment
        if (name is None) == (not self.letor):
            raise ValueError("give either --environment or --letor")
        if name is not None:
            if self.preset is not None:
                raise ValueError(
                    f"--preset is of --letor files, got {self.preset!r} with --environment {name}"
                )
            return named_environment(name, n_items=n_items, measure=measure), None
        from rankloop import data, environments

        if not 0.0 < self.held_out < 1.0:
            raise ValueError(f"--held-out must be above 0 and below 1, got {self.held_out}")
        if n_items is not None:
            raise ValueError(f"--items is of --environment, queries bring their own documents, got {n_items}")
        files = self.letor or []
        queries = data.read_letor(files[0] if len(files) == 1 else files, preset=self.preset).bounded()
        train, test = queries.split(train=1.0 - self.held_out, seed=seed)
        judged = measure or "ndcg@10"
        return environments.QueryStream(train, measure=judged), environments.QueryStream(test, measure=judged)


def tune(
    ranker: RankerOption,
    *,
    played: Searched,
    only: Annotated[
        list[str] | None,
        Option(
            metavar="ARGUMENT",
            help="Search only this argument; repeatable.",
            show_default="all that it declares",
        ),
    ] = None,
    fixed: Annotated[
        list[str] | None,
        Option("--set", metavar="KEY=VALUE", help="An argument of the ranker that stays; repeatable."),
    ] = None,
    rounds: Annotated[str, Option(metavar="N", help="Rounds of every run; 1e5 will do.")] = "1e4",
    settings: Annotated[int, Option(help="How many settings are tried.")] = 16,
    final_runs: Annotated[int, Option(help="Runs of the evaluation at the end.")] = 8,
    items: ItemsOption = None,
    measure: Annotated[
        str | None, measure_option("dcg; clicks where users click; ndcg@10 of queries")
    ] = None,
    seed: Annotated[int, Option(help="Seed: the same seed gives the same answer.")] = 0,
    jobs: RunsAtOnce = None,
    executor: WhereOption = Where.THREADS,
    address: AddressOption = None,
    out: Annotated[str, Option(help="Folder for runs and report.")] = "results/tune",
    as_json: AnswerAsJson = False,
) -> None:
    """Search for the arguments with which a ranker does best.

    With Optuna; what was found is evaluated.

    Runs that have ended are kept: after Ctrl-C the same command goes on where it stopped, and gives the same answer.

    [b]Examples[/b]

      rankloop tune --ranker RTop1F --environment noisy-halves --rounds 1e5

      rankloop tune --ranker FTRLPBM --environment gap-0.03 --only estimator --only regulariser

      rankloop tune --ranker RTopKF --letor train.txt --set k=2 --rounds 2e5 --out results/tune-rtopkf

      rankloop tune --ranker FTRLPBM --environment gap-0.03 --executor ray --address 10.0.0.7:6379
    """
    require("matplotlib", "optuna", "polars", extra="data,plot,tune", for_="tune")
    from rankloop import simulation
    from rankloop.simulation.by_name import read_settings
    from rankloop.simulation.report import write_tuning_report
    from rankloop.simulation.tune import jsonable

    world, fresh = played.make(n_items=items, measure=measure, seed=seed)
    count = whole_number("rounds", rounds)
    template = make_ranker(ranker, world, rounds=count, settings=read_settings(fixed or []))
    ranges = dict(template.tunable())
    for name in only or []:
        if name not in ranges:
            known = ", ".join(ranges) or "nothing"
            raise ValueError(f"--only must name what {ranker} declares, {known}, got {name!r}")
    check_address(executor, address)
    folder = local_folder(out)
    with (
        interruption_told("Runs that have ended are kept, the same command goes on from there."),
        started(executor, address, workers=jobs) as where,
    ):
        tuning = simulation.tune(
            template,
            world,
            rounds=count,
            ranges={name: ranges[name] for name in only} if only else None,
            settings=settings,
            final_runs=final_runs,
            held_out=fresh,
            seed=seed,
            folder=folder,
            workers=jobs,
            executor=where,
        )
        page = write_tuning_report(tuning, folder)
    if as_json:
        gain, error = tuning.gain
        answer = {"arguments": jsonable(tuning.arguments), "gain": gain, "standard_error": error}
        typer.echo(json.dumps(answer | {"report": str(page)}, indent=2))
        return
    typer.echo(str(tuning))
    typer.echo(f"Report: {page}")


def warm(
    names: Annotated[list[str] | None, Argument(metavar="RANKER", help="Ignored.", hidden=True)] = None,
    calls: Annotated[bool, Option("--calls", help="Ignored.", hidden=True)] = False,
    jobs: Annotated[int | None, Option(help="Ignored.", hidden=True)] = None,
) -> None:
    """Say that there is nothing to compile.

    An installation brings compiled kernels.
    """
    from rankloop.kernels.jit import MODE

    if MODE == "library":
        typer.echo("nothing to do: this installation has compiled kernels")
    else:
        typer.echo(
            "no compiled kernels here, numba compiles what is called; `make kernels` compiles all in a checkout"
        )
