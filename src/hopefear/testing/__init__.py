"""Enumerated worlds, dense rules and contract checks, for parts of one's own."""
