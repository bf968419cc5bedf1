"""Click models fitted to pages, one idea a file."""
