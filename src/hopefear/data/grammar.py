"""A small grammar of English that makes treebanks, for tests and demos without data."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hopefear.data.treebank import Treebank, parse_treebank
from hopefear.errors import HopefearError

_NOUNS = {
    "person": "man woman girl boy doctor teacher farmer friend sailor neighbour",
    "thing": "book letter car house boat apple picture song story window",
    "tool": "telescope hammer knife pencil camera rope spoon key",
    "trait": "beard hat scar smile accent limp",
    "place": "garden village city park kitchen harbour forest school",
}
_ADJECTIVES = "old young small tall red quiet famous happy broken strange"
_NAMES = "Ann Bo Clara David Elena Farid Grace Hugo"
_DO = "see find paint watch follow call help open like remember"
_BE = "sleep arrive laugh work sing wait fall leave"
_SAY = "say think know hope believe claim"
_ADVERBS = "often never slowly soon today again"
_IRREGULAR = {
    **{"see": "saw", "find": "found", "sleep": "slept", "sing": "sang", "fall": "fell"},
    **{"leave": "left", "say": "said", "think": "thought", "know": "knew", "man": "men"},
    **{"woman": "women", "knife": "knives"},
}
_LONG = 25  # one sentence in so many is a long chain of clauses
_DEEPEST = 2  # how far clauses and phrases go into each other


@dataclass
class _Word:
    """A word with its dependents to the left and to the right."""

    form: str
    lemma: str
    upos: str
    xpos: str
    feats: str = "_"
    relation: str = "dep"
    left: list[_Word] = field(default_factory=list)
    right: list[_Word] = field(default_factory=list)

    def row(self) -> list[_Word]:
        """The word and all below it, from left to right."""
        before = [word for child in self.left for word in child.row()]
        return [*before, self, *(word for child in self.right for word in child.row())]


def synthetic_treebank(
    n_sentences: int = 200, *, nonprojective: float = 0.0, seed: int = 0
) -> Treebank:
    """Trees of English sentences as Universal Dependencies would have them, from a small grammar.

    Parameters
    ----------
    n_sentences : int
        Sentences to draw.
    nonprojective : float
        Share of the sentences whose relative clause stands behind the verb, which makes arcs cross.
    seed : int
        Another seed is another sample of the same language.

    Notes
    -----
    What a phrase with *with* belongs to depends on its noun (*saw a man with a telescope*, *with
    a beard*), so that no tag tells it; one sentence in 25 has a hundred words or more.

    Examples
    --------
    >>> bank = synthetic_treebank(3, seed=4)
    >>> " ".join(bank.take([1]).sentences.columns["form"].texts())
    'the girl never liked him .'
    """
    if n_sentences < 1 or not 0.0 <= nonprojective <= 1.0:
        raise HopefearError(
            "synthetic_treebank needs n_sentences >= 1 and nonprojective from 0 to 1, got "
            f"{n_sentences}, {nonprojective}"
        )
    draw = _Draw(np.random.default_rng(seed))
    pieces = []
    for i in range(n_sentences):
        words, root = draw.sentence(draw.chance(nonprojective), (i + 1) % _LONG == 0)
        pieces.append(_text(words, root, i + 1))
    return parse_treebank("".join(pieces).encode(), "generated trees")


class _Draw:
    """Words and phrases by chance."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def chance(self, p: float) -> bool:
        return bool(self._rng.random() < p)

    def pick(self, words: str) -> str:
        choice = words.split()
        # The first words are the most frequent ones.
        return choice[int(len(choice) * self._rng.random() ** 2)]

    def sentence(self, crossing: bool, long: bool) -> tuple[list[_Word], _Word]:
        """The words in order, and the root."""
        root = self.clause("root", 0, crossing)
        n_words = int(self._rng.integers(10, 16)) if long else int(self.chance(0.15))
        for k in range(n_words):
            clause = self.clause("conj", 1)
            last = k == n_words - 1
            link = _Word("and", "and", "CCONJ", "CC", relation="cc") if last else _mark(",")
            clause.left.insert(0, link)
            root.right.append(clause)
        root.right.append(_mark("." if self.chance(0.9) else "!"))
        words = root.row()
        if crossing:  # behind everything, across the arcs of the verb
            subject = next(word for word in root.left if word.relation == "nsubj")
            relative = self.relative(_DEEPEST)
            words[-1:-1] = relative.row()
            subject.right.append(relative)
        return words, root

    def clause(self, relation: str, depth: int, subject: bool = False) -> _Word:
        """Makes a subject, a verb and its arguments; with ``subject`` no pronoun or name."""
        kind = "say" if depth < _DEEPEST and self.chance(0.15) else "do"
        verb = self.verb(relation, kind if kind == "say" else self.pick("do do be"))
        verb.left.insert(0, self.noun("nsubj", "person", depth, common=subject))
        if verb.lemma in _SAY.split():
            inner = self.clause("ccomp", depth + 1)
            inner.left.insert(0, _Word("that", "that", "SCONJ", "IN", relation="mark"))
            verb.right.append(inner)
            return verb
        if verb.lemma in _DO.split():
            verb.right.append(self.noun("obj", self.pick("thing person tool"), depth))
        if self.chance(0.35):
            verb.right.append(self.phrase("obl", "with", "tool", depth))
        if self.chance(0.3):
            verb.right.append(self.phrase("obl", self.pick("in near"), "place", depth))
        return verb

    def verb(self, relation: str, kind: str) -> _Word:
        lemma = self.pick({"do": _DO, "be": _BE, "say": _SAY}[kind])
        if self.chance(0.25):
            verb = _Word(lemma, lemma, "VERB", "VB", "VerbForm=Inf", relation)
            modal = self.pick("will may must")
            verb.left.append(_Word(modal, modal, "AUX", "MD", "VerbForm=Fin", "aux"))
        else:
            past = _IRREGULAR.get(lemma, lemma + ("d" if lemma.endswith("e") else "ed"))
            verb = _Word(past, lemma, "VERB", "VBD", "Tense=Past|VerbForm=Fin", relation)
        if self.chance(0.2):
            adverb = self.pick(_ADVERBS)
            verb.left.append(_Word(adverb, adverb, "ADV", "RB", relation="advmod"))
        return verb

    def noun(self, relation: str, kind: str, depth: int, common: bool = False) -> _Word:
        if kind == "person" and not common and self.chance(0.35):
            if self.chance(0.5):
                name = self.pick(_NAMES)
                return _Word(name, name, "PROPN", "NNP", "Number=Sing", relation)
            form = self.pick("he she they") if relation == "nsubj" else self.pick("him her them")
            return _Word(form, form, "PRON", "PRP", "PronType=Prs", relation)
        lemma, plural = self.pick(_NOUNS[kind]), self.chance(0.3)
        form = _IRREGULAR.get(lemma, lemma + "s") if plural else lemma
        number, tag = ("Plur", "NNS") if plural else ("Sing", "NN")
        noun = _Word(form, lemma, "NOUN", tag, f"Number={number}", relation)
        if not plural or self.chance(0.6):
            noun.left.append(self.determiner(plural))
        while self.chance(0.25):
            adjective = self.pick(_ADJECTIVES)
            noun.left.append(_Word(adjective, adjective, "ADJ", "JJ", "Degree=Pos", "amod"))
        if kind == "person" and self.chance(0.25):
            noun.right.append(self.phrase("nmod", "with", "trait", _DEEPEST))
        elif kind == "thing" and depth < _DEEPEST and self.chance(0.3):
            noun.right.append(self.phrase("nmod", "of", "person", depth + 1))
        if kind == "person" and depth < _DEEPEST and self.chance(0.12):
            noun.right.append(self.relative(depth + 1))
        return noun

    def determiner(self, plural: bool) -> _Word:
        if self.chance(0.15):
            form = self.pick("his her their")
            return _Word(form, form, "PRON", "PRP$", "Poss=Yes|PronType=Prs", "nmod:poss")
        form = self.pick("the some these") if plural else self.pick("the a this all")
        kind = {"the": "Definite=Def|PronType=Art", "a": "Definite=Ind|PronType=Art"}
        return _Word(form, form, "DET", "DT", kind.get(form, "PronType=Dem"), "det")

    def phrase(self, relation: str, preposition: str, kind: str, depth: int) -> _Word:
        noun = self.noun(relation, kind, depth)
        noun.left.insert(0, _Word(preposition, preposition, "ADP", "IN", relation="case"))
        return noun

    def relative(self, depth: int) -> _Word:
        verb = self.verb("acl:relcl", "do")
        verb.left.insert(0, _Word("who", "who", "PRON", "WP", "PronType=Rel", "nsubj"))
        verb.right.append(self.noun("obj", "thing", depth))
        return verb


def _mark(form: str) -> _Word:
    return _Word(form, form, "PUNCT", form if form == "," else ".", relation="punct")


def _text(words: list[_Word], root: _Word, number: int) -> str:
    """The sentence in CoNLL-U."""
    position = {id(word): m for m, word in enumerate(words, 1)}
    heads = {id(root): 0}
    for word in words:
        heads |= {id(child): position[id(word)] for child in word.left + word.right}
    lines = [f"# sent_id = {number}", "# text = " + " ".join(word.form for word in words)]
    for m, word in enumerate(words, 1):
        fields = (m, word.form, word.lemma, word.upos, word.xpos, word.feats, heads[id(word)])
        lines.append("\t".join(map(str, (*fields, word.relation, "_", "_"))))
    return "\n".join(lines) + "\n\n"
