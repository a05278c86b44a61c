"""Dependency trees: searches and sums over all head assignments of a sentence."""
