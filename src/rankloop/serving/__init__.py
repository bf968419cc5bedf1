"""A live ranking service: an append-only log, a state that is a fold of it, and an HTTP layer.

`rankloop serve` starts it, `rankloop.Client` talks to it. Needs the extra: pip install "rankloop[serve]". Nothing of it
is imported until it is used.
"""

from rankloop.extras import installed, require

if not installed("httpx"):  # all that `rankloop.serving.client` needs
    require("msgspec", extra="serve", for_="rankloop.serving")
