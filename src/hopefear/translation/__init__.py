"""Weights for translations: lists of candidates in, weights out."""
