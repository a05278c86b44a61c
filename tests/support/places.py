"""Where the repository is, and where real corpora are looked for."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("HOPEFEAR_DATA") or ROOT.parent / "shared" / "data")
