"""Makes tables of measured values on the pages: `.venv/bin/python docs/tables/make.py late forgetting`.

Without arguments it lists the tables; `all` makes every one, which takes half an hour. All seeds are fixed.
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
import nine_worlds
import queries
import relevance
import shares
import verdict

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
    "shares": ("rankers/RTopKF.md", shares.table),
    "surrogates": ("rankers/RTopKF.md", shares.others),
    "nine-worlds": ("rankers/FTRLPBM.md", nine_worlds.table),
    "nine-worlds-long": ("rankers/FTRLPBM.md", nine_worlds.long),
    "late": ("rankers/FTRLPBM.md", late.table),
    "verdict-wrong": ("howto/compare-live.md", verdict.wrong),
    "verdict-searches": ("howto/compare-live.md", verdict.table),
    "forgetting": ("rankers/FTRLPBM.md", forgetting.table),
}


def write(name: str, page: Path, table: str) -> None:
    """Put `table` in its place on `page`."""
    text = page.read_text()
    place = re.compile(rf"(<!-- table: {name} -->\n).*?(\n<!-- end of table -->)", re.S)
    if len(place.findall(text)) != 1:
        raise SystemExit(f"{page} must have one place for the table {name!r}")
    page.write_text(place.sub(lambda found: f"{found[1]}\n{table}\n{found[2]}", text))


def main(wanted: list[str]) -> None:
    """Make the tables that are named, or say which there are."""
    names = list(TABLES) if wanted == ["all"] else wanted
    for name in names:
        if name not in TABLES:
            raise SystemExit(f"there is no table {name!r}; there are {', '.join(TABLES)}, and all")
    if not names:
        print("\n".join(f"{name:<16} {page}" for name, (page, _) in TABLES.items()), "all", sep="\n")
    for name in names:
        page, make = TABLES[name]
        table = make()
        print(f"{name}\n{table}\n", flush=True)
        write(name, DOCS / page, table)


if __name__ == "__main__":
    main(sys.argv[1:])
