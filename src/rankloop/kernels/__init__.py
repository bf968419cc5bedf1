"""Compiled arithmetic: arrays in, arrays out. Nothing here knows what a ranker or an environment is."""
