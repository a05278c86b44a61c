"""Selection of the features of trees: families, their kinds and variants, and named sets.

Every feature is a sequence of symbols: its kind, then labels, words, marks and small numbers. What
is no string of a tree stands before them in one table, `SPECIALS`; kinds come first in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hopefear.errors import HopefearError, ModelError

SPECIALS: list[str] = []
KINDS: dict[str, str] = {}  # name: what the features show


def _kind(name: str, shows: str) -> int:
    KINDS[name] = shows
    return _special(name)


def _special(text: str) -> int:
    SPECIALS.append(text)
    return len(SPECIALS) - 1


RULE = _kind("Rule.plain", "a node and its children")
RULE_UP = _kind("Rule.up", "the same, and the parent")
RULE_UP2 = _kind("Rule.up2", "the same, and two ancestors")
RULE_TAG = _kind("Rule.tag", "a node and its children, the head marked, its tag")
RULE_WORD = _kind("Rule.word", "a node and its children, the word of the head")
RULE_CONTENT = _kind("Rule.content", "a node and its children, the word of the semantic head")
RULE_FUNCTION = _kind("Rule.function", "a node and its children, function words spelt out")
NGRAM2 = _kind("NGram.2", "a node and two adjacent children, seen from the head")
NGRAM2_UP = _kind("NGram.2up", "the same, and the parent")
NGRAM2_TAG = _kind("NGram.2tag", "the same as NGram.2, and the tag of the head")
NGRAM2_WORD = _kind("NGram.2word", "the same as NGram.2, and the word of the head")
NGRAM2_FUNCTION = _kind("NGram.2function", "the same as NGram.2, function words spelt out")
NGRAM3 = _kind("NGram.3", "a node and three adjacent children, seen from the head")
NGRAM3_UP = _kind("NGram.3up", "the same, and the parent")
NGRAM3_TAG = _kind("NGram.3tag", "the same as NGram.3, and the tag of the head")
NGRAM_TREE2 = _kind("NGramTree.2", "the smallest tree over two adjacent tags")
NGRAM_TREE2_FUNCTION = _kind("NGramTree.2function", "the same, function words spelt out")
NGRAM_TREE2_WORD = _kind("NGramTree.2word", "the same, both words spelt out")
NGRAM_TREE3 = _kind("NGramTree.3", "the smallest tree over three adjacent tags")
NGRAM_TREE3_FUNCTION = _kind("NGramTree.3function", "the same, function words spelt out")
HEADS_TT = _kind("Heads.tt", "tags of a head and of its governor")
HEADS_TW = _kind("Heads.tw", "the word of a head and the tag of its governor")
HEADS_WT = _kind("Heads.wt", "the tag of a head and the word of its governor")
HEADS_WW = _kind("Heads.ww", "words of a head and of its governor")
HEADS_LABEL = _kind("Heads.label", "categories and tags of a head and of its governor")
HEADS_TTT = _kind("Heads.ttt", "tags of a head, its governor and the governor of that")
HEADS_TTW = _kind("Heads.ttw", "the same, the word of the head")
HEADS_STT = _kind("Heads.semantic.tt", "tags of a semantic head and of its governor")
HEADS_STW = _kind("Heads.semantic.tw", "the word of a semantic head, the tag of its governor")
HEADS_SWT = _kind("Heads.semantic.wt", "the tag of a semantic head, the word of its governor")
HEADS_SWW = _kind("Heads.semantic.ww", "words of a semantic head and of its governor")
HEADS_STTT = _kind("Heads.semantic.ttt", "tags of a semantic head and of two governors")
HEAD_TREE = _kind("HeadTree.plain", "all projections of a tag and their other children")
HEAD_TREE_WORD = _kind("HeadTree.word", "the same, and the word")
HEAD_TREE_SEMANTIC = _kind("HeadTree.semantic", "projections by semantic heads")
HEAD_TREE_SEMANTIC_WORD = _kind("HeadTree.semantic.word", "the same, and the word")
LEX_FUN_TAGS = _kind("LexFunHeads.tags", "tags of the syntactic and the semantic head of a node")
LEX_FUN_FUNCTION = _kind("LexFunHeads.function", "word of the syntactic, tag of the semantic head")
LEX_FUN_WORDS = _kind("LexFunHeads.words", "words of both heads of a node")
WPROJ_TAG = _kind("WProj.tag", "categories of all projections of a tag, and what they stand under")
WPROJ_WORD = _kind("WProj.word", "the same, and the word")
WORD1 = _kind("Word.1", "a word and its tag")
WORD2 = _kind("Word.2", "a word, its tag and the node above")
WORD3 = _kind("Word.3", "a word, its tag and two nodes above")
RIGHT_BRANCH = _kind("RightBranch", "number of nodes on and off the way to the last word")
HEAVY = _kind("Heavy", "a node, its length, whether it ends the sentence or punctuation follows")
NEIGHBOURS1 = _kind("Neighbours.1", "a node, its length, the tags left and right of it")
NEIGHBOURS2 = _kind("Neighbours.2", "a node, its length, two tags left and one right of it")
COPAR = _kind("CoPar.depth", "whether conjuncts look alike down to a depth")
COPAR_LABEL = _kind("CoPar.label", "the same, and what is coordinated")
COLENPAR = _kind("CoLenPar.plain", "how much longer a conjunct is than the one before")
COLENPAR_LABEL = _kind("CoLenPar.label", "the same, and what is coordinated")
EDGES_LEFT = _kind("Edges.left", "a node, the tags around its left edge")
EDGES_RIGHT = _kind("Edges.right", "a node, the tags around its right edge")
EDGES_INNER = _kind("Edges.inner", "a node, its first and last tag")
EDGES_OUTER = _kind("Edges.outer", "a node, the tags left and right of it")
EDGES_AROUND = _kind("Edges.around", "a node, the tags inside and outside both edges")
EDGES_LEFT_LENGTH = _kind("Edges.left.length", "the same as Edges.left, and the length")
EDGES_RIGHT_LENGTH = _kind("Edges.right.length", "the same as Edges.right, and the length")
EDGES_LEFT2 = _kind("Edges.left2", "a node, two tags on either side of its left edge")
EDGES_RIGHT2 = _kind("Edges.right2", "a node, two tags on either side of its right edge")
WORD_EDGES_FIRST = _kind("WordEdges.first", "a node, its length, its first word")
WORD_EDGES_LAST = _kind("WordEdges.last", "a node, its length, its last word")
WORD_EDGES_BEFORE = _kind("WordEdges.before", "a node, its length, the word before")
WORD_EDGES_AFTER = _kind("WordEdges.after", "a node, its length, the word after")
WORD_EDGES_LEFT = _kind("WordEdges.left", "a node, the words around its left edge")
WORD_EDGES_RIGHT = _kind("WordEdges.right", "a node, the words around its right edge")
DISTANCE_TT = _kind("Distance.tt", "tags of a head and of its governor, and how far apart")
DISTANCE_TW = _kind("Distance.tw", "the word of a head, the tag of its governor, how far apart")
DISTANCE_WT = _kind("Distance.wt", "the tag of a head, the word of its governor, how far apart")
SPAN_SHAPE = _kind("SpanShape", "a node, its parent, its first and last tag, its length")
SUBCAT_TAG = _kind("Subcat.tag", "a node, its head's tag and the phrases on either side")
SUBCAT_WORD = _kind("Subcat.word", "the same, and the head's word")

EXTENSIONS = ("Distance", "SpanShape", "Subcat")  # families that Charniak and Johnson did not have

ARROW = _special("->")
UP = _special("^")
HEAD = _special("*")
BEFORE_HEAD = _special("<")
AFTER_HEAD = _special(">")
CLOSE = _special(")")
GAP = _special("_")  # position of a projection among its siblings
OUTSIDE = _special("[]")  # beyond the first or last child, token or ancestor
EMPTY = _special("-NONE-")  # the word of a node without words
YES = _special("yes")
NO = _special("no")
LOWEST, HIGHEST = -8, 31
ZERO = _special(str(LOWEST)) - LOWEST
for _number in range(LOWEST + 1, HIGHEST + 1):
    _special(str(_number))
N_SPECIALS = len(SPECIALS)


def family_of(kind: str) -> str:
    """``NGram`` for ``NGram.2up``."""
    return kind.split(".")[0]


FAMILIES = tuple(dict.fromkeys(map(family_of, KINDS)))
_DEFINITIONS = 1  # raised when the meaning of a kind of features changes


def _members(name: str) -> list[str]:
    return [kind for kind in KINDS if kind == name or family_of(kind) == name]


_SETS = {
    "ptb": tuple(kind for kind in KINDS if family_of(kind) not in EXTENSIONS),
    "rich": tuple(KINDS),
}


@dataclass(frozen=True)
class TreeFamilies:
    """Kinds of features to take from trees.

    Parameters
    ----------
    kinds : tuple of str
        Names such as ``Rule.up``, in the order of `KINDS`.
    lower : bool
        Words are compared in lower case.
    """

    kinds: tuple[str, ...] = _SETS["ptb"]
    lower: bool = True

    def __post_init__(self) -> None:
        for name in self.kinds:
            if name not in KINDS:
                raise HopefearError(_unknown(name))
        object.__setattr__(self, "kinds", tuple(kind for kind in KINDS if kind in set(self.kinds)))

    def to_header(self) -> dict[str, Any]:
        """Returns the fields of a model file's header."""
        return {"definitions": _DEFINITIONS, "kinds": list(self.kinds), "lower": self.lower}

    @classmethod
    def from_header(cls, header: Mapping[str, Any]) -> TreeFamilies:
        """Reads the families of a model file; raises ModelError for unknown ones."""
        if header.get("definitions") != _DEFINITIONS:
            raise ModelError(
                f"tree features: the file has definitions {header.get('definitions')!r:.40}, this "
                f"version of hopefear has {_DEFINITIONS}; train the model again"
            )
        kinds, lower = header.get("kinds"), header.get("lower")
        if not isinstance(lower, bool) or not isinstance(kinds, list):
            raise ModelError("tree features: expected a list of kinds and a truth value for lower")
        for name in kinds:
            if not isinstance(name, str) or name not in KINDS:
                raise ModelError(f"tree features: no kind is called {name!r:.60}")
        return cls(tuple(kinds), lower)


