"""Rankers that only the experiments of the 2022 paper need."""
