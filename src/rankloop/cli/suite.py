"""The commands `rankloop suite`: play the suite, list its worlds, report on submissions, and verify them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from rankloop.cli.settings import (
    RESEARCH,
    AnswerAsJson,
    Command,
    Commands,
    JsonFlag,
    RunsAtOnce,
    interruption_told,
    offer_rankers,
)
from rankloop.extras import counted, require

if TYPE_CHECKING:
    from rankloop.suite import Entry, Submission


def register(app: typer.Typer, in_words: Callable[[Command], Command]) -> None:
    """Add the commands to `app`."""
    suite = typer.Typer(cls=Commands, no_args_is_help=True, rich_markup_mode="rich")
    suite.command("run")(in_words(run_suite))
    suite.command("list")(in_words(list_worlds))
    suite.command("report")(in_words(report))
    suite.command("verify")(in_words(verify_submission))
    app.add_typer(
        suite,
        name="suite",
        rich_help_panel=RESEARCH,
        help="Play rankers in fixed worlds, a score for each capability.",
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def run_suite(
    rankers: Annotated[
        list[str],
        Argument(
            metavar="RANKER",
            help=(
                "Rankers, see [b]rankloop list rankers[/b], with arguments after commas, such as "
                "FTRLPBM,estimator=mean; one of yours as package.module:Class; or [b]all[/b] of the package."
            ),
            autocompletion=offer_rankers,
        ),
    ],
    quick: Annotated[bool, Option("--quick", help="Short runs with 3 seeds: the default.")] = False,
    full: Annotated[bool, Option("--full", help="Long runs with 20 seeds: a night.")] = False,
    seeds: Annotated[
        int | None, Option(help="Runs of each ranker in each world.", show_default="3, or 20 in full")
    ] = None,
    out: Annotated[Path, Option(help="Folder for runs, submission and report.")] = Path("results/suite"),
    jobs: RunsAtOnce = None,
    executor: Annotated[str, Option(help="Where runs play: threads, processes, ray or cuda.")] = "threads",
    as_json: Annotated[bool, Option("--json", help="The scores as JSON, for programs.")] = False,
) -> None:
    """Play rankers in the worlds that suit them.

    A submission and a report are written.

    Runs that have ended are kept: after Ctrl-C the same command goes on where it stopped.

    [b]Examples[/b]

      rankloop suite run FTRLPBM TopRank

      rankloop suite run FTRLPBM,regulariser=hybrid,estimator=mean mypackage.rankers:Mine --out results/mine

      rankloop suite run all --full
    """
    require("matplotlib", "polars", extra="data,plot", for_="the suite")
    from rankloop import suite
    from rankloop.suite.report import write_report

    if quick and full:
        raise ValueError("give --quick or --full, not both")
    entries: dict[str, Entry] = {}
    for text in rankers:
        for entry in suite.every_entry() if text == "all" else [suite.Entry.read(text)]:
            entries[entry.label] = entry
    with interruption_told("Runs that have ended are kept, the same command goes on from there."):
        submission = suite.run(
            list(entries.values()), full=full, seeds=seeds, folder=out, workers=jobs, executor=executor
        )
    file = out / "submission.parquet"
    submission.write(file)
    page = write_report([submission], out)
    if as_json:
        typer.echo(json.dumps(_plain(submission), indent=2))
        return
    for line in _lines(submission):
        typer.echo(line)
    typer.echo(f"Submission: {file}")
    typer.echo(f"Report: {page}")


def atlas(
    rankers: Annotated[
        list[str] | None,
        Argument(
            metavar="RANKER",
            help="Rankers that learn from clicks, as for [b]rankloop suite run[/b].",
            show_default="eight of the package",
            autocompletion=offer_rankers,
        ),
    ] = None,
    full: Annotated[bool, Option("--full", help="All cells: minutes on a GPU, hours on two cores.")] = False,
    rounds: Annotated[
        int | None, Option(help="Of each run.", show_default="20,000, or 100,000 in full")
    ] = None,
    seeds: Annotated[
        int | None, Option(help="Runs of each ranker in each cell.", show_default="8, or 24 in full")
    ] = None,
    out: Annotated[Path, Option(help="Folder for runs, table and maps.")] = Path("results/atlas"),
    jobs: RunsAtOnce = None,
    executor: Annotated[str, Option(help="Where runs play: threads, processes, ray or cuda.")] = "threads",
) -> None:
    """Map who wins where: how close items are, how soon users change, how many items and positions.

    A table of every cell and ranker is written, and a page of maps. It takes a minute on two cores.

    Runs that have ended are kept: after Ctrl-C the same command goes on where it stopped.

    [b]Examples[/b]

      rankloop atlas

      rankloop atlas FTRLPBM PBMTS TopRank --seeds 20

      rankloop atlas --full --executor cuda
    """
    require("matplotlib", "polars", "scipy", extra="data,plot,scipy", for_="the atlas")
    from rankloop import suite
    from rankloop.suite.atlas import ENTRIES, write_atlas

    grid = suite.FULL if full else suite.COARSE
    grid = grid._replace(
        rounds=grid.rounds if rounds is None else rounds, seeds=grid.seeds if seeds is None else seeds
    )
    entries = [suite.Entry.read(text) for text in rankers or ENTRIES]
    with interruption_told("Runs that have ended are kept, the same command goes on from there."):
        drawn = suite.draw_atlas(entries, grid, folder=out, workers=jobs, executor=executor)
    page = write_atlas(drawn, out)
    won = drawn.rows.filter("won")
    for name, count in won["ranker"].value_counts(sort=True).rows():
        sure = won.filter((won["ranker"] == name) & won["decided"])
        typer.echo(f"{name}: best in {counted(count, 'cell')}, decided in {len(sure)}")
    typer.echo(f"Maps: {page}")


def list_worlds(as_json: JsonFlag = False) -> None:
    """List the worlds of the suite by capability.

    [b]Examples[/b]

      rankloop suite list
    """
    require("polars", extra="data", for_="the suite")
    from rankloop import suite

    if as_json:
        plain = [
            {
                "world": world.name,
                "capability": world.capability,
                "setting": world.setting,
                "description": world.description,
                "quick": {"rounds": world.quick, "hash": world.fingerprint(full=False)},
                "full": {"rounds": world.full, "hash": world.fingerprint(full=True)},
            }
            for world in suite.WORLDS
        ]
        typer.echo(json.dumps(plain, indent=2))
        return
    width = max(len(world.name) for world in suite.WORLDS)
    for capability, worlds in suite.capabilities().items():
        typer.echo(capability)
        for world in worlds:
            typer.echo(f"  {world.name:<{width}}  {world.description}")


def report(
    files: Annotated[list[Path], Argument(metavar="FILE", help="Submissions, of one ranker or of many.")],
    out: Annotated[Path, Option(help="Folder for the page.")] = Path("results/suite"),
) -> None:
    """Draw the scores of submissions, with a leaderboard.

    One page that needs nothing else.

    [b]Examples[/b]

      rankloop suite report mine/submission.parquet theirs/submission.parquet --out results/both
    """
    require("matplotlib", "polars", extra="data,plot", for_="the suite")
    from rankloop.suite import read_submission
    from rankloop.suite.report import write_report

    typer.echo(f"Report: {write_report([_read(file, read_submission) for file in files], out)}")


def verify_submission(
    file: Annotated[Path, Argument(metavar="FILE", help="A submission.")],
    sample: Annotated[int, Option(help="How many of its runs are played again.")] = 10,
    seed: Annotated[int, Option(help="Chooses them.")] = 0,
    as_json: AnswerAsJson = False,
) -> None:
    """Check that a submission is what it says.

    Worlds, seeds and sums, and a sample of its runs, played again.

    Exits with 1 where it is not.

    [b]Examples[/b]

      rankloop suite verify results/suite/submission.parquet --sample 20
    """
    require("polars", extra="data", for_="the suite")
    from rankloop.suite import verify

    verdict = _read(file, lambda path: verify(path, sample=sample, seed=seed))
    if as_json:
        plain = {
            "holds": verdict.holds,
            "problems": verdict.problems,
            "remarks": verdict.remarks,
            "replays": [replay._asdict() for replay in verdict.replays],
        }
        typer.echo(json.dumps(plain, indent=2))
    else:
        for replay in verdict.replays:
            mark = "same " if replay.agrees else "OTHER"
            typer.echo(f"{mark}  {replay.ranker} in {replay.world}, seed {replay.seed}: {replay.told:.6f}")
        for remark in verdict.remarks:
            typer.echo(f"remark: {remark}")
        for problem in verdict.problems:
            typer.echo(f"problem: {problem}")
        is_so = f"is what it says, as far as {len(verdict.replays)} runs tell"
        typer.echo(f"{file} {is_so if verdict.holds else 'is not what it says'}")
    if not verdict.holds:
        raise typer.Exit(1)


def _read(file: Path, read: Callable[[Path], Any]) -> Any:
    if not file.is_file():
        raise ValueError(f"there is no file {file}")
    return read(file)


def _lines(submission: Submission) -> list[str]:
    from rankloop.suite.report import capability_scores
    from rankloop.suite.worlds import SETTINGS

    lines = []
    scores = capability_scores(submission.results)
    for (setting,), part in scores.group_by(["setting"], maintain_order=True):
        lines.append(SETTINGS[str(setting)])
        width = max(len(name) for name in part["ranker"])
        ordered = part.sort("capability", "score", descending=[False, True])
        lines += [
            f"  {row['capability']:<21}  {row['ranker']:<{width}}  "
            f"{row['score']:6.3f}  ({row['low']:.3f} to {row['high']:.3f})"
            for row in ordered.iter_rows(named=True)
        ]
    for name in dict.fromkeys(submission.results["ranker"]):
        own = submission.results.filter(submission.results["ranker"] == name)
        refused = own.filter(own["not_applicable"].is_not_null())
        if refused.height:
            lines.append(f"{name}: {refused.height} of {own['world'].n_unique()} worlds are not applicable")
    return lines


def _plain(submission: Submission) -> dict[str, Any]:
    from rankloop.suite.report import capability_scores

    refused = submission.results.filter(submission.results["not_applicable"].is_not_null())
    return {
        "scores": capability_scores(submission.results).to_dicts(),
        "not_applicable": refused.select("ranker", "world", "not_applicable").to_dicts(),
        "provenance": submission.provenance,
    }
