"""The report on submissions: charts and leaderboards on one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

import polars as pl

from rankloop import plotting
from rankloop.plotting import STYLE, inline
from rankloop.suite import chart
from rankloop.suite.scores import capability_scores
from rankloop.suite.submission import Submission
from rankloop.suite.world import SETTINGS
from rankloop.whole_file import write_whole


def write_report(submissions: Sequence[Submission], out: Path) -> Path:
    """Write ``suite.html`` and a PNG of each chart into `out`, each whole or not at all.

    The same submissions give the same bytes. A ranker that is in two submissions is taken from the first that has it.

    Parameters
    ----------
    submissions : sequence of Submission
        All of the same version of the suite, and all quick or all full.
    out : Path
        A folder.

    Returns
    -------
    Path
        The page.
    """
    results = merged(submissions)
    scores = capability_scores(results)
    first = submissions[0].provenance
    subtitle = f"{first['version']} version of suite {first['suite']}, {first['seeds']} seeds"
    sections = []
    for setting in [one for one in SETTINGS if one in set(scores["setting"])]:
        figure = chart.draw(scores, setting, subtitle=subtitle)
        drawn = {}
        for ending in ("png", "svg"):
            path = out / f"suite-{setting}.{ending}"
            write_whole(
                path,
                lambda part, ending=ending, figure=figure: plotting.save(figure, part, ending=ending),  # type: ignore[misc]
            )
            drawn[ending] = path
        caption, share = plotting.caption_of(figure)
        svg = inline(
            drawn["svg"].read_text(encoding="utf-8"),
            prefix=setting,
            description=caption,
            caption_share=share,
        )
        drawn["svg"].unlink()  # it is in the page
        sections.append(
            f"<section><h2>{escape(SETTINGS[setting].capitalize())}</h2>"
            f'<figure><div class="scroll wide" style="max-width:{80 * figure.get_figwidth():.0f}px">{svg}</div>'
            f"<figcaption>{escape(caption)}</figcaption></figure>"
            f"<h3>Leaderboard</h3>{leaderboard(scores, setting)}</section>"
        )
    page = _page(subtitle, sections, _refusals(results), _provenance(submissions))
    path = out / "suite.html"
    write_whole(path, lambda part: part.write_text(page, encoding="utf-8"))
    return path


def merged(submissions: Sequence[Submission]) -> pl.DataFrame:
    """The rows of all submissions, of each ranker from the first that has it; ValueError where they differ in kind."""
    if not submissions:
        raise ValueError("submissions must be at least one, got none")
    kinds = {tuple(str(one.provenance[key]) for key in ("suite", "version", "seeds")) for one in submissions}
    if len(kinds) > 1:
        told = "; ".join(
            f"suite {suite}, {version}, {seeds} seeds" for suite, version, seeds in sorted(kinds)
        )
        raise ValueError(f"submissions must be of one kind, got {told}")
    frames: list[pl.DataFrame] = []
    known: set[str] = set()
    for one in submissions:
        new = one.results.filter(~pl.col("ranker").is_in(list(known)))
        known |= set(new["ranker"])
        frames.append(new)
    return pl.concat(frames)


def leaderboard(scores: pl.DataFrame, setting: str) -> str:
    """A table: a row for each ranker, a column for each capability, the best of each column in bold."""
    board, capabilities = chart.board(scores, setting), chart.columns(scores, setting)
    part = scores.filter(pl.col("setting") == setting)
    own = {(row["ranker"], row["capability"]): row for row in part.iter_rows(named=True)}
    whole = part.filter(pl.col("worlds") == pl.col("of"))  # who left worlds out is not the best
    best = {
        capability: whole.filter(pl.col("capability") == capability)["score"].max()
        for capability in capabilities
    }
    head = "".join(
        f'<th class="number" style="white-space:normal">{escape(name)}</th>'
        for name in ("mean", *capabilities)
    )
    lines = []
    for row in board.iter_rows(named=True):
        cells = [f"<td>{escape(row['ranker'])}</td>", f'<td class="number">{_rounded(row["mean"])}</td>']
        for capability in capabilities:
            found = own.get((row["ranker"], capability))
            if found is None:
                cells.append('<td class="number quiet">n/a</td>')
                continue
            text = _rounded(found["score"])
            text = f"<b>{text}</b>" if found["score"] == best[capability] else text
            text += f"<sup>{found['worlds']}/{found['of']}</sup>" if found["worlds"] < found["of"] else ""
            title = f"{found['low']:.3f} to {found['high']:.3f}, {found['runs']} runs"
            cells.append(f'<td class="number" title="{title}">{text}</td>')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return (
        f'<div class="scroll"><table><thead><tr><th>ranker</th>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _rounded(value: float | None) -> str:
    return "n/a" if value is None else f"{round(value, 2) + 0.0:.2f}"  # never -0.00


def _refusals(results: pl.DataFrame) -> str:
    refused = results.filter(pl.col("not_applicable").is_not_null())
    lines = []
    for (ranker, reason), part in refused.group_by(["ranker", "not_applicable"], maintain_order=True):
        worlds = ", ".join(part["world"])
        lines.append(
            f"<tr><td>{escape(str(ranker))}</td><td>{escape(str(reason))}</td><td>{escape(worlds)}</td></tr>"
        )
    if not lines:
        return "<p>Every ranker played in every world.</p>"
    return (
        '<div class="scroll"><table><thead><tr><th>ranker</th><th>why</th><th>worlds</th></tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _provenance(submissions: Sequence[Submission]) -> str:
    parts = []
    for number, one in enumerate(submissions, start=1):
        told = one.provenance
        rows = {
            "rankers": ", ".join(told["rankers"]),
            "versions": ", ".join(f"{name} {version}" for name, version in told["versions"].items()),
            "machine": told["machine"],
            "code": told["code"],
        }
        listed = "".join(
            f"<dt>{escape(name)}</dt><dd>{escape(str(text))}</dd>" for name, text in rows.items()
        )
        parts.append(f"<h3>Submission {number}</h3><dl>{listed}</dl>")
    return "".join(parts)


def _page(subtitle: str, sections: list[str], refusals: str, provenance: str) -> str:
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>rankloop: the suite</title>
<style>{STYLE}</style>
</head>
<body>
<main>
<h1>What rankers can do</h1>
<p class="quiet">{escape(subtitle)}</p>
<p>A score is the share of the way from random lists, 0, to the best in hindsight, 1, for one capability: the
interquartile mean over seeds and worlds. Scores of one setting can be compared with each other,
those of different settings cannot. A fraction beside a score says how many of the worlds could be played; the mean
is over capabilities with all of them, and those who play the most capabilities come first. Small differences are
often chance: a cell shows its interval under the pointer.</p>
{"".join(sections)}
<section><h2>Not applicable</h2>{refusals}</section>
<section><h2>What made it</h2>{provenance}</section>
</main>
</body>
</html>
"""
