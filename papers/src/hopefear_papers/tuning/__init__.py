"""The slides' comparison of tuners: few and many features, by round, on lists of translations."""
