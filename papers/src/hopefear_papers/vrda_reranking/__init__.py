"""Section 4 of Gao, Xiao, Xu and He: voted dual averaging on lists of parses."""
