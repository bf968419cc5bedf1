"""The experiments of the 2022 paper: clicks under the position-based model."""
