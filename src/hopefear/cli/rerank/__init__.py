"""The verbs for lists of candidates: the best of each."""
