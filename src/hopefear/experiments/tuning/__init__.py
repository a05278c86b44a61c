"""The slides' comparison of tuners: few and many features, by round, on lists of translations."""

from hopefear.experiments.frame import Experiment
from hopefear.experiments.tuning import claims, page, plan, runs

run = Experiment("tuning", plan, runs, claims, page).run
