"""Without PyTorch the modules of networks cannot be imported, so their examples are left out."""

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["src/hopefear/neural/*"]
