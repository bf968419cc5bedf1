"""Click logs: read, counted, paged."""
