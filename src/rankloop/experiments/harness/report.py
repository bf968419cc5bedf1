"""One HTML page over all experiments found in a folder. It is self-contained: no network, no other file."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

from rankloop.experiments import names
from rankloop.experiments.experiment import worded
from rankloop.extras import counted, write_text
from rankloop.plotting import table_of
from rankloop.simulation.play import duration
from rankloop.simulation.report import facts, page, shown_figure, table

Record = dict[str, Any]  # claims.json as read


def write_report(out: Path) -> Path:
    """Write ``<out>/report.html`` from what lies in `out`, and return its path."""
    path = out / "report.html"
    records = read_records(out)
    body = "\n".join([_overview(records), *(_section(out, record) for record in records)])
    title = "what the papers claim, and what we measure"
    write_text(path, page(f"rankloop: {title}", title.capitalize(), body))
    return path


def read_records(out: Path) -> list[Record]:
    """Every experiment's ``claims.json`` under `out`: ours first, in their order, then others by name."""
    records = {
        file.parent.name: _of_today(json.loads(file.read_text(encoding="utf-8")))
        for file in sorted(out.glob("*/claims.json"))
    }
    ours = [name for name in names() if name in records]
    return [records[name] for name in [*ours, *(name for name in records if name not in ours)]]


def _of_today(record: Record) -> Record:
    # Earlier versions stored less of a claim.
    earlier = {"name": "", "fixed": False, "mutation": ""}
    verdicts = {True: "holds", False: "BROKEN"}
    claims = [earlier | {"verdict": verdicts[claim["holds"]]} | claim for claim in record["claims"]]
    return {"notes": []} | record | {"claims": claims}


def _overview(records: list[Record]) -> str:
    if not records:
        return "<p>No experiment has been run yet.</p>"
    claims = [claim for record in records for claim in record["claims"]]
    held = sum(claim["holds"] for claim in claims)
    fixed = sum(bool(claim["fixed"]) for claim in claims)
    quick = sum(record["quick"] for record in records)
    note = (
        f" {counted(quick, 'experiment')} ran with quick settings: seconds instead of the full size."
        if quick
        else ""
    )
    rows = [
        f'<td><a href="#{escape(record["experiment"])}">{escape(record["experiment"])}</a></td>'
        f"<td>{escape(record['title'])}</td><td>{_verdict(record)}</td>"
        f"<td>{'quick' if record['quick'] else 'full'}</td>"
        f'<td class="number">{duration(record["seconds"])}</td>'
        for record in records
    ]
    head = "".join(f"<th>{title}</th>" for title in ("Experiment", "Shows", "Claims", "Settings"))
    head += '<th class="number">Work</th>'
    return (
        f"<p>{held} of {counted(len(claims), 'claim')} hold, in {counted(len(records), 'experiment')}.{note}</p>"
        f"<p>{counted(fixed, 'claim')} stood before the run, by a theorem, the paper or a reference; the others were "
        "worded, or their margins chosen, after a run had been seen. Each names a mistake under which it breaks.</p>"
        + table(head, rows)
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
    experiment, name = record["experiment"], picture["name"]
    return shown_figure(
        out / experiment / f"{name}.svg",
        prefix=f"{experiment}-{name}",
        caption=picture["caption"],
        share=picture["caption_share"],
    )


def _verdict(record: Record) -> str:
    claims = record["claims"]
    broken = sum(claim["verdict"] == "BROKEN" for claim in claims)
    if broken:
        return f'<span class="verdict bad">✗ {broken} of {len(claims)} broken</span>'
    held = sum(claim["holds"] for claim in claims)
    if held < len(claims):
        return f'<span class="verdict good">✓ {held} of {len(claims)} hold, the others failed before</span>'
    all_hold = {0: "no claims", 1: "1 holds"}.get(len(claims), f"all {len(claims)} hold")
    return f'<span class="verdict good">✓ {all_hold}</span>'


def _claims(record: Record) -> str:
    rows = "".join(
        f'<tr><td><span class="verdict {"good" if claim["holds"] else "bad"}">'
        f"{'✓' if claim['holds'] else '✗'} {claim['verdict'].lower()}</span></td>"
        f'<td>{escape(claim["text"])}<br><code class="quiet">{escape(claim["name"])}</code></td>'
        f'<td class="measured">{escape(claim["measured"])}</td>'
        f'<td class="quiet">{escape(claim["source"])}</td><td class="quiet">{worded(claim["fixed"])}</td>'
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
    making = {
        "Settings": "; ".join(f"{key} = {_setting(value)}" for key, value in record["settings"].items()),
        "Seeds": _seeds(record["seeds"]),
        "Work": f"{counted(record['jobs'], 'job')}, {duration(record['seconds'])} of computing in all",
        "Software": ", ".join(f"{name} {version}" for name, version in record["versions"].items()),
        "Machine": record["machine"],
        "Made": f"{record['made']}, version {record['version']} of the experiment",
    }
    command = f"<dt>Command</dt><dd><code>{escape(record['command'])}</code></dd>"
    return facts(making).replace("<dl>", f"<dl>{command}", 1)
