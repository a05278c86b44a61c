"""Names of arc features, whose numbers the kernel of `feature_hashing` computes.

A feature is named by its template and what stands in the fields, ``h.tag=VB m.tag=NN →``; the arrow
tells the side of the head that the modifier is on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

from hopefear.features.arcs import feature_hashing
from hopefear.features.arcs.arc_map import ArcMap, is_mark
from hopefear.features.arcs.templates import COLUMNS, FAMILIES, SPECIAL, value_of

_MASK = (1 << 64) - 1
_ODD, _SPREAD = int(feature_hashing._ODD), int(feature_hashing._SPREAD)
_LEFT, _OUTSIDE = int(feature_hashing._LEFT), int(feature_hashing._OUTSIDE)
_value = lru_cache(1 << 14)(value_of)  # a report repeats a few thousand of them
_BINS = ("0", "1", "2", "3", "4", "5", "6-7", "8-10", "11-15", "16", "17-30", "31+")


class ArcPart(NamedTuple):
    """A part of a tree: words of its family, the two ends of distances, its side."""

    family: str
    words: tuple[int, int, int]
    ends: tuple[int, int]
    side: int
    note: str  # behind the names of its features


def arc_part(family: str, h: int, m: int) -> ArcPart:
    """An arc, of the family ``arc`` or ``label``."""
    return ArcPart(family, (h, m, m), (h, m), *_side(h, m))


def sibling_part(h: int, s: int, m: int) -> ArcPart:
    """Two children next to each other; ``s`` is 0 where the second is the first on its side."""
    s = s if s > 0 else feature_hashing.NONE
    return ArcPart("sibling", (h, s, m), (s, m), *_side(h, m))


def last_part(h: int, m: int, n: int) -> ArcPart:
    """The outermost child on its side, of a sentence of n words."""
    side, note = _side(h, m)
    return ArcPart("sibling", (h, m, n + 1), (m, m), (_ODD + side) & _MASK, f"{note} outermost")


def grandparent_part(g: int, h: int, m: int) -> ArcPart:
    """A word, its head and the head of that."""
    side, note = _side(h, m)
    if (g < h) != (h < m):
        outside = (m - g) * (h - g) < 0
        side = (side + (_OUTSIDE if outside else _ODD)) & _MASK
        note += " across" if outside else " back"
    return ArcPart("grandparent", (g, h, m), (g, m), side, note)


def _side(h: int, m: int) -> tuple[int, str]:
    return (0, "→") if h < m else (_LEFT, "←")


class Sentence:
    """A sentence as templates see it.

    Parameters
    ----------
    features : ArcMap
        Templates and columns.
    sentences : Sentences
        Number of the sentence.
    i : int
        Its number.
    """

    def __init__(self, features: ArcMap, sentences: Any, i: int) -> None:
        self.features = features
        first, after = sentences.starts[i : i + 2].tolist()
        self.n = after - first

        def texts(name: str) -> list[str]:
            column = sentences.columns[name]
            return [column[k] for k in range(first, after)]

        names = features.columns
        self.columns = {
            name: texts(names[c]) if names[c] else None for c, name in enumerate(COLUMNS)
        }
        self.columns["word"] = [text.lower() for text in texts(names[0])]
        self.marks = [is_mark(text) for text in texts(names[0])]
        self.coarse = _coarse(features, texts(names[3]))
        self.morphs = [
            text.split("|") if text not in ("_", "") else []
            for text in (texts(names[4]) if names[4] else [""] * self.n)
        ]

    def value(self, p: int, column: str) -> tuple[str, int]:
        """Returns the text and the number of a word's column."""
        texts = self.columns[column]
        if 1 <= p <= self.n:
            return ("_", 0) if texts is None else (texts[p - 1], _value(texts[p - 1], column))
        edge = "<root>" if p == 0 else "<front>" if -feature_hashing.BEFORE <= p < 0 else "<back>"
        return edge, _value(edge, column)

    def special(self, field: str, u: int, v: int) -> tuple[str, int]:
        """Returns the text and the number of a distance or of a count between two words."""
        low, high = min(u, v), max(u, v)
        if field == "distance":
            number = int(feature_hashing._distance(high - low))
            return _BINS[number], (number + 1) * _SPREAD & _MASK
        between = range(low + 1, high) if low >= 0 else range(0)
        if field == "commas":
            count = sum(self.marks[k - 1] for k in between)
        else:
            like = self.coarse[u - 1] if u > 0 else feature_hashing._MOST_COARSE - 1
            count = sum(self.coarse[k - 1] == like for k in between)
        count = min(count, feature_hashing._MOST_COUNTED)
        return str(count), (count + 1) * _SPREAD & _MASK

    def morphology(self, p: int) -> list[str]:
        """Morphological attributes of a word."""
        return self.morphs[p - 1] if 1 <= p <= self.n else []

    def between(self, u: int, v: int) -> list[int]:
        """Numbers of the coarse tags between two words."""
        low, high = min(u, v), max(u, v)
        return sorted({self.coarse[k - 1] for k in range(low + 1, high)}) if low >= 0 else []

    def features_of(self, part: ArcPart) -> Iterator[tuple[str, int]]:
        """Name and number of each feature of a part, in the order of the kernel."""
        letters, (u, v) = FAMILIES[part.family], part.ends
        for template in getattr(self.features.templates, part.family):
            h, odd, names = _value(template, part.family) + part.side, _ODD, []
            kinds: dict[str, str] = {}
            for field in template.split():
                if field == "between" or field.endswith(".morph"):
                    end = (
                        "between"
                        if field == "between"
                        else ("first", "second")[field[0] == letters[-1]]
                    )
                    kinds[end] = field
                    continue
                if field in SPECIAL:
                    text, value = self.special(field, u, v)
                else:
                    position, column = field.split(".")
                    word = part.words[letters.index(position[0])]
                    text, value = self.value(word + int(position[1:] or 0), column)
                names.append(f"{field}={text}")
                h += value * odd
                odd += 2 * _ODD
            for extra, step in self._listed(kinds, u, v, odd):
                number = self.features.number(_cut(h + step), part.family)
                if number is not None:
                    yield " ".join([*names, *extra, part.note]), number

    def _listed(
        self, kinds: Mapping[str, str], u: int, v: int, odd: int
    ) -> Iterator[tuple[list[str], int]]:
        """Yields names and sums of fields that make several features."""
        if not kinds:
            yield [], 0
        elif "between" in kinds:
            tags = dict(enumerate(self.features.coarse))
            for number in self.between(u, v):
                yield [f"between={tags.get(number, 'other')}"], (number + 1) * _SPREAD
        else:
            lists = [
                [(f"{kinds[which]}={text}", _value(text, "morph") * (odd + shift))
                 for text in self.morphology(word)]
                for which, word, shift in (("first", u, 0), ("second", v, 2 * _ODD))
                if which in kinds
            ]  # fmt: skip
            for several in product(*lists):
                yield [name for name, _ in several], sum(step for _, step in several)


