"""What a user reveals of a shown list."""

from rankloop.feedback.revealed import Clicks, FullRelevance, Nothing, TopK

__all__ = ["Clicks", "FullRelevance", "Nothing", "TopK"]
