"""What a wrong label costs."""
