"""What a full run leaves in the repository: `.venv/bin/python docs/tables/reproduced.py results/papers`.

The page docs/reproduced.md, with every claim as `rankloop reproduce all` and `python -m tests.redrawn` judged it; and
tests/experiments/full/, the rows that the claims need, on which the tests judge them again.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import polars as pl

from rankloop import experiments
from rankloop.experiments.experiment import Experiment, worded
from rankloop.experiments.mutations import survivors

ROOT = Path(__file__).parents[2]
PAGE, ROWS = ROOT / "docs" / "reproduced.md", ROOT / "tests" / "experiments" / "full"
HEAD = """# The full run

`rankloop reproduce all`, claim by claim, as it was measured: {held} of {claims} claims hold, in {experiments}
experiments with {jobs:,} jobs. *In other draws* is how often a claim fails when as many runs are drawn anew from those
that were played (`python -m tests.redrawn`). [Experiments](experiments.md) says what was played and what follows, and
`docs/tables/reproduced.py` made this page.{notes}
"""


def told(experiment: Experiment, rows: pl.DataFrame) -> Any:
    """All that the claims say of these rows, or None where something is missing."""
    try:
        return [(claim.name, claim.holds, claim.measured) for claim in experiment.claims(rows, quick=False)]
    except Exception:  # whatever a claim does where its rows are gone
        return None


def thinned(experiment: Experiment, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of few rounds, with the columns that are needed, of which the claims say the same word for word."""
    wanted = told(experiment, rows)
    if "round" in rows.columns:
        kept = rows["round"].unique().sort().to_list()
        for size in (100, 50, 20, 10):  # the first and the last of so many: claims may look at whole phases
            fewer = [t for i, t in enumerate(kept) if i % size in (0, size - 1)]
            if told(experiment, rows.filter(pl.col("round").is_in(fewer))) == wanted:
                kept = fewer
                break
        size = len(kept) // 2
        while size:
            for start in range(0, len(kept), size):
                fewer = kept[:start] + kept[start + size :]
                if told(experiment, rows.filter(pl.col("round").is_in(fewer))) == wanted:
                    kept = fewer
            size //= 2
        rows = rows.filter(pl.col("round").is_in(kept))
    for column in rows.columns:
        fewer = rows.drop(column)
        if told(experiment, fewer) == wanted:
            try:
                survivors(experiment, fewer, quick=False)
            except Exception:  # its mutation needs it
                continue
            rows = fewer
    return rows


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def section(record: dict[str, Any], redrawn: dict[str, float]) -> list[str]:
    """The claims of one experiment as a table."""
    about = f"{record['title']}. {record['jobs']:,} jobs. {' '.join(record['notes'])}".strip()
    lines = [f"## {record['experiment']}", "", about, ""]
    lines += ["| claim | | measured | worded | in other draws |", "|---|---|---|---|---:|"]
    for claim in record["claims"]:
        cells = (
            f"`{claim['name']}`: {claim['text']}",
            claim.get("verdict", "holds" if claim["holds"] else "BROKEN"),
            claim["measured"],
            worded(claim["fixed"]),
        )
        lines.append(f"| {' | '.join(map(_cell, cells))} | {redrawn[claim['name']]:.1%} |")
    return [*lines, ""]


def main(folder: str, played_with: str = "") -> None:
    """Write the page and the rows; `played_with` is a sentence on the code, where it is not the present one."""
    shutil.rmtree(ROWS, ignore_errors=True)
    ROWS.mkdir()
    records, lines = [], []
    for name in experiments.names():
        of = Path(folder, name)
        records.append(json.loads((of / "claims.json").read_text()))
        lines += section(records[-1], json.loads((of / "redrawn.json").read_text()))
        rows = thinned(experiments.get(name), pl.read_parquet(of / "results.parquet"))
        rows.write_parquet(ROWS / f"{name}.parquet", compression_level=19)
        print(f"{name}: {rows.shape} kept, {(ROWS / f'{name}.parquet').stat().st_size:,} bytes", flush=True)
    claims = [claim for record in records for claim in record["claims"]]
    counts: dict[str, Any] = {"held": sum(claim["holds"] for claim in claims), "claims": len(claims)}
    counts |= {"notes": f"\n\n{played_with}" if played_with else ""}
    counts |= {"experiments": len(records), "jobs": sum(record["jobs"] for record in records)}
    PAGE.write_text("\n".join([HEAD.format(**counts), *lines]).rstrip() + "\n")
    print(f"{PAGE}: {counts}")


if __name__ == "__main__":
    main(*sys.argv[1:3])
