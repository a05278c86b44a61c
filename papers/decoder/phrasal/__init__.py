"""A phrase-based translation system of our own: estimated from parallel text, searched by numba."""
