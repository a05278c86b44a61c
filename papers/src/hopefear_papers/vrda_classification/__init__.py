"""Table 1 and Figures 1 to 5 of Xu, Gao, Xiao and Regan, on text classification."""
