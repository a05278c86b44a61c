"""Scores of lists as tables and plots call them."""

from __future__ import annotations

_SHOWN = {"f1": "F1", "bleu": "BLEU", "chrf": "chrF", "ter": "TER", "wer": "WER", "cer": "CER"}


def shown_score(name: str) -> str:
    """A score's usual spelling.

    >>> shown_score("bleu"), shown_score("cost")
    ('BLEU', 'cost')
    """
    return _SHOWN.get(name, name)
