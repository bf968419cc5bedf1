"""Which replica serves which ranker, and how a request reaches it.

The log stays the truth: a replica that serves a ranker it does not own does nothing wrong, it only does work twice.
"""
