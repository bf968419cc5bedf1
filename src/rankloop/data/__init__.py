"""Real queries, ratings and clicks, read into frozen datasets; and generators of synthetic ones."""

from rankloop.data.clicks.read import read_clicks
from rankloop.data.data_folder import DataMissing, find, folder
from rankloop.data.dataset import Dataset
from rankloop.data.letor.presets import PRESETS, Preset
from rankloop.data.letor.read import read_letor
from rankloop.data.ratings.ratings import Ratings
from rankloop.data.ratings.read import read_ratings
from rankloop.data.read_lists import read_lists
from rankloop.data.read_logged_lists import read_logged_lists
from rankloop.data.read_sessions import read_sessions
from rankloop.data.sparse_dataset import SparseDataset
from rankloop.data.synthetic_letor import synthetic_letor
from rankloop.data.synthetic_ratings import synthetic_ratings

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
