"""Decoders: outputs, scores and probabilities of a structure under weights or votes."""
