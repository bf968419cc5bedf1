"""Learning-to-rank text: read, checked, cached."""
