"""A note on weights whose features do not occur in the lists at hand."""

from __future__ import annotations

from hopefear.cli.console import Console
from hopefear.core.arrays import Strings
from hopefear.core.hashing import StringTable
from hopefear.data.moses.lists import TuningLists
from hopefear.translation.ngrams import PREFIX
from hopefear.translation.weights import Weights


class Unused:
    """Kinds of features that weights have and no list has shown so far.

    Parameters
    ----------
    weights : Weights
        What is used.
    path : str
        Where they are from.
    """

    def __init__(self, weights: Weights, path: str) -> None:
        # N-grams are made from words, whatever the lists say.
        sparse = [name for name in weights.sparse if not name.startswith(PREFIX)]
        names = {"sparse features": sparse, "phrase pairs": list(weights.phrases)}
        self.path = path
        self.kinds = {kind: found for kind, found in names.items() if found}

    def see(self, lists: TuningLists) -> None:
        """Strike out kinds of which the lists have some."""
        there = {"sparse features": lists.sparse, "phrase pairs": lists.phrases}
        for kind, names in list(self.kinds.items()):
            entries = there[kind]
            if entries is None or not entries.names.size:
                continue
            if (StringTable.of(Strings.pack(names)).find(entries.names) >= 0).any():
                del self.kinds[kind]

    def tell(self, console: Console) -> None:
        """Say which are left."""
        for kind, names in self.kinds.items():
            console.say(
                f"note: of the {len(names):,} {kind} of {self.path} none is in these lists; "
                "their weights change no choice"
            )
