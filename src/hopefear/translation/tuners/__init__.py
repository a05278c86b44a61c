"""What finds weights for translations: one file a tuner."""
