"""Lists of candidates: files of them, and what is trained on."""
