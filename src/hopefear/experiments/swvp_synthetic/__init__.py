"""Table 1 of Dror and Reichart: SWVP against the perceptron on hidden Markov chains."""

from hopefear.experiments.frame import Experiment
from hopefear.experiments.swvp_synthetic import claims, page, plan, runs

run = Experiment("swvp-synthetic", plan, runs, claims, page).run
