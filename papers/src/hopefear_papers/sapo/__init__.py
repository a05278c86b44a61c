"""Figures 1 to 4 of Sun, Ma, Zhang and Ren: SAPO against CRF, perceptron and MIRA."""
