"""The HTTP skin: routes, error shape, description, metrics, stream."""
