"""Tuners of translation weights, one file each."""
