"""The folder of a comparison: runs, summary and differences as Parquet, figures, and a page."""

from __future__ import annotations

from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankloop.extras import require
from rankloop.simulation import trace_file
from rankloop.simulation.comparison_table import counted, facts
from rankloop.simulation.trace import Trace
from rankloop.whole_file import write_whole

if TYPE_CHECKING:
    from rankloop.simulation.comparison import Comparison

RUNS = "runs.parquet"


def write_folder(found: Comparison, folder: Path, *, titles: bool) -> Path:
    """Write everything, the page last, and return its path."""
    require("polars", "matplotlib", extra="data,plot", for_="saving a comparison")
    from rankloop import plotting

    if folder.exists() and not folder.is_dir():
        raise ValueError(f"folder must be a folder, got the file {folder}")
    figure = found.plot(titles=titles)
    made = trace_file.provenance({})
    told = {
        "kind": "comparison",
        "rankers": dict(found.rankers),
        "worlds": dict(found.worlds),
        "measure": found.measure,
        "level": found.level,
        "runs": [
            {"world": world, "ranker": ranker}
            | trace.facts()
            | {"provenance": trace_file.provenance(trace.provenance) if trace.provenance else {}}
            for (world, ranker), runs in found.traces.items()
            for trace in runs
        ],
    }
    trace_file.write(folder / RUNS, found.to_polars().drop("mean_value"), told)
    write_whole(folder / "summary.parquet", found.summary().write_parquet)
    write_whole(folder / "differences.parquet", found.differences().write_parquet)
    for ending in plotting.ENDINGS:
        write_whole(folder / f"comparison.{ending}", partial(plotting.save, figure, ending=ending))
    page = folder / "report.html"
    text = _page(
        found, (folder / "comparison.svg").read_text(encoding="utf-8"), plotting.caption_of(figure), made
    )
    write_whole(page, lambda part: part.write_text(text, encoding="utf-8"))
    return page


def read_folder(folder: Path) -> dict[str, Any]:
    """The arguments of the comparison that was saved there."""
    frame, told = trace_file.read(folder / RUNS, kind="comparison")
    traces: dict[tuple[str, str], list[Trace]] = {}
    n = len(frame) // len(told["runs"])
    for i, run in enumerate(told["runs"]):
        key = (run["world"], run["ranker"])
        traces.setdefault(key, []).append(Trace.of(frame[i * n : (i + 1) * n], run))
    return {name: told[name] for name in ("rankers", "worlds", "measure", "level")} | {
        "traces": {key: tuple(runs) for key, runs in traces.items()}
    }


def _page(found: Comparison, svg: str, caption: tuple[str, float], made: dict[str, Any]) -> str:
    from rankloop.plotting import STYLE, inline, table_of

    text, share = caption
    drawn = inline(svg, prefix="comparison", description=text or "A comparison.", caption_share=share)
    differences = [
        row | {name: _chance(row[name]) for name in ("p", "p_holm")}
        for row in found.differences().rows(named=True)
    ]
    tested = f"<h2>Differences on common seeds</h2>{table_of(differences)}" if differences else ""
    software = ", ".join(f"{name} {version}" for name, version in made["versions"].items())
    title = f"Comparison of {counted(found)}"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<main>
<h1>{escape(title)}</h1>
<section>
<figure><div class="scroll wide">{drawn}</div><figcaption>{escape(text)}</figcaption></figure>
{found.table(form="html")}
{tested}
<h2>Rankers</h2>
{facts(list(found.rankers.items()))}
<h2>Worlds</h2>
{facts(list(found.worlds.items()))}
<h2>How this was made</h2>
{
        facts(
            [
                ("Seeds", ", ".join(map(str, found.seeds))),
                ("Software", software),
                ("Machine", made["machine"]),
                ("Code", made["code"]),
                ("Made", made["made"]),
            ]
        )
    }
</section>
</main>
</body>
</html>
"""


def _chance(p: float | None) -> str:
    return "" if p is None else "below 0.0001" if p < 1e-4 else f"{p:.4f}"
