"""A language model with back-off, estimated from a small text when the decoder starts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

Words = tuple[str, ...]


class LanguageModel:
    """Witten-Bell interpolated n-grams, estimated from sentences of the target language.

    ``p(w | h) = (c(h w) + t(h) p(w | shorter h)) / (c(h) + t(h))``, where t(h) is the number of
    different words seen behind h; the shortest history falls back on a uniform distribution.
    """

    def __init__(self, sentences: Sequence[Words], order: int = 3) -> None:
        self.order = order
        self.counts: Counter[Words] = Counter()
        self.seen: Counter[Words] = Counter()
        self.kinds: Counter[Words] = Counter()
        for sentence in sentences:
            words = (*("<s>",) * (order - 1), *sentence, "</s>")
            for end in range(order - 1, len(words)):
                for n in range(order):
                    gram = words[end - n : end + 1]
                    self.counts[gram] += 1
                    self.seen[gram[:-1]] += 1
                    self.kinds[gram[:-1]] += self.counts[gram] == 1
        self.uniform = 1.0 / (self.kinds[()] + 1)  # one more for all words that were never seen
        self.cache: dict[tuple[Words, str], float] = {}

    def start(self) -> Words:
        """The history of the first word."""
        return ("<s>",) * (self.order - 1)

    def shift(self, history: Words, word: str) -> Words:
        """The history behind ``word``: all that later words can see."""
        return (*history, word)[1:] if self.order > 1 else ()

    def log_p(self, history: Words, word: str) -> float:
        """Natural logarithm of the probability of a word behind a history, long or short."""
        log_probability = self.cache.get((history, word))
        if log_probability is None:
            log_probability = self.cache[history, word] = math.log(self._p(history, word))
        return log_probability

    def _p(self, history: Words, word: str) -> float:
        lower = self._p(history[1:], word) if history else self.uniform
        kinds = self.kinds[history]
        if not kinds:
            return lower
        return (self.counts[*history, word] + kinds * lower) / (self.seen[history] + kinds)
