"""Classes of sparse rows."""
