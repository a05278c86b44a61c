"""The loop around the parts: epochs, evaluation, stopping, checkpoints, events."""
