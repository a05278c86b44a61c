"""Files into read-only arrays: readers, writers, the on-disk cache."""
