"""``hopefear tune``, and the verbs that take the weights it writes."""

from hopefear.cli.tune.options import DESCRIPTION, EXAMPLES, USAGE, configure, run

__all__ = ["DESCRIPTION", "EXAMPLES", "USAGE", "configure", "run"]
