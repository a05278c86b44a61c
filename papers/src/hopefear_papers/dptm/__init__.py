"""Section 5 of Gao, Xiao, Xu and He: a discriminative phrase model on lists of translations."""
