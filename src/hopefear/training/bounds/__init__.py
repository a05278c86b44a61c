"""Mistake bounds, evaluated on a run."""
