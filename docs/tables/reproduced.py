"""The page docs/reproduced.md from a full run: `.venv/bin/python docs/tables/reproduced.py results/papers`.

It holds what `rankloop reproduce all` and `python -m tests.redrawn` wrote there, claim by claim.
"""

import json
import sys
from pathlib import Path

from rankloop import experiments
from rankloop.experiments.experiment import worded

PAGE = Path(__file__).parents[1] / "reproduced.md"
HEAD = """# The full run

`rankloop reproduce all`, every claim, as it was measured; made from the results by `docs/tables/reproduced.py`.
{held} of {claims} claims hold, in {experiments} experiments with {jobs:,} jobs.
*In other draws* is how often a claim fails when as many runs are drawn anew from those that were played
(`python -m tests.redrawn`). [Experiments](experiments.md) says what was played and what follows.
"""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def main(folder: str) -> None:
    """Write the page."""
    records = [
        json.loads(file.read_text())
        for name in experiments.names()
        if (file := Path(folder, name, "claims.json")).exists()
    ]
    claims = [claim for record in records for claim in record["claims"]]
    held, jobs = sum(claim["holds"] for claim in claims), sum(record["jobs"] for record in records)
    lines = [HEAD.format(held=held, claims=len(claims), experiments=len(records), jobs=jobs)]
    for record in records:
        name = record["experiment"]
        redrawn = json.loads(Path(folder, name, "redrawn.json").read_text())
        lines += [
            f"## {name}",
            "",
            f"{record['title']}. {record['jobs']:,} jobs. {' '.join(record['notes'])}".strip(),
            "",
        ]
        lines += ["| claim | | measured | worded | in other draws |", "|---|---|---|---|---:|"]
        for claim in record["claims"]:
            verdict = "holds" if claim["holds"] else "**broken**"
            cells = (
                f"`{claim['name']}`: {claim['text']}",
                verdict,
                claim["measured"],
                worded(claim["fixed"]),
            )
            lines.append(f"| {' | '.join(map(_cell, cells))} | {redrawn[claim['name']]:.1%} |")
        lines.append("")
    PAGE.write_text("\n".join(lines))
    print(f"{PAGE}: {held} of {len(claims)} hold")


if __name__ == "__main__":
    main(sys.argv[1])
