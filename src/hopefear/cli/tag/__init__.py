"""The verbs for label chains: one label a token."""
