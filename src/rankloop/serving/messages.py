"""Messages of a running service as JSON, one object a line, for programs that gather them."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime


class JsonLines(logging.Formatter):
    """Formats a message as one JSON object: time, level, logger, message, and the exception where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        told = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            told["exception"] = self.formatException(record.exc_info)
        return json.dumps(told, ensure_ascii=False)


def speak_json() -> Callable[[str], object]:
    """Write every message of this process as JSON to the standard error."""
    for name in ("", "rankloop", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.getLogger().addHandler(handler)
    said = logging.Logger("rankloop.serving", logging.INFO)  # of its own: it writes elsewhere
    aloud = logging.StreamHandler(sys.stdout)
    aloud.setFormatter(JsonLines())
    said.addHandler(aloud)
    return said.info
