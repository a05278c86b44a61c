"""Linear structured prediction: any learner on any structure."""

__version__ = "0.1.0"
