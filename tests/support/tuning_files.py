"""Small N-best files of Moses for tests of the command, with a truth that tuning can find."""

from __future__ import annotations

import random

WORDS = ["hope", "fear", "and", "of", "the", "sea", "night", "day", "wind", "rain", "ship"]


def nbest(first, after, candidates=10, seed=1):
    """(N-best lines, references, sources) of some sentences.

    A decoder that likes its language model too much wrote the lists: words left out cost it
    nothing, although the second number of TM0 tells them.
    """
    lists, references, sources = [], [], []
    for i in range(after):
        draw = random.Random(1000 * seed + i)
        words = [draw.choice(WORDS) for _ in range(draw.randint(6, 10))]
        found = []
        for c in range(candidates):
            wrong = [draw.choice(WORDS) if draw.random() < 0.06 * c else word for word in words]
            kept = wrong[: len(wrong) - draw.randint(0, 3)] if c % 2 else wrong
            errors = sum(a != b for a, b in zip(wrong, words, strict=True))
            lm = -0.4 * len(kept) + draw.gauss(0.0, 0.3)
            tm = (-0.5 * errors + draw.gauss(0.0, 0.5), -1.0 * (len(words) - len(kept)))
            score = lm + 0.2 * tm[0] + 0.1 * tm[1]
            sparse = " ".join(f"wt_{word}= 1" for word in sorted(set(kept)) if word < "h")
            spans = " ".join(f"{k}={k}" for k in range(len(kept)))
            found.append(
                f"{i - first} ||| {' '.join(kept)} ||| LM0= {lm:.4f} TM0= {tm[0]:.4f} {tm[1]:.4f} "
                f"{sparse} ||| {score:.5f} ||| {spans}\n"
            )
        if i >= first:
            lists.append(found)
            references.append(" ".join(words) + "\n")
            sources.append(" ".join(f"s{word}" for word in words) + "\n")
    return lists, references, sources


def write(folder, name, first, after, **more):
    """Write NAME.nbest, NAME.ref, NAME.src."""
    lists, references, sources = nbest(first, after, **more)
    (folder / f"{name}.nbest").write_text("".join(line for found in lists for line in found))
    (folder / f"{name}.ref").write_text("".join(references))
    (folder / f"{name}.src").write_text("".join(sources))
