"""Compiled solvers and samplers: projections, assignments, likelihoods."""
