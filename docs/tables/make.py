"""Makes the tables of measured regret on the pages: `.venv/bin/python docs/tables/make.py`.

Names of tables as arguments make only those. All seeds are fixed. A few minutes of one core, and more for PMED's plans.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import advice
import both_worlds
import changes
import clicks
import documents
import forgetting
import late
import queries
import relevance

DOCS = Path(__file__).parent.parent
# table: (page, what prints it). A page holds it between <!-- table: name --> and <!-- end of table -->.
TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "advice": ("choose.md", advice.table),
    "relevance": ("choose.md", relevance.table),
    "both-worlds": ("rankers/TopFTRL.md", both_worlds.table),
    "clicks": ("choose.md", clicks.table),
    "queries": ("choose.md", queries.table),
    "documents": ("choose.md", documents.table),
    "changes": ("rankers/PBMTS.md", changes.table),
    "phases": ("rankers/PBMTS.md", changes.phases),
    "beliefs": ("rankers/PBMTS.md", changes.beliefs),
    "late": ("rankers/FTRLPBM.md", late.table),
    "forgetting": ("rankers/FTRLPBM.md", forgetting.table),
}


def write(name: str, page: Path, table: str) -> None:
    """Put `table` in its place on `page`."""
    text = page.read_text()
    place = re.compile(rf"(<!-- table: {name} -->\n).*?(\n<!-- end of table -->)", re.S)
    if len(place.findall(text)) != 1:
        raise SystemExit(f"{page} must have one place for the table {name!r}")
    page.write_text(place.sub(lambda found: f"{found[1]}\n{table}\n{found[2]}", text))


for name in sys.argv[1:] or TABLES:
    page, make = TABLES[name]
    table = make()
    print(f"{name}\n{table}\n", flush=True)
    write(name, DOCS / page, table)
