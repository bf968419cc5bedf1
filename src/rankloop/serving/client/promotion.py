"""The call that lets the ranker's lists be shown instead of the application's own."""

from __future__ import annotations

from rankloop.serving.client.answers import EventAnswer, read
from rankloop.serving.client.bodies import json_bytes
from rankloop.serving.client.calls import Call, of
from rankloop.serving.clock import new_id


def promote(name: str, share: float = 1.0) -> Call[EventAnswer]:
    """Let the ranker's lists be shown to a share of the requests with a baseline, the holdout aside.

    Parameters
    ----------
    name : str
        The name of the ranker.
    share : float, optional
        The share, from 0 to 1; 0 sends the ranker back to learning beside the baseline.

    Returns
    -------
    EventAnswer
        What became of it.
    """
    body = json_bytes({"share": share, "event_id": new_id()})
    return Call("POST", f"{of(name)}/promote", lambda told: read(EventAnswer, told), body)
