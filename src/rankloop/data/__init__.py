"""Real people's ratings, read into frozen datasets; and a generator for those who have none."""

from rankloop.data.folder import DataMissing, find, folder
from rankloop.data.ratings import Ratings
from rankloop.data.reading import read_ratings
from rankloop.data.synthetic import synthetic_ratings

__all__ = ["DataMissing", "Ratings", "find", "folder", "read_ratings", "synthetic_ratings"]
