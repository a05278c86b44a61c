"""How weights move, one rule per file."""
