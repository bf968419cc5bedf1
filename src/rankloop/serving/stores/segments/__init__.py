"""Closed history in Parquet files: what they hold, how a row is found in them, and what proves that they are whole."""
