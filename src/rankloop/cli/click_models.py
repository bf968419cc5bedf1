"""Click models from pages: compared in a table and a picture, and the chosen one as a file."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer
from matplotlib.ticker import MaxNLocator
from rich import box
from rich.console import Console
from rich.table import Table

from rankloop import data, logs
from rankloop.arguments import one_of
from rankloop.feedback import Sessions
from rankloop.logs.models.fitting import FULL_NAMES
from rankloop.plotting import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALL = "all"


def run(
    files: Sequence[str | Path],
    model: str,
    *,
    query: str | None,
    top: int | None,
    positions: int | None,
    smoothing: float,
    out: Path,
    console: Console | None,
    **reading: Any,
) -> None:
    """The command: words to the console, or JSON where there is none; `reading` goes to `data.read_sessions`."""
    if top is not None:
        raise ValueError(
            "--top leaves out parts of pages, and --model needs whole ones: leave one of them out"
        )
    one_of("--model", model, (*logs.MODELS, ALL))
    pages = data.read_sessions(files, **reading).select(query=query, positions=positions)
    chosen = logs.MODELS if model == ALL else tuple(dict.fromkeys(("rcm", "rctr", model)))
    compared = logs.compare_models(pages, chosen, smoothing=smoothing)
    found = fit_all_pages(pages, compared.best if model == ALL else model, smoothing=smoothing)
    parameters, picture = write(found, compared, out)
    if console is None:
        typer.echo(json.dumps(plain(found, compared), indent=2, ensure_ascii=False))
        return
    tell(found, compared, console)
    typer.echo(f"Parameters: {parameters}")
    typer.echo(f"Picture: {picture}")


def fit_all_pages(sessions: Sessions, model: str, *, smoothing: float) -> logs.FittedModel:
    """The model fitted once more, to all pages."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", logs.ClickModelWarning)
        return logs.fit_model(sessions, model, smoothing=smoothing)


def write(found: logs.FittedModel, compared: logs.ModelComparison, out: Path) -> tuple[Path, Path]:
    """Write the parameters and the picture to the folder `out`."""
    out.mkdir(parents=True, exist_ok=True)
    queries = found.log.query_ids
    name = found.log.name if len(queries) > 1 or queries == ("",) else f"{found.log.name}-{queries[0]}"
    stem = re.sub(r"[^\w.-]+", "-", name)
    parameters, picture = out / f"{stem}-{found.name}.json", out / f"{stem}-models.png"
    found.saved().save(parameters)
    figures.save(draw(compared, found.log), picture, ending="png")
    return parameters, picture


def tell(found: logs.FittedModel, compared: logs.ModelComparison, console: Console) -> None:
    """The comparison as a table, what the chosen model says, and what the log does not tell."""
    console.print(str(found.log), soft_wrap=True, markup=False)
    for reason, count in found.log.bad_rows.items():
        console.print(f"left out of the file: {count:,} rows with {reason}", soft_wrap=True, markup=False)
    late = 1.0 - compared.first
    console.print(f"Fitted to the first {compared.first:.0%} of the pages, tried on the last {late:.0%}.")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, heading in enumerate(
        ("model", "log likelihood", "behind the best", "perplexity", "conditional", "steps")
    ):
        table.add_column(heading, justify="left" if place == 0 else "right")
    for k in np.argsort(compared.behind, kind="stable"):
        fit, score = compared.fits[k], compared.scores[k]
        behind = f"{compared.behind[k]:.4f} ± {compared.behind_error[k]:.4f}" if compared.behind[k] else ""
        table.add_row(
            fit.name,
            f"{score.log_likelihood:.4f}",
            behind,
            f"{score.perplexity:.4f}",
            f"{score.conditional_perplexity:.4f}",
            f"{fit.steps}" + ("" if fit.converged else ", stopped"),
        )
    console.print(table)
    console.print(compared.advice(), soft_wrap=True, markup=False)
    console.print(f"The {FULL_NAMES[found.name]} model, fitted to all pages:", soft_wrap=True)
    for name, estimate in found.shared.items():
        if estimate.value.ndim == 1:
            told = ", ".join(
                f"{value:.3f} ({low:.3f} to {high:.3f})"
                for value, low, high in zip(estimate.value, estimate.low, estimate.high, strict=True)
            )
            words = f"  {name.replace('_', ' ')}, with {found.confidence:.0%} intervals: {told}"
            console.print(words, soft_wrap=True, markup=False)
    looks = ", ".join(f"{look:.3f}" for look in found.examination)
    console.print(f"  examination for a ranker: {looks}", soft_wrap=True, markup=False)
    for sentence in found.warnings:
        console.print(f"warning: {sentence}", soft_wrap=True, markup=False)


