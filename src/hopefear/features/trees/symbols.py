"""Everything about the symbols of trees that is worked out once a symbol, not once a node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hopefear.core.arrays import Strings
from hopefear.core.component import kernel
from hopefear.core.hashing import load_part, mix
from hopefear.features.brackets.heads import PUNCTUATION, HeadRules, head_rules
from hopefear.features.trees.kinds import SPECIALS

PUNCTUATES, FUNCTIONAL = 1, 2  # bits of SymbolFacts.bits

_FUNCTION_TAGS = "AUX AUXG CC DT EX IN MD PDT POS PRP PRP$ RP TO WDT WP WP$ WRB"
FUNCTION_TAGS = frozenset(_FUNCTION_TAGS.split())


class SymbolFacts(NamedTuple):
    """What kernels know of symbols; all but ``lower`` by their number behind the specials."""

    hashes: np.ndarray  # uint64: from the strings, so that they mean the same in every file
    bits: np.ndarray  # uint8
    lower: np.ndarray  # int32[symbols of the trees]: symbol to show for a word
    heads: HeadRules


def symbol_facts(symbols: Sequence[str], lower: bool) -> tuple[SymbolFacts, list[str]]:
    """Facts, and the strings of all symbols: specials, those of the trees, lower-case forms."""
    strings = [*SPECIALS, *symbols]
    shown = np.arange(len(SPECIALS), len(strings), dtype=np.int32)
    if lower:
        number = {s: i for i, s in reversed(list(enumerate(strings))) if i >= len(SPECIALS)}
        for i, symbol in enumerate(symbols):
            form = symbol.lower()
            if form not in number:
                number[form] = len(strings)
                strings.append(form)
            shown[i] = number[form]
    bits = [PUNCTUATES * (s in PUNCTUATION) | FUNCTIONAL * (s in FUNCTION_TAGS) for s in strings]
    # No string of a tree holds a zero byte, so no word is taken for a mark.
    packed = Strings.pack(["\0" + s for s in SPECIALS] + strings[len(SPECIALS) :])
    with np.errstate(over="ignore"):  # uncompiled kernels warn where compiled ones do not
        hashes = _hashes(packed.text, packed.offsets)
    facts = SymbolFacts(hashes, np.array(bits, np.uint8), shown, head_rules(strings))
    return facts, strings


@kernel
def _hashes(text, offsets):
    hashes = np.empty(len(offsets) - 1, np.uint64)
    for i in range(len(hashes)):
        begin, end = offsets[i], offsets[i + 1]
        h = np.uint64(end - begin)
        for p in range(begin, end, 8):
            h = mix(h, load_part(text, p, min(8, end - p)))
        hashes[i] = h
    return hashes
