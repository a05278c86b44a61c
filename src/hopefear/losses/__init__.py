"""What an example asks of the weights, one loss per file."""
