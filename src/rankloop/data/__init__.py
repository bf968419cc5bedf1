"""Real queries, ratings and clicks, read into frozen datasets; and generators for those who have none."""

from rankloop.data.clicks import read_clicks
from rankloop.data.dataset import Dataset
from rankloop.data.folder import DataMissing, find, folder
from rankloop.data.letor import read_letor
from rankloop.data.logged import read_logged_lists
from rankloop.data.presets import PRESETS, Preset
from rankloop.data.ratings import Ratings
from rankloop.data.reading import read_ratings
from rankloop.data.synthetic import synthetic_ratings
from rankloop.data.synthetic_letor import synthetic_letor

__all__ = [
    "PRESETS",
    "DataMissing",
    "Dataset",
    "Preset",
    "Ratings",
    "find",
    "folder",
    "read_clicks",
    "read_letor",
    "read_logged_lists",
    "read_ratings",
    "synthetic_letor",
    "synthetic_ratings",
]
