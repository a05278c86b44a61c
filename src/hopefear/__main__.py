"""``python -m hopefear`` is the command ``hopefear``."""

from __future__ import annotations

import sys

from hopefear.cli import main

if __name__ == "__main__":
    sys.exit(main())
