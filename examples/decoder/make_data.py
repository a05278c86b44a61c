"""Make the toy data of the decoder: sentences with known translations, and a doubtful phrase table.

The same seed makes the same files. German keeps its word order: verbs stand second or last, so a
decoder has to jump; English has one fixed order. Of the two scores of the table the first is
misleading (it likes wrong entries as much as right ones) and the second is informative, so weights
have to be tuned before translations are any good.

Run: python examples/decoder/make_data.py FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

# German noun: gender, English nouns (the first is the usual one).
NOUNS = {
    "hund": ("m", "dog"),
    "kater": ("m", "cat"),
    "junge": ("m", "boy", "lad"),
    "lehrer": ("m", "teacher"),
    "brief": ("m", "letter"),
    "schlüssel": ("m", "key"),
    "ball": ("m", "ball"),
    "frau": ("f", "woman", "lady"),
    "ärztin": ("f", "doctor"),
    "katze": ("f", "cat"),
    "zeitung": ("f", "newspaper", "paper"),
    "geschichte": ("f", "story"),
    "lampe": ("f", "lamp"),
    "kind": ("n", "child", "kid"),
    "mädchen": ("n", "girl"),
    "buch": ("n", "book"),
    "bild": ("n", "picture", "image"),
    "fahrrad": ("n", "bicycle", "bike"),
}
PEOPLE = ("junge", "lehrer", "frau", "ärztin", "kind", "mädchen", "hund", "kater", "katze")
THINGS = (
    *("brief", "schlüssel", "ball", "zeitung", "geschichte", "lampe", "buch", "bild", "fahrrad"),
)
ADJECTIVES = {
    "klein": ("small", "little"),
    "alt": ("old",),
    "neu": ("new",),
    "rot": ("red",),
    "müd": ("tired",),
    "schön": ("beautiful", "nice"),
}
# Infinitive stem forms: third person, participle; English present and past.
VERBS = {
    "find": ("findet", "gefunden", "finds", "found"),
    "seh": ("sieht", "gesehen", "sees", "saw"),
    "kauf": ("kauft", "gekauft", "buys", "bought"),
    "such": ("sucht", "gesucht", "looks for", "looked for"),
    "hol": ("holt", "geholt", "fetches", "fetched"),
    "verlier": ("verliert", "verloren", "loses", "lost"),
    "zeig": ("zeigt", "gezeigt", "shows", "showed"),
}
PLACES = {
    "im garten": "in the garden",
    "am bahnhof": "at the station",
    "in der küche": "in the kitchen",
    "auf dem markt": "at the market",
    "vor dem schloss": "in front of the castle",
    "auf der bank": "on the bench",
}
TIMES = {"gestern": "yesterday", "heute": "today", "jeden tag": "every day", "oft": "often"}
ARTICLES = {
    "subject": {"m": ("der", "ein"), "f": ("die", "eine"), "n": ("das", "ein")},
    "object": {"m": ("den", "einen"), "f": ("die", "eine"), "n": ("das", "ein")},
}
# Single words of phrases above, and what they mean elsewhere.
WORDS = {
    "im": ("in the", "in", "during"),
    "garten": ("garden", "yard"),
    "am": ("at the", "on", "on the"),
    "bahnhof": ("station", "railway station"),
    "in": ("in", "into", "at"),
    "auf": ("on", "at", "up"),
    "vor": ("in front of", "before", "ago"),
    "dem": ("the", "that", "whom"),
    "küche": ("kitchen", "cuisine"),
    "markt": ("market", "market place"),
    "schloss": ("lock", "castle", "closed"),
    "bank": ("bank", "bench"),
    "jeden": ("every", "each"),
    "tag": ("day", "hello"),
    "hat": ("has", "had", "owns"),
    "weil": ("because", "since"),
    "dass": ("that", "so that"),
    "wir": ("we", "us"),
    "ich": ("i", "me"),
    "glauben": ("think", "believe", "faith"),
    "weiß": ("know", "white"),
}
OPENINGS = {"ich weiß dass": "i know that", "wir glauben dass": "we think that"}
CHATTER = ("of the", "one of", "up to", "it is", "by", "and the", "as well", "in which")


class Maker:
    """Sentences drawn from a small grammar of both languages at once."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def pick(self, items: Sequence[Any]) -> Any:
        return items[int(self.random.random() * len(items))]

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def phrase(self, case: str, nouns: Sequence[str]) -> tuple[str, str]:
        noun = self.pick(nouns)
        gender, *meanings = NOUNS[noun]
        definite = self.chance(0.6)
        article = ARTICLES[case][gender][0 if definite else 1]
        meaning = meanings[0] if self.chance(0.85) else self.pick(meanings)
        adjective, described = "", ""
        if self.chance(0.5):
            stem = self.pick(list(ADJECTIVES))
            described = ADJECTIVES[stem][0] if self.chance(0.85) else self.pick(ADJECTIVES[stem])
            adjective = stem + _ending(case, gender, definite)
        start = "the" if definite else "an" if (described or meaning)[0] in "aeiou" else "a"
        return _join(article, adjective, noun), _join(start, described, meaning)

    def sentence(self) -> tuple[str, str]:
        """A German sentence and its translation."""
        subject, who = self.phrase("subject", PEOPLE)
        thing, what = self.phrase("object", THINGS)
        place = self.pick(list(PLACES)) if self.chance(0.6) else ""
        where = PLACES.get(place, "")
        time = self.pick(list(TIMES))
        when = TIMES[time]
        present, participle, does, did = VERBS[self.pick(list(VERBS))]
        kind = int(self.random.random() * 4)
        if kind == 0:  # the verb second
            return _join(subject, present, time, thing, place), _join(who, does, what, where, when)
        if kind == 1:  # the participle last
            german = _join(subject, "hat", time, thing, place, participle)
            return german, _join(who, did, what, where, when)
        if kind == 2:  # the time first, the participle last
            german = _join(time, "hat", subject, thing, place, participle)
            return german, _join(who, did, what, where, when)
        opening = self.pick(list(OPENINGS))  # the verb last
        german = _join(opening, subject, thing, place, present)
        return german, _join(OPENINGS[opening], who, does, what, where)

    def sentences(self, n: int) -> list[tuple[str, str]]:
        return [self.sentence() for _ in range(n)]

    def table(self) -> list[str]:
        """Returns right entries and wrong ones; the first score does not distinguish them."""
        right = sorted(set(_entries()))
        targets = sorted({target for _, target in right})
        lines = {(source, target): self.scores(good=True) for source, target in right}
        for source in sorted({source for source, _ in right}):
            for wrong in self.mistakes(source, targets, right):
                lines.setdefault((source, wrong), self.scores(good=False))
        return [f"{s} ||| {t} ||| {p:.4f} {q:.4f}" for (s, t), (p, q) in sorted(lines.items())]

    def mistakes(self, source: str, targets: list[str], right: list[tuple[str, str]]) -> list[str]:
        good = [target for word, target in right if word == source]
        return [
            self.pick(targets),
            _join(self.pick(good), self.pick(CHATTER)),
            _join(self.pick(CHATTER), self.pick(good)),
        ][: 2 + self.chance(0.5)]

    def scores(self, good: bool) -> tuple[float, float]:
        first = 0.02 + 0.5 * self.random.random() ** (2 if good else 1)
        second = (0.1 if good else 0.01) + (0.5 if good else 0.15) * self.random.random()
        return first, second


