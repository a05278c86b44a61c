"""Constituent trees as arrays."""
