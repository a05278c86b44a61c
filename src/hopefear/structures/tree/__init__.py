"""Dependency trees: searches and sums over all trees of a sentence, as kernels for kernels."""
