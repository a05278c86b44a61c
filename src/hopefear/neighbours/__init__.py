"""Other programs: trackers of runs, spaCy, and readers of models that have nothing of ours.

Each is imported when it is used, and asks for its own package alone.
"""
