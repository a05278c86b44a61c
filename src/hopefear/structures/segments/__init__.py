"""Labelled segments of tokens (semi-Markov chains)."""
