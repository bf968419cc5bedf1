"""The command `rankloop evaluate`: what rankers would have been worth, from the log of another one."""

from __future__ import annotations

import inspect
import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from rankloop.extras import require

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from rankloop import logs
    from rankloop.base import Ranker
    from rankloop.feedback import LoggedLists

_LOGGED = "as logged"


class Answer(NamedTuple):
    """What one estimator says of one ranker, or why it does not."""

    ranker: str
    found: logs.Evaluation | None
    words: str


def evaluate(
    log: Annotated[
        Path, typer.Argument(metavar="LOG", help="Lists with propensities: JSON lines, CSV or Parquet.")
    ],
    ranker: Annotated[
        list[str],
        typer.Option(
            metavar="RANKER",
            help="A saved ranker's file, a ranker by its name, or items such as 3,1,2 (for a log with features: weights"
            " of features such as 0.5,-1.2); repeatable.",
        ),
    ],
    estimator: Annotated[
        str,
        typer.Option(help="ips, self-normalised, item-position, doubly-robust or switch."),
    ] = "doubly-robust",
    confidence: Annotated[float, typer.Option(help="The level of the intervals.")] = 0.95,
    first_position: Annotated[int, typer.Option(help="What a table calls the top position.")] = 1,
    explore: Annotated[
        bool,
        typer.Option(
            "--explore/--no-explore",
            help="Lists as a ranker draws them, or the order that it estimates to be best (for a log with features).",
        ),
    ] = True,
    seed: Annotated[int, typer.Option(help="Seed of the rankings that a ranker is asked for.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("results/evaluate"),
    as_json: Annotated[bool, typer.Option("--json", help="The result as JSON, for programs.")] = False,
) -> None:
    """Estimate from a log what other rankers would have earned, in clicks a list.

    The log must have the chance with which each list, or each item at its position, was shown. Where it rarely shows
    what a ranker would, there is no number but a sentence. The items of a saved ranker are numbered as in the log:
    those that occur, shorter names first, then by the alphabet. Lists may bring features: JSON lines with the fields
    candidates and features, for rankers of lists with features. In a table without features each row is an item at
    its position, and counts alone: the numbers are then clicks an impression. JSON lines give clicks a list.

    [b]Examples[/b]

      rankloop evaluate shown.jsonl --ranker Uniform --ranker ranker.npz

      rankloop evaluate shown.csv --ranker 3,1,2 --estimator switch --json

      rankloop evaluate documents.jsonl --ranker pdgd.npz --ranker 0.5,-1.2 --no-explore
    """
    require("matplotlib", "polars", "pyarrow", extra="data,plot", for_="evaluate")
    from rankloop import data, logs
    from rankloop.arguments import one_of
    from rankloop.logs.evaluation import ESTIMATORS
    from rankloop.plotting import figures

    if not log.is_file():
        raise ValueError(f"there is no file {log}")
    one_of("estimator", estimator, ESTIMATORS)
    lists = data.read_logged_lists(log, first_position=first_position)
    answers = [Answer(_LOGGED, logs.on_policy(lists, confidence=confidence), "")]
    how = {"estimator": estimator, "confidence": confidence, "explore": explore, "seed": seed}
    answers += [_ask(text, lists, how) for text in ranker]
    out.mkdir(parents=True, exist_ok=True)
    picture = out / f"{lists.name}-{estimator}.png"
    figures.save(draw(answers, lists, estimator), picture, ending="png")
    if as_json:
        typer.echo(json.dumps(_plain(answers, lists, estimator), indent=2, ensure_ascii=False))
        return
    typer.echo(str(lists))
    width = max(len(answer.ranker) for answer in answers)
    for answer in answers:
        typer.echo(f"{answer.ranker:<{width}}  {_sentence(answer, _unit(lists))}")
    typer.echo(f"Picture: {picture}")


def _ask(text: str, lists: LoggedLists, how: dict[str, Any]) -> Answer:
    from rankloop import logs

    policy = _policy(text, lists)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", logs.PropensityWarning)
        try:
            found = logs.evaluate(lists, policy, **how)
        except logs.TooFewSamples as refusal:
            return Answer(text, None, f"cannot tell: {refusal}")
        except ValueError as error:
            raise ValueError(f"--ranker {text}: {error}") from None
    words = [str(one.message) for one in caught if issubclass(one.category, logs.PropensityWarning)]
    return Answer(text, found, "; ".join(words))


def _policy(text: str, lists: LoggedLists) -> Ranker | list[int] | NDArray[np.int64]:
    from rankloop.rankers.registry import find, load

    if Path(text).is_file():
        return load(text)
    if text.endswith(".npz"):
        raise ValueError(f"--ranker {text}: there is no such file")
    if lists.features is not None:
        return _policy_with_features(text, lists)
    if "," in text:
        number = {name: i for i, name in enumerate(lists.item_ids)}
        unknown = [name for name in text.split(",") if name not in number]
        if unknown:
            raise ValueError(f"--ranker {text}: the log has no item {unknown[0]!r}")
        return [number[name] for name in text.split(",")]
    kind = find(text)
    try:
        return kind(n_items=lists.n_items, n_positions=lists.n_positions)  # type: ignore[call-arg]
    except TypeError as error:
        raise ValueError(
            f"--ranker {text}: it needs more than items and positions; save it from Python and give its file ({error})"
        ) from error


def _policy_with_features(text: str, lists: LoggedLists) -> Ranker | NDArray[np.int64]:
    import numpy as np

    from rankloop.rankers.registry import find

    requests = lists.features
    assert requests is not None
    if "," in text:
        try:
            weights = np.array([float(one) for one in text.split(",")])
        except ValueError:
            weights = np.empty(0)
        if len(weights) != requests.n_features:
            raise ValueError(f"--ranker {text}: must be {requests.n_features} weights, one for each feature")
        top = np.full((lists.n_rows, lists.n_positions), -1, np.int64)
        for row in range(lists.n_rows):
            order = np.argsort(-(requests[row] * weights).sum(axis=1), kind="stable")[: lists.n_positions]
            top[row, : len(order)] = order
        return top
    kind = find(text)
    known = inspect.signature(kind).parameters
    wanted = {"n_features": requests.n_features}
    if "n_items" not in known:  # which must go with the number of positions
        wanted["n_positions"] = lists.n_positions
    try:
        return kind(**{name: value for name, value in wanted.items() if name in known})
    except TypeError as error:
        raise ValueError(
            f"--ranker {text}: it needs more than features and positions; save it from Python and give its file"
            f" ({error})"
        ) from error


def _unit(lists: LoggedLists) -> str:
    """What the numbers count: in a table each row is one item at its position."""
    one_by_one = lists.items.shape[1] == 1 and lists.n_positions > 1
    return "clicks an impression" if one_by_one else "clicks a list"


def _sentence(answer: Answer, unit: str) -> str:
    if answer.found is None:
        return answer.words
    found = answer.found
    told = f"{found.value:.4f} {unit}, {found.confidence:.0%} interval {found.low:.4f} to {found.high:.4f}"
    told += f", effective size {found.effective_size:,.0f} of {found.n_rows:,}"
    if found.draw_error:
        told += (
            f", standard error {found.standard_error:.4f} of which drawing lists is {found.draw_error:.4f}"
        )
    if found.bias:
        told += f", of which clipping may be {found.bias:.4f}"
    return told + (f"; warning: {answer.words}" if answer.words else "")


def _plain(answers: list[Answer], lists: LoggedLists, estimator: str) -> dict[str, Any]:
    names = ("value", "low", "high", "standard_error", "effective_size", "mean_weight", "bias", "draw_error")
    return {
        "log": lists.name,
        "rows": lists.n_rows,
        "unit": _unit(lists),
        "estimator": estimator,
        "rankers": [
            {"ranker": answer.ranker, "words": answer.words}
            | ({} if answer.found is None else {name: getattr(answer.found, name) for name in names})
            for answer in answers
        ],
    }


def draw(answers: list[Answer], lists: LoggedLists, estimator: str) -> Figure:
    """The estimates with their intervals, a row for each ranker that the log can tell of."""
    from rankloop.plotting import figures

    known = [(answer.ranker, answer.found) for answer in answers if answer.found is not None]
    silent = [answer.ranker for answer in answers if answer.found is None]
    left_out = f" The log cannot tell of {', '.join(silent)}." if silent else ""
    figure, (axes,) = figures.canvas(
        title="What the log says of other rankers",
        subtitle=f"{lists.name}: {lists.n_rows:,} lists",
        caption=(
            f"{_unit(lists).capitalize()} by the {estimator} estimator; "
            f"bars are {known[0][1].confidence:.0%} intervals.{left_out}"
        ),
        height=2.6 + 0.45 * len(known),
    )
    for row, (name, found) in enumerate(known[::-1]):
        figures.dot(
            axes,
            found.value,
            row,
            error=(found.high - found.low) / 2,
            colour=figures.MUTED if name == _LOGGED else figures.BLUE,
            filled=name != _LOGGED,
        )
    figures.name_axes(axes, x=_unit(lists), y="")
    figures.row_axis(axes, [Path(name).name for name, _ in known])
    return figures.finish(figure)