def tag_features(features: ArcMap, family: str) -> Iterator[tuple[str, int]]:
    """Name and number of all features that fire on the tags of one or two words alone.

    Only these can be listed without data: hashing keeps no names.
    """
    values = {
        name: [(tag, _value(tag, name)) for tag in (*tags, "<root>")]
        for name, tags in (("tag", features.tags), ("coarse", features.coarse))
    }
    for template in getattr(features.templates, family):
        fields = template.split()
        if not all(field in ("h.tag", "m.tag", "h.coarse", "m.coarse") for field in fields):
            continue
        seed = _value(template, family)
        for several in product(*(values[field[2:]] for field in fields)):
            total, odd = seed, _ODD
            for _, value in several:
                total += value * odd
                odd += 2 * _ODD
            name = " ".join(f"{f}={tag}" for f, (tag, _) in zip(fields, several, strict=True))
            if "m.tag=<root>" in name or "m.coarse=<root>" in name:
                continue
            for side, arrow in ((0, "→"), (_LEFT, "←")):
                number = features.number(_cut(total + side), family)
                if number is not None:
                    yield f"{name} {arrow}", number


def _coarse(features: ArcMap, tags: Sequence[str]) -> list[int]:
    n_tags = feature_hashing._MOST_COARSE
    number = {tag: min(k, n_tags - 2) for k, tag in enumerate(features.coarse)}
    return [number.get(tag, n_tags - 1) for tag in tags]


def _cut(h: int) -> int:
    h &= _MASK
    h ^= h >> 32
    return (h * _SPREAD & _MASK) >> 32
