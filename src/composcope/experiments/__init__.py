"""Runs as values, their results on disk, and many of them at once."""
