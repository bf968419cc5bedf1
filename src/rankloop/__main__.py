"""`python -m rankloop` does what the command `rankloop` does."""

from __future__ import annotations

import sys

from rankloop.extras import MissingExtra, require


def main() -> None:
    """Run the command line; where its libraries are missing, say so in one sentence and exit with 2."""
    try:
        require("typer", "rich", extra="cli", for_="the command rankloop")
    except MissingExtra as missing:
        print(f"error: {missing}", file=sys.stderr)
        raise SystemExit(2) from None
    from rankloop.cli import app

    app(prog_name="rankloop")


if __name__ == "__main__":
    main()
