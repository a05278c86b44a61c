"""What is kept of the weights, one readout per file."""
