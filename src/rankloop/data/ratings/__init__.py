"""Rating matrices: Jester, MovieLens."""
