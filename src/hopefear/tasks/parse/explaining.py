"""Why a parser hung a word where it did."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hopefear.data.treebank import Treebank
from hopefear.errors import HopefearError
from hopefear.features.arcs.naming import (
    ArcPart,
    Sentence,
    arc_part,
    grandparent_part,
    last_part,
    sibling_part,
    tag_features,
)
from hopefear.structures.tree.theta import STEP
from hopefear.tasks.base import Explanation, explanation
from hopefear.tasks.parse.model import ParseModel, with_heads_allowed


def explain(model: ParseModel, bank: Treebank, sentence: int, word: int) -> Explanation:
    """Why a word got its head, and not the one of the best tree in which it has another.

    The answers are (head, relation). Where the two trees differ at other words too, features there
    count as well, and say so.
    """
    if not 0 <= sentence < len(bank) or not 0 <= word < np.diff(bank.starts)[sentence]:
        raise HopefearError(f"there is no word {word + 1} in a sentence {sentence + 1}")
    data = model.encode(bank.take([sentence]))
    best = model.decoder().predict(data.rows)
    return _compared(model, data.bank, best, _runner_up(model, data, best, word), word)


def against(
    model: ParseModel, bank: Treebank, sentence: int, best: np.ndarray, other: np.ndarray
) -> Explanation:
    """Why the first word at which two trees differ hangs as in ``best`` and not as in ``other``.

    All other words are as in ``best``, so that one error is told of and not all at once; with the
    other head these arcs need not be a tree.
    """
    model.check_linear()
    word = int(np.argmax(best != other))
    mixed = np.array(best)
    mixed[word] = other[word]
    return _compared(model, bank.take([sentence]), best, mixed, word)


def _compared(
    model: ParseModel, one: Treebank, best: np.ndarray, other: np.ndarray, word: int
) -> Explanation:
    text, n = Sentence(model.features, one.sentences, 0), max(1, len(model.labels))
    gains: dict[str, float] = defaultdict(float)
    # What both trees have adds nothing, and most of it is what both have.
    first, second = (dict.fromkeys(_parts(codes, n, model.kind.order)) for codes in (best, other))
    weights = model.weights
    for parts, shared, sign in ((first, second, 1.0), (second, first, -1.0)):
        for part, relation in parts:
            if (part, relation) in shared:
                continue
            where = _where(part, relation, model.labels, word)
            for name, key in text.features_of(part):
                gain = float(weights[_coordinate(model, part, key, relation)])
                gains[name + where] += sign * gain
    label, rival = (
        (int(codes[word] // n), model.labels[codes[word] % n] if model.labels else None)
        for codes in (best, other)
    )
    return explanation(label, rival, gains.items())


def arc_in_words(words: Sequence[str], arc: tuple[int, str | None]) -> str:
    """A head and a relation as people say them.

    >>> arc_in_words(["It", "rains"], (2, "expl")), arc_in_words(["It"], (0, None))
    ('expl of 2 rains', 'below the root')
    """
    head, relation = arc
    word = "the root" if head == 0 else f"{head} {words[head - 1]}"
    return f"{relation} of {word}" if relation else f"below {word}"


def _runner_up(model: ParseModel, data: Any, best: np.ndarray, word: int) -> np.ndarray:
    """The best tree in which a word has another of the heads that are looked at."""
    rows, head = data.rows, int(best[word]) // max(1, len(model.labels))
    others = set(rows.heads[rows.ptr[word] : rows.ptr[word + 1]].tolist()) - {head}
    reason = "no other head of this word is looked at, so nothing was beaten"
    if not others:
        raise HopefearError(reason)
    allowed = [others if m == word else None for m in range(data.n_tokens)]
    try:
        return model.decoder().predict(with_heads_allowed(data, allowed).rows)
    except HopefearError as error:  # the other arcs make no tree
        raise HopefearError(reason) from error


def _parts(codes: np.ndarray, labels: int, order: int) -> Iterator[tuple[ArcPart, int]]:
    """All parts of a tree; the relation is that of a part of the family ``label``."""
    heads = [0, *(codes // labels).tolist()]
    n = len(codes)
    for m in range(1, n + 1):
        yield arc_part("arc", heads[m], m), 0
        if labels > 1:
            yield arc_part("label", heads[m], m), int(codes[m - 1]) % labels
    if order == 1:
        return
    for h in range(n + 1):
        for children in (range(h - 1, 0, -1), range(h + 1, n + 1)):
            before = 0
            for m in children:
                if heads[m] == h:
                    yield sibling_part(h, before, m), 0
                    before = m
            if before:
                yield last_part(h, before, n), 0
    for m in range(1, n + 1):
        if heads[m] > 0:
            yield grandparent_part(heads[heads[m]], heads[m], m), 0


def _coordinate(model: ParseModel, part: ArcPart, key: int, relation: int) -> int:
    if part.family != "label":
        return key
    return model.features.plain + STEP * key + relation


def _where(part: ArcPart, relation: int, labels: tuple[str, ...], word: int) -> str:
    """The relation, and the place of a part that is about another word."""
    m = part.ends[1]
    place = "" if m == word + 1 else f" at word {m - word - 1:+d}"
    return (f" {labels[relation]}" if part.family == "label" else "") + place


def heaviest_features(model: ParseModel, top: int) -> list[tuple[str, str, float]]:
    """(feature, relation, weight) of the heaviest features of tags alone, heaviest first.

    They are the ones that can be named without data; the relation is empty for features of arcs.
    """
    weights = model.weights
    rows = [(name, "", float(weights[key])) for name, key in tag_features(model.features, "arc")]
    if len(model.labels) > 1:
        base = model.features.plain
        for name, key in tag_features(model.features, "label"):
            begin = base + STEP * key
            row = weights[begin : begin + len(model.labels)]
            c = int(np.argmax(np.abs(row)))
            rows.append((name, model.labels[c], float(row[c])))
    rows.sort(key=lambda row: -abs(row[2]))
    return [row for row in rows[:top] if row[2]]
