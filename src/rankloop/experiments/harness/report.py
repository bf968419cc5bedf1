"""One HTML page over all experiments found in a folder. It is self-contained: no network, no other file."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

from rankloop.experiments import names
from rankloop.experiments.experiment import WORDED
from rankloop.experiments.harness.progress import duration
from rankloop.experiments.harness.results_folder import ResultFolder
from rankloop.plotting import STYLE, inline, table_of
from rankloop.whole_file import write_whole

Record = dict[str, Any]  # claims.json as read


def write_report(out: Path) -> Path:
    """Write ``<out>/report.html`` from what lies in `out`, and return its path."""
    path = out / "report.html"
    page = _page(out, read_records(out))
    write_whole(path, lambda part: part.write_text(page, encoding="utf-8"))
    return path


def read_records(out: Path) -> list[Record]:
    """Every experiment's ``claims.json`` under `out`: ours first, in their order, then others by name."""
    found = {
        file.parent.name: _of_today(json.loads(file.read_text(encoding="utf-8")))
        for file in sorted(out.glob("*/claims.json"))
    }
    ours = [name for name in names() if name in found]
    return [found[name] for name in [*ours, *(name for name in found if name not in ours)]]


def _of_today(record: Record) -> Record:
    # Earlier versions stored less of a claim.
    earlier = {"name": "", "fixed": False, "mutation": ""}
    return {"notes": []} | record | {"claims": [earlier | claim for claim in record["claims"]]}


def _page(out: Path, records: list[Record]) -> str:
    body = "\n".join(_section(out, record) for record in records)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>rankloop: what the papers claim, and what we measure</title>
<style>{STYLE}</style>
</head>
<body>
<main>
<h1>What the papers claim, and what we measure</h1>
{_overview(records)}
{body}
</main>
</body>
</html>
"""


def _overview(records: list[Record]) -> str:
    if not records:
        return "<p>No experiment has been run yet.</p>"
    claims = [claim for record in records for claim in record["claims"]]
    held = sum(claim["holds"] for claim in claims)
    fixed = sum(claim["fixed"] for claim in claims)
    quick = sum(record["quick"] for record in records)
    note = (
        f" {_count(quick, 'experiment')} ran with quick settings: seconds instead of the full size."
        if quick
        else ""
    )
    rows = "".join(
        f'<tr><td><a href="#{escape(record["experiment"])}">{escape(record["experiment"])}</a></td>'
        f"<td>{escape(record['title'])}</td><td>{_verdict(record)}</td>"
        f"<td>{'quick' if record['quick'] else 'full'}</td>"
        f'<td class="number">{duration(record["seconds"])}</td></tr>'
        for record in records
    )
    return (
        f"<p>{held} of {_count(len(claims), 'claim')} hold, in {_count(len(records), 'experiment')}.{note}</p>"
        f"<p>{_count(fixed, 'claim')} stood before the run, by a theorem, the paper or a reference; the others were "
        "worded, or their margins chosen, after a run had been seen. Each names a mistake under which it breaks.</p>"
        '<div class="scroll"><table><thead><tr><th>Experiment</th><th>Shows</th><th>Claims</th><th>Settings</th>'
        f'<th class="number">Work</th></tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _section(out: Path, record: Record) -> str:
    name = escape(record["experiment"])
    departures = "".join(f"<li>{escape(text)}</li>" for text in record["departures"])
    return f"""<section id="{name}">
<div class="head"><h2>{escape(record["title"])}</h2>{_verdict(record)}</div>
<p class="quiet"><code>{name}</code> · {escape(record["paper"])}</p>
<p>{escape(record["caption"])}</p>
{"".join(_figure(out, record, picture) for picture in record["figures"])}
<h3>Claims</h3>
{"".join(f"<p>{escape(note)}</p>" for note in record["notes"])}
{_claims(record)}
{"<h3>Numbers</h3>" + table_of(record["summary"]) if record["summary"] else ""}
{"<h3>Departures from the paper</h3><ul>" + departures + "</ul>" if departures else ""}
<h3>How this was made</h3>
{_making(record)}
</section>"""


def _figure(out: Path, record: Record, picture: Record) -> str:
    folder = ResultFolder(out=out, experiment=record["experiment"])
    text = folder.figure(picture["name"], "svg").read_text(encoding="utf-8")
    prefix = f"{record['experiment']}-{picture['name']}"
    drawn = inline(
        text, prefix=prefix, description=picture["caption"], caption_share=picture["caption_share"]
    )
    caption = f"<figcaption>{escape(picture['caption'])}</figcaption>"
    return f'<figure><div class="scroll wide">{drawn}</div>{caption}</figure>'


def _verdict(record: Record) -> str:
    claims = record["claims"]
    broken = sum(not claim["holds"] for claim in claims)
    if broken:
        return f'<span class="verdict bad">✗ {broken} of {len(claims)} broken</span>'
    return f'<span class="verdict good">✓ {_all_hold(len(claims))}</span>'


def _all_hold(count: int) -> str:
    return {0: "no claims", 1: "1 holds"}.get(count, f"all {count} hold")


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" + ("" if number == 1 else "s")


def _claims(record: Record) -> str:
    rows = "".join(
        f'<tr><td><span class="verdict {"good" if claim["holds"] else "bad"}">'
        f"{'✓ holds' if claim['holds'] else '✗ broken'}</span></td>"
        f'<td>{escape(claim["text"])}<br><code class="quiet">{escape(claim["name"])}</code></td>'
        f'<td class="measured">{escape(claim["measured"])}</td>'
        f'<td class="quiet">{escape(claim["source"])}</td><td class="quiet">{WORDED[claim["fixed"]]}</td>'
        f'<td class="quiet">{escape(claim["mutation"])}</td></tr>'
        for claim in record["claims"]
    )
    titles = ("", "Claim", "Measured", "Source", "Worded", "Breaks with")
    head = f"<tr>{''.join(f'<th>{title}</th>' for title in titles)}</tr>"
    return f'<table class="claims"><thead>{head}</thead><tbody>{rows}</tbody></table>'


def _setting(value: object) -> str:
    return ", ".join(map(_setting, value)) if isinstance(value, list) else str(value)


def _seeds(seeds: list[int]) -> str:
    if len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]} to {seeds[-1]}"
    return _setting(seeds)


def _making(record: Record) -> str:
    facts = {
        "Settings": "; ".join(f"{key} = {_setting(value)}" for key, value in record["settings"].items()),
        "Seeds": _seeds(record["seeds"]),
        "Work": f"{_count(record['jobs'], 'job')}, {duration(record['seconds'])} of computing in all",
        "Software": ", ".join(f"{name} {version}" for name, version in record["versions"].items()),
        "Machine": record["machine"],
        "Made": f"{record['made']}, version {record['version']} of the experiment",
    }
    items = "".join(f"<dt>{key}</dt><dd>{escape(text)}</dd>" for key, text in facts.items())
    return f"<dl><dt>Command</dt><dd><code>{escape(record['command'])}</code></dd>{items}</dl>"
