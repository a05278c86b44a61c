"""Figures 1 to 4 of Sun, Ma, Zhang and Ren: SAPO against CRF, perceptron and MIRA."""

from hopefear.experiments.frame import Experiment
from hopefear.experiments.sapo import claims, page, plan, runs

run = Experiment("sapo", plan, runs, claims, page).run
