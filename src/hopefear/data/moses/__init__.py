"""N-best lists of Moses."""
