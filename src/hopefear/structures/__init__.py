"""Output spaces, one per file."""
