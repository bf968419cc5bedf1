"""Compiled reading of text: numbers, LETOR lines, scaling within a query."""
