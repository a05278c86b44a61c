"""What is kept of the weights, one averaging per file."""
