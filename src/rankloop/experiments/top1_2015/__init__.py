"""The experiments of the 2015 paper: relevance of the top item, fixed items."""
