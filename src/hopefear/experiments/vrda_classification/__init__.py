"""Table 1 and Figures 1 to 5 of Xu, Gao, Xiao and Regan, on text classification."""

from hopefear.experiments.frame import Experiment
from hopefear.experiments.vrda_classification import claims, page, plan, runs

run = Experiment("vrda-classification", plan, runs, claims, page).run
