"""A live ranking service: an append-only log, a state that is a fold of it, and an HTTP skin.

Needs the extra `serve`: pip install "rankloop[serve]". Nothing here is imported until it is used.
"""
