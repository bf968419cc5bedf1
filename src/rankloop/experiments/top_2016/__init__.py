"""The experiments of the 2016 paper: relevance of the top k, documents with features."""
