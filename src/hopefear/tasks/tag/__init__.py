"""Labels of the tokens of sentences."""
