"""The HTTP skin: routes, error shape, description, metrics, stream."""

from rankloop.extras import require

require("prometheus_client", "starlette", extra="serve", for_="rankloop.serving.http")
