"""Features of arcs between words: templates, and the tables of words that they read."""
