"""What ``tune`` does unless told otherwise; help must not wait for the package to load."""

LEARNER = "kbmira"
ROUNDS = 10
