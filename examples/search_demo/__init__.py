"""A small shop whose search learns from clicks; `make search-demo` runs it."""
