"""One experiment from jobs to verdict: run, gather, test the claims, draw, and write the results."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from rich.console import Console

from rankloop.experiments.experiment import Claim, Experiment, Plain, shared_settings
from rankloop.experiments.harness.job_runner import run_jobs
from rankloop.experiments.harness.results_folder import ResultFolder
from rankloop.simulation.executors import Executor
from rankloop.simulation.provenance import machine, versions
from rankloop.whole_file import write_whole


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a reproduction found."""

    experiment: str
    claims: tuple[Claim, ...]
    notes: tuple[str, ...]
    ran: int
    resumed: int
    seconds: float

    @property
    def holds(self) -> bool:
        return all(claim.holds for claim in self.claims)


def reproduce(
    experiment: Experiment,
    *,
    out: Path,
    quick: bool = False,
    workers: int | None = None,
    fresh: bool = False,
    console: Console | None = None,
    pdf: bool = False,
    titles: bool = True,
    executor: str | Executor = "threads",
) -> Verdict:
    """Run `experiment` and write ``results.parquet``, figures as PNG and SVG, and ``claims.json`` under `out`.

    `pdf` writes the figures as PDF, too; without `titles` neither the title nor the caption is part of them. See
    `rankloop.experiments.harness.job_runner.run_jobs` for the other parameters.
    """
    from rankloop import plotting

    outcome = run_jobs(
        experiment, out=out, quick=quick, workers=workers, fresh=fresh, console=console, executor=executor
    )
    folder = ResultFolder(out=out, experiment=experiment.label)
    write_whole(folder.results, outcome.results.write_parquet)
    claims = tuple(experiment.claims(outcome.results, quick=quick))
    if len({claim.name for claim in claims}) < len(claims):
        raise ValueError(f"experiment {experiment.name!r} has two claims of the same name")
    notes = experiment.notes(outcome.results)
    pictures: list[Plain] = []
    for name, figure in experiment.figures(outcome.results, quick=quick).items():
        for ending in plotting.ENDINGS if pdf else plotting.ENDINGS[:2]:
            save = partial(plotting.save, figure, ending=ending, titles=titles)
            write_whole(folder.figure(name, ending), save)
        caption, share = plotting.caption_of(figure)
        share = share if titles else 0.0
        pictures.append({"name": name, "caption": caption, "caption_share": round(share, 6)})
    table = experiment.summary(outcome.results)
    record: dict[str, Plain] = {
        "experiment": experiment.label,
        "version": experiment.version,
        "title": experiment.title,
        "paper": experiment.paper,
        "caption": experiment.caption,
        "departures": list(experiment.departures),
        "quick": quick,
        "holds": all(claim.holds for claim in claims),
        "claims": [claim.record() for claim in claims],
        "notes": list(notes),
        "figures": pictures,
        "summary": [] if table is None else [dict(row) for row in table.iter_rows(named=True)],
        "settings": shared_settings(outcome.jobs),
        "seeds": sorted({job.seed for job in outcome.jobs}),  # type: ignore[dict-item]
        "jobs": len(outcome.jobs),
        "seconds": round(outcome.seconds, 3),
        "command": " ".join(
            ["rankloop reproduce", experiment.name, *experiment.options, *(["--quick"] if quick else [])]
        ),
        "versions": versions(),  # type: ignore[dict-item]
        "machine": machine(),
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    # Last, because the report shows an experiment as soon as it finds this file.
    write_whole(folder.claims, lambda part: part.write_text(text, encoding="utf-8"))
    return Verdict(experiment.label, claims, notes, outcome.ran, outcome.resumed, outcome.seconds)