def _ending(case: str, gender: str, definite: bool) -> str:
    if case == "object" and gender == "m":
        return "en"
    if definite or gender == "f":
        return "e"
    return "er" if gender == "m" else "es"


def _entries() -> list[tuple[str, str]]:
    """Every entry that is right somewhere."""
    entries = [(word, meaning) for word, meanings in WORDS.items() for meaning in meanings]
    entries += [(noun, meaning) for noun, (_, *meanings) in NOUNS.items() for meaning in meanings]
    for stem, meanings in ADJECTIVES.items():
        entries += [(stem + end, m) for end in ("e", "er", "es", "en") for m in meanings]
    for present, participle, does, did in VERBS.values():
        entries += [(present, does), (participle, did)]
    for case in ARTICLES.values():
        for definite, indefinite in case.values():
            entries += [(definite, "the"), (indefinite, "a"), (indefinite, "an")]
    entries += [*PLACES.items(), *TIMES.items(), *OPENINGS.items()]
    entries += [(f"hat {time}", when) for time, when in TIMES.items()]
    entries += [(f"{time} hat", when) for time, when in TIMES.items()]
    return entries


def _join(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent / "data")
    folder.mkdir(parents=True, exist_ok=True)

    def write(name: str, lines: list[str]) -> None:
        (folder / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")

    maker = Maker(seed=1)
    write("text.en", [english for _, english in maker.sentences(250)])
    for name in ("dev", "test"):
        pairs = maker.sentences(60)
        write(f"{name}.de", [german for german, _ in pairs])
        write(f"{name}.en", [english for _, english in pairs])
    write("phrase-table.txt", maker.table())


if __name__ == "__main__":
    main()
