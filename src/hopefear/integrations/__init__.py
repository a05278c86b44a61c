"""Integrations with trackers of runs, spaCy, Optuna, and programs without hopefear.

Each is imported on use, and needs its own package alone.
"""
