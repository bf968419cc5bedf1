"""Running experiments: jobs, results folders, progress and the report."""
