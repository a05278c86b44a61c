"""The verbs for classes: one label a line."""
