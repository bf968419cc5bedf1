"""What `fit-clicks` found: in words, for programs, and as a file of parameters."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import MaxNLocator
from rich import box
from rich.console import Console
from rich.table import Table

from rankloop import logs, plotting
from rankloop.cli.settings import say
from rankloop.data.click_counts import TOO_MANY_CLICKS
from rankloop.logs.click_models import FULL_NAMES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rankloop.feedback import ClickLog, Sessions

_MOST_ROWS = 20  # of items in words and in the picture


class CountsReport:
    """The position-based model, fitted to counts: to be told, for programs, and to be written with a picture."""

    def __init__(self, log: ClickLog, *, smoothing: float) -> None:
        self.log = log
        with warnings.catch_warnings():  # it tells them itself
            warnings.simplefilter("ignore", logs.ClickModelWarning)
            self.fitted = logs.fit_pbm(log, smoothing=smoothing)

    def tell(self, console: Console) -> None:
        """The estimates as two tables, after a summary of the log and its warnings."""
        fitted, log = self.fitted, self.fitted.log
        say(console, str(log))
        lost = log.bad_clicks
        clicks = int(log.clicked.sum()) + sum(lost.values())
        for reason, count in log.bad_rows.items():
            words = f"left out of the file: {count:,} rows with {reason}"
            if reason in lost:
                words += f", and {lost[reason]:,} clicks on them ({lost[reason] / clicks:.1%} of all)"
            if reason == TOO_MANY_CLICKS:
                words += "; --clip counts them as clicked every time"
            say(console, words)
        for sentence in fitted.warnings:
            say(console, f"warning: {sentence}")
        settled = "converged" if fitted.converged else "was stopped, not converged,"
        steps, likelihood = len(fitted.trace), fitted.trace[-1]
        console.print(f"The fit {settled} after {steps} steps, log likelihood {likelihood:,.2f}")
        interval = f"{fitted.confidence:.0%} interval"
        items = _table("item", "attraction", interval, "shown", "clicked")
        for i in range(min(len(fitted.items), _MOST_ROWS)):
            low, high = fitted.attraction_interval[i]
            items.add_row(
                fitted.names[i],
                f"{fitted.attraction[i]:.4f}",
                f"{low:.4f} to {high:.4f}",
                f"{fitted.shown[i]:,}",
                f"{fitted.clicked[i]:,}",
            )
        console.print(items)
        if len(fitted.items) > _MOST_ROWS:
            console.print(f"and {len(fitted.items) - _MOST_ROWS:,} items more")
        places = _table("position", "examination", interval, "click rate")
        for j, rate in enumerate(_click_rates(fitted)):
            low, high = fitted.examination_interval[j]
            places.add_row(
                f"{j + 1}", f"{fitted.examination[j]:.4f}", f"{low:.4f} to {high:.4f}", f"{rate:.4f}"
            )
        console.print(places)

    def plain(self) -> dict[str, Any]:
        """The parameters and their origin."""
        parameters = self.fitted.parameters()
        return {
            "items": list(parameters.items),
            "attraction": parameters.attraction.tolist(),
            "examination": parameters.examination.tolist(),
            **parameters.provenance,
        }

    def write(self, out: Path) -> tuple[Path, Path]:
        """Write parameters and picture to the folder `out`."""
        stem = _stem(self.log, out)
        parameters, picture = out / f"{stem}.json", out / f"{stem}.png"
        self.fitted.save(parameters)
        plotting.save(draw_counts(self.fitted), picture, ending="png")
        return parameters, picture


def draw_counts(fitted: logs.FittedPBM) -> Figure:
    """Attraction of the items and examination of the positions, with their intervals."""
    queries = fitted.log.query_ids
    of = f"query {queries[0]}" if len(queries) == 1 and queries[0] else f"{len(queries):,} queries"
    of = fitted.log.name if queries == ("",) else f"{fitted.log.name}, {of}"
    figure, (left, right) = plotting.canvas(
        title="What users like, and where they look",
        subtitle=f"{of}: {fitted.shown.sum():,} impressions, {fitted.clicked.sum():,} clicks",
        caption=(
            f"A position-based model of maximum likelihood; bars are {fitted.confidence:.0%} intervals. Examination is"
            f" relative to position {fitted.reference + 1}. The raw click rate of a position, drawn with its largest"
            " value at 1, mixes where users look with what was shown there."
        ),
        width=10.5,
        columns=2,
    )
    count = min(len(fitted.items), _MOST_ROWS)
    _bars(left, fitted.attraction[:count], fitted.attraction_interval[:count], plotting.BLUE)
    plotting.name_axes(left, x="item, best first", y="attraction")
    _bars(right, fitted.examination, fitted.examination_interval, plotting.ORANGE)
    rates = _click_rates(fitted)
    places = np.arange(1, len(rates) + 1)
    plotting.curve(right, places, rates / rates.max(), label="click rate", colour=plotting.MUTED, dashed=True)
    plotting.name_axes(right, x="position", y="examination")
    for axes in (left, right):
        axes.set_ylim(bottom=0.0)
        axes.xaxis.set_major_locator(MaxNLocator(10, integer=True))
    return plotting.finish(figure)


def _bars(axes: Any, y: Any, ends: Any, colour: str) -> None:
    known = np.isfinite(y)
    x, y, ends = np.arange(1, len(y) + 1)[known], y[known], ends[known]
    away = np.abs(ends - y[:, None]).T
    axes.errorbar(
        x, y, yerr=away, fmt="o", color=colour, markersize=6, capsize=3, linewidth=1.6, label="_fit"
    )


def _click_rates(fitted: logs.FittedPBM) -> Any:
    shown, clicked = fitted.log.matrices()
    return clicked.sum(axis=0) / np.maximum(shown.sum(axis=0), 1)


class PagesReport:
    """Click models, compared on the later pages of a log; the chosen one, or the best, is fitted to all pages."""

    def __init__(self, log: Sessions, models: Sequence[str], chosen: str | None, *, smoothing: float) -> None:
        self.log = log
        self.compared = logs.compare_models(log, models, smoothing=smoothing)
        with warnings.catch_warnings():  # it tells them itself
            warnings.simplefilter("ignore", logs.ClickModelWarning)
            self.fitted = logs.fit_model(log, chosen or self.compared.best, smoothing=smoothing)

    def tell(self, console: Console) -> None:
        """The comparison as a table, what the chosen model says, and what the log does not tell."""
        fitted, compared = self.fitted, self.compared
        say(console, str(fitted.log))
        for reason, count in fitted.log.bad_rows.items():
            say(console, f"left out of the file: {count:,} rows with {reason}")
        late = 1.0 - compared.first
        console.print(f"Fitted to the first {compared.first:.0%} of the pages, tried on the last {late:.0%}.")
        table = _table("model", "log likelihood", "behind the best", "perplexity", "conditional", "steps")
        for k in np.argsort(compared.behind, kind="stable"):
            fit, score, behind = compared.fits[k], compared.scores[k], compared.behind[k]
            table.add_row(
                fit.name,
                f"{score.log_likelihood:.4f}",
                f"{behind:.4f} ± {compared.behind_error[k]:.4f}" if behind else "",
                f"{score.perplexity:.4f}",
                f"{score.conditional_perplexity:.4f}",
                f"{fit.steps}" + ("" if fit.converged else ", stopped"),
            )
        console.print(table)
        say(console, compared.advice())
        console.print(f"The {FULL_NAMES[fitted.name]} model, fitted to all pages:", soft_wrap=True)
        for name, estimate in fitted.shared.items():
            if estimate.value.ndim == 1:
                values = ", ".join(
                    f"{value:.3f} ({low:.3f} to {high:.3f})"
                    for value, low, high in zip(estimate.value, estimate.low, estimate.high, strict=True)
                )
                say(console, f"  {name.replace('_', ' ')}, with {fitted.confidence:.0%} intervals: {values}")
        looks = ", ".join(f"{look:.3f}" for look in fitted.examination)
        say(console, f"  examination for a ranker: {looks}")
        for sentence in fitted.warnings:
            say(console, f"warning: {sentence}")

    def plain(self) -> dict[str, Any]:
        fitted, compared = self.fitted, self.compared
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
            "fitted": fitted.name,
            "examination": fitted.examination.tolist(),
            **fitted.saved().provenance,
        }

    def write(self, out: Path) -> tuple[Path, None]:
        """Write the parameters to the folder `out`; there is no picture."""
        parameters = out / f"{_stem(self.log, out)}-{self.fitted.name}.json"
        self.fitted.saved().save(parameters)
        return parameters, None


Report = CountsReport | PagesReport


def _stem(log: ClickLog | Sessions, out: Path) -> str:
    """The beginning of the names of files about `log` in the folder `out`, which is made."""
    out.mkdir(parents=True, exist_ok=True)
    queries = log.query_ids
    name = log.name if len(queries) > 1 or queries == ("",) else f"{log.name}-{queries[0]}"
    return re.sub(r"[^\w.-]+", "-", name)


def _table(*headings: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place == 0 else "right")
    return table
