"""What fires on arcs between words: templates, and the tables of words they look at."""
