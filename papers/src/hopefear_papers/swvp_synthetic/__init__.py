"""Table 1 of Dror and Reichart: SWVP against the perceptron on hidden Markov chains."""
