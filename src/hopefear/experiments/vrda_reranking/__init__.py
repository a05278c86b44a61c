"""Section 4 of Gao, Xiao, Xu and He: voted dual averaging on lists of parses."""

from hopefear.experiments.frame import Experiment
from hopefear.experiments.vrda_reranking import claims, page, plan, runs

run = Experiment("vrda-reranking", plan, runs, claims, page).run
