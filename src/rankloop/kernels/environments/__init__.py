"""The compiled arithmetic of environments."""
