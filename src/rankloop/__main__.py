"""`python -m rankloop` does what the command `rankloop` does."""

from rankloop.cli import main

main()
