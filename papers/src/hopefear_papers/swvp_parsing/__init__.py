"""Table 2 of Dror and Reichart, on dependency treebanks."""
