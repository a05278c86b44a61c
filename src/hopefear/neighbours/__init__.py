"""Other programs: trackers of runs, spaCy, Optuna, and readers of models without anything of ours.

Each is imported when it is used, and asks for its own package alone.
"""
