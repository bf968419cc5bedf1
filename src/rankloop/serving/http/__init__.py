"""The HTTP layer: routes, errors, OpenAPI description, metrics, event stream."""

from rankloop.extras import require

require("prometheus_client", "starlette", extra="serve", for_="rankloop.serving.http")
