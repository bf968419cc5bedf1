"""Real queries, ratings and clicks, read into frozen datasets; and generators of synthetic ones."""

from rankloop.data.clicks import read_clicks
from rankloop.data.dataset import DataMissing, Dataset, SparseDataset, find, folder
from rankloop.data.letor import PRESETS, Preset, read_letor
from rankloop.data.ratings import Ratings, read_ratings
from rankloop.data.sessions import read_lists, read_logged_lists, read_sessions
from rankloop.data.synthetic import synthetic_letor, synthetic_ratings

__all__ = [
    "PRESETS",
    "DataMissing",
    "Dataset",
    "Preset",
    "Ratings",
    "SparseDataset",
    "find",
    "folder",
    "read_clicks",
    "read_letor",
    "read_lists",
    "read_logged_lists",
    "read_ratings",
    "read_sessions",
    "synthetic_letor",
    "synthetic_ratings",
]
