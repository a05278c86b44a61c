"""The two linear maps of label chains: attributes to scores, and directions back to attributes."""
