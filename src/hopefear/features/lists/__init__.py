"""Features of candidates: from keys and values to the numbered columns of list datasets."""
