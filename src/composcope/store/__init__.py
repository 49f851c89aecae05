"""The only room that touches results on disk."""
