"""Integrations with trackers of runs, spaCy, Optuna, and programs without hopefear.

Each is imported when it is used, and asks for its own package alone.
"""
