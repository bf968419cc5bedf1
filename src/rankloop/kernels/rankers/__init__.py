"""The compiled arithmetic of rankers, one file per algorithm."""