def plain(found: logs.FittedModel, compared: logs.ModelComparison) -> dict[str, Any]:
    """The same, for programs."""
    return {
        "use": compared.best,
        "advice": compared.advice(),
        "first": compared.first,
        "models": [
            {
                "model": fit.name,
                "log_likelihood": score.log_likelihood,
                "behind": float(compared.behind[k]),
                "behind_error": float(compared.behind_error[k]),
                "perplexity": score.perplexity,
                "perplexity_by_position": score.perplexity_by_position.tolist(),
                "conditional_perplexity": score.conditional_perplexity,
                "impossible": score.impossible,
                "steps": fit.steps,
                "converged": fit.converged,
                "warnings": list(fit.warnings),
            }
            for k, (fit, score) in enumerate(zip(compared.fits, compared.scores, strict=True))
        ],
        "fitted": found.name,
        "examination": found.examination.tolist(),
        **found.saved().provenance,
    }


def draw(compared: logs.ModelComparison, log: Sessions) -> Figure:
    """How far each model is behind the best, and how often users look at each position under some of them."""
    late = 1.0 - compared.first
    order = np.argsort(compared.behind, kind="stable")
    shown = [k for k in order if compared.behind[k] <= 10.0 * np.median(compared.behind) + 1e-9]
    beyond = [f"{compared.fits[k].name} ({compared.behind[k]:.2f})" for k in order if k not in shown]
    left_out = f" Too far behind to be drawn: {', '.join(beyond)}." if beyond else ""
    figure, (left, right) = figures.canvas(
        title="Which model predicts the clicks of later pages",
        subtitle=f"{log.name}: {log.n_rows:,} pages, {int(log.clicks.sum()):,} clicks",
        caption=(
            f"Models fitted to the first {compared.first:.0%} of the pages and tried on the last {late:.0%}. Left: the"
            " log likelihood of a page that is lost against the best model, in nats, with two standard errors; less is"
            f" better.{left_out} Right: how often users look at each position, by the model advised"
            f" ({compared.best}), by the position-based one, and the raw click rate, each relative to its largest."
        ),
        width=11.0,
        height=5.2,
        columns=2,
    )
    for row, k in enumerate(shown[::-1]):
        name = compared.fits[k].name
        figures.dot(
            left,
            float(compared.behind[k]),
            row,
            error=2.0 * float(compared.behind_error[k]),
            colour=figures.ORANGE if name == compared.best else figures.BLUE,
            filled=name == compared.best,
        )
    figures.name_axes(left, x="log likelihood of a page behind the best", y="")
    figures.row_axis(left, [compared.fits[k].name for k in shown])
    places = np.arange(1, log.n_positions + 1)
    by_name = {fit.name: fit for fit in compared.fits}
    lines = (
        (compared.best, compared.best, figures.ORANGE, False),
        ("pbm", "pbm", figures.BLUE, False),
        ("rctr", "click rate", figures.MUTED, True),
    )
    drawn = set()
    for name, label, colour, dashed in lines:
        if name in by_name and name not in drawn:
            drawn.add(name)
            figures.curve(right, places, by_name[name].examination, label=label, colour=colour, dashed=dashed)
    figures.name_axes(right, x="position", y="examination")
    right.set_ylim(bottom=0.0)
    right.xaxis.set_major_locator(MaxNLocator(10, integer=True))
    return figures.finish(figure)
