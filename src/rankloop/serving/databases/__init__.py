"""Rankers that are spread over several databases: where each lives, how a request gets there, and how one is moved.

Each database is a store of its own, with an engine of its own: no transaction spans two, and one that is away takes
nothing but its own rankers with it.
"""
