"""The best candidate of a list."""
