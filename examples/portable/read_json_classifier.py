"""Classify with what `hopefear inspect --model M --export M.json` wrote: nothing but Python."""

import math
import re
from collections import Counter

WORD = "[0-9A-Za-z\u00c0-\u1fff\u2080-\U0010ffff]+"
VALUES = {
    "counts": lambda v: v,
    "presence": lambda v: float(v != 0.0),
    "log": lambda v: math.copysign(math.log1p(abs(v)), v),
}


def grams(text, order, chars, lowercase, marks):
    """Counts the n-grams of words, and of characters within words, of a text."""
    alone = r"[!-/:-@\[-`{-~]" if marks else "[!?$]"
    text = (text.lower() if lowercase else text).replace("\u2019", "'")
    words = re.findall(f"{WORD}(?:['_]{WORD})*|{alone}", text)
    of_words, of_chars = Counter(), Counter()
    for n in range(1, order + 1):
        of_words.update(" ".join(words[i : i + n]) for i in range(len(words) - n + 1))
    for word in (f" {word} " for word in words if chars):
        for n in range(chars[0], chars[1] + 1):
            of_chars.update(word[i : i + n] for i in range(len(word) - n + 1))
    del of_chars[" "]
    return of_words, of_chars


def scores(model, example):
    """A score for each class: of a text, or of a row of numbers {id: value}."""
    numbers = {str(i): v for i, v in example.items()} if isinstance(example, dict) else {}
    parts = grams(example, **model["ngrams"]) if "ngrams" in model else (numbers, {})
    n, rows = len(model["intercept"]), []
    for table, counts in zip((model["words"], model["chars"]), parts, strict=True):
        known = [
            (table[name], VALUES[model["values"]](v)) for name, v in counts.items() if name in table
        ]
        rows.append([(row, value * (row[n] if len(row) > n else 1.0)) for row, value in known])
    lengths = [math.sqrt(sum(value**2 for _, value in row)) for row in rows]
    share = math.sqrt(sum(length > 0.0 for length in lengths))
    total = list(model["intercept"])
    for row, length in zip(rows, lengths, strict=True):
        norm = length * share if model["norm"] == "l2" and length else 1.0
        for weights, value in row:
            total = [t + w * value / norm for t, w in zip(total, weights, strict=False)]
    return total


def classify(model, example):
    """Returns the best class; of two classes, the one score is that of the second."""
    total = scores(model, example)
    best = int(total[0] > 0.0) if len(total) == 1 else total.index(max(total))
    return model["classes"][best]
