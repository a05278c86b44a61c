"""Section 5 of Gao, Xiao, Xu and He: a discriminative phrase model on lists of translations."""

from hopefear.experiments.dptm import claims, page, plan, runs
from hopefear.experiments.frame import Experiment

run = Experiment("dptm", plan, runs, claims, page).run
