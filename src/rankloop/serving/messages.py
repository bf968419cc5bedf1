"""What the service says of itself: messages as JSON, one object a line, for programs that gather them, and traces.

Traces are OpenTelemetry's: a span around each request, and one around each commit. Without `start_tracing` a span is
nothing, and opentelemetry need not be installed.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from rankloop.extras import MissingExtra


class JsonLines(logging.Formatter):
    """Formats a message as one JSON object: time, level, logger, message, and the exception where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False)


def speak_plainly() -> Callable[[str], object]:
    """Write every message of the service as a line to the standard error."""
    logger = logging.getLogger("rankloop")
    logger.setLevel(logging.INFO)
    if not logger.handlers:
        logger.addHandler(logging.StreamHandler(sys.stderr))
    return lambda message: print(message, flush=True)


def speak_json() -> Callable[[str], object]:
    """Write every message of this process as JSON to the standard error."""
    logging.getLogger("rankloop").setLevel(logging.INFO)
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


_NOTHING = contextlib.nullcontext()


class Tracing:
    """The tracer of this process, if there is one."""

    def __init__(self) -> None:
        self.tracer: Any = None
        self._extract: Any = None

    def use(self, tracer: Any, extract: Any) -> None:
        """Send spans to this tracer; `extract` reads the caller's span from the headers of a request."""
        self.tracer, self._extract = tracer, extract

    def request(self, name: str, headers: dict[bytes, bytes], ranker: str | None) -> Any:
        """A span around a request, within the caller's where it names one (`traceparent`)."""
        if self.tracer is None:
            return _NOTHING
        carrier = {key.decode("latin-1"): value.decode("latin-1") for key, value in headers.items()}
        attributes = {} if ranker is None else {"rankloop.ranker": ranker}
        return self.tracer.start_as_current_span(name, context=self._extract(carrier), attributes=attributes)

    def commit(self, events: int) -> Any:
        if self.tracer is None:
            return _NOTHING
        return self.tracer.start_as_current_span("commit", attributes={"rankloop.events": events})


tracing = Tracing()


def start_tracing() -> None:
    """Send traces from now on, as the environment variables `OTEL_...` say."""
    try:
        from opentelemetry import propagate, trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise MissingExtra(
            f'sending traces needs {error.name}: pip install "rankloop[traces]"', name=error.name
        ) from None
    provider = TracerProvider(resource=Resource.create({"service.name": "rankloop"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    tracing.use(trace.get_tracer("rankloop"), propagate.extract)