def families(text: str, lower: bool = True) -> TreeFamilies:
    """Families from a named set or a list of names; a name behind ``-`` is taken away.

    Parameters
    ----------
    text : str
        ``ptb`` (what Charniak and Johnson, 2005, published), ``rich`` (everything), families such
        as ``Rule``, kinds such as ``Rule.up``; several with commas, read from left to right.
    lower : bool
        Words are compared in lower case.

    Examples
    --------
    >>> families("Word,Heavy,-Word.3").kinds
    ('Word.1', 'Word.2', 'Heavy')
    """
    kinds: dict[str, None] = {}
    for item in text.split(","):
        name = item.strip()
        set_name = name.removeprefix("-")
        members = _SETS.get(set_name) or _members(set_name)
        if not members:
            raise HopefearError(_unknown(set_name))
        for kind in members:
            if set_name == name:
                kinds[kind] = None
            else:
                kinds.pop(kind, None)
    if not kinds:
        raise HopefearError(f"tree features: {text!r:.60} leaves no family; name one, or ptb")
    return TreeFamilies(tuple(kinds), lower)


def _unknown(name: str) -> str:
    parts = [kind for kind in KINDS if family_of(kind) == family_of(name)]
    available = parts or [*_SETS, *FAMILIES]
    return f"tree features: nothing is called {name!r:.60}; known are {', '.join(available)}"
