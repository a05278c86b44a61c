"""A trained parser: trees, weights, features and relations; parse, rank, explain, save, load."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from hopefear.core.interfaces import n_weights
from hopefear.data.labels import limits_of
from hopefear.data.sequences import Column
from hopefear.data.tokenizer import Tokenizer
from hopefear.data.tree_rows import TreeDataset, TreeKind, TreeRows
from hopefear.data.treebank import MISSING, Treebank
from hopefear.errors import HopefearError, ModelError
from hopefear.features.arcs.arc_map import ArcMap
from hopefear.features.arcs.token_arcs import TokenArcs
from hopefear.storage import field_of, names_of
from hopefear.structures.tree.searches import tree_search
from hopefear.structures.tree.tree import Tree
from hopefear.tasks.base import Explanation, Model
from hopefear.tasks.parse.pruning import Pruner, plain_rows
from hopefear.tasks.parse.taggers import Taggers
from hopefear.training.decoders.base import KBest
from hopefear.training.decoders.trees import TreeDecoder
from hopefear.training.predictors import Predictor, predictor_from_arrays


@dataclass(frozen=True, repr=False)
class ParseModel(Model):
    """A parser that can be trusted, inspected and sent to others.

    Parameters
    ----------
    predictor : Predictor
        Weights.
    labels : tuple of str
        Names of the relations; none where only heads were learned.
    features : ArcMap or TokenArcs
        What fires on arcs, or what a network reads.
    kind : TreeKind
        Which trees there are.
    pruner : Pruner, optional
        What chooses the arcs that are looked at.
    temperature : float
        Scores are divided by it before they become probabilities.
    signature : str
        How the model was made, in one line.
    about : dict
        Learner and its parameters, training summary, origin of the data.
    taggers : Taggers, optional
        What gives words their tags; without, they must have some.
    """

    task: ClassVar[str] = "parse"
    predictor: Predictor
    labels: tuple[str, ...]
    features: Any
    kind: TreeKind
    pruner: Pruner | None = None
    temperature: float = 1.0
    signature: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)
    taggers: Taggers | None = None

    @property
    def classes(self) -> tuple[str, ...]:
        """The relations, by the name that all models have for them."""
        return self.labels

    def structure(self, limits: np.ndarray | None = None) -> Tree:
        """The trees, with limits on the relations of single words."""
        return structure_of(self.features, self.labels, self.kind, limits)

    def encode(self, bank: Treebank | TreeDataset, allowed: Any = None) -> TreeDataset:
        """Returns sentences as this model sees them, with the tags of its taggers.

        ``allowed``: for every word the heads it may have, or None for any.
        """
        if isinstance(bank, TreeDataset):
            return bank
        if self.taggers is not None:
            bank = self.taggers.tagged(bank)
        check_columns(bank, self.features)
        data = encoded(bank, self.features, self.labels, self.kind, self.pruner).known(bank, 0)
        return data if allowed is None else with_heads_allowed(data, allowed)

    def with_tagger(self, tagger: Any) -> ParseModel:
        """Returns the same parser with tags of other taggers; see :meth:`Taggers.of`."""
        return replace(self, taggers=Taggers.of(tagger))

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The rules under which text looks as training data did."""
        if self.taggers is not None:
            return self.taggers.tokenizer
        return Tokenizer.suiting(getattr(self.features, "known_words", None))

    def decoder(self, n_jobs: int = 1, limits: np.ndarray | None = None) -> Any:
        """What answers questions about sentences."""
        return TreeDecoder.of(self.structure(limits), self.predictor, self.temperature, n_jobs)

    def parse(
        self,
        bank: Treebank | TreeDataset,
        n_jobs: int = 1,
        heads: Any = None,
        relations: Any = None,
    ) -> tuple[np.ndarray, Column | None]:
        """Heads and relations of all words; relations are None where none were learned.

        Parameters
        ----------
        bank : Treebank or TreeDataset
            Sentences.
        n_jobs : int
            Threads; results do not depend on it.
        heads, relations : sequence, optional
            For every word the heads, or the names of the relations, it may have, or None for any.
        """
        limits = (
            None
            if relations is None
            else limits_of(self.labels, relations, "relations of word", len(self.labels))
        )
        codes = self.decoder(n_jobs, limits).predict(self.encode(bank, heads).rows)
        return self.trees(codes)

    def trees(self, codes: np.ndarray) -> tuple[np.ndarray, Column | None]:
        """Heads and relations of labels."""
        n = max(1, len(self.labels))
        relations = Column(self.labels, (codes % n).astype(np.int32)) if self.labels else None
        return codes // n, relations

    def nbest(self, bank: Treebank | TreeDataset, n: int, n_jobs: int = 1) -> list[KBest]:
        """The n best trees of every sentence: labels, scores, probabilities."""
        return self.decoder(n_jobs).k_best(self.encode(bank).rows, n)

    def arc_probabilities(
        self, bank: Treebank | TreeDataset, heads: np.ndarray, n_jobs: int = 1
    ) -> np.ndarray:
        """How probable the head of every word is, whatever its relation."""
        rows = self.encode(bank).rows
        shares = self.decoder(n_jobs).probabilities(rows)
        owners = np.repeat(np.arange(rows.labels.size), np.diff(rows.ptr))
        found = rows.heads == np.asarray(heads)[owners]
        return np.bincount(owners[found], shares[found], minlength=rows.labels.size)

    def explain(self, bank: Treebank, sentence: int, word: int) -> Explanation:
        """What made the head of a word beat the runner-up (both counted from 0).

        The runner-up is the best tree in which the word has another head.
        """
        from hopefear.tasks.parse.explaining import explain

        self.check_linear()
        return explain(self, bank, sentence, word)

    def heaviest_features(self, top: int) -> list[tuple[str, str, float]]:
        """(feature, relation, weight) of the heaviest features of tags alone, heaviest first."""
        from hopefear.tasks.parse.explaining import heaviest_features

        return heaviest_features(self, top)

    def own_header(self) -> dict[str, Any]:
        return {
            "order": self.kind.order,
            "projective": self.kind.projective,
            "single": self.kind.single,
            "temperature": self.temperature,
            "labels": list(self.labels),
            "pruner": None if self.pruner is None else self.pruner.to_header(),
            **({} if self.taggers is None else {"taggers": self.taggers.to_header()}),
        }

    def _arrays(self) -> dict[str, np.ndarray]:
        pruner = {} if self.pruner is None else self.pruner.arrays()
        taggers = {} if self.taggers is None else self.taggers.arrays()
        return {**narrowed({**super()._arrays(), **pruner}), **taggers}

    @classmethod
    def from_header(
        cls, header: Mapping[str, Any], features: Any, arrays: Any, **common: Any
    ) -> ParseModel:
        taggers = None
        if "taggers" in header:
            taggers = Taggers.from_parts(field_of(header, "taggers", list), arrays)
        arrays = widened(arrays)
        labels = names_of(header, "labels") if field_of(header, "labels", list) else ()
        kind = TreeKind(
            field_of(header, "order", int),
            field_of(header, "projective", bool),
            field_of(header, "single", bool),
        )
        if kind.order not in (1, 2):
            raise ModelError("the order of trees must be 1 or 2")
        network = field_of(header["features"], "kind", str) == TokenArcs.kind
        mapping: Any = (TokenArcs if network else ArcMap).from_parts(header["features"], features)
        pruner = field_of(header, "pruner", dict, type(None))
        size = n_weights(structure_of(mapping, labels, kind))
        return cls(
            predictor_from_arrays(arrays, size),
            labels,
            mapping,
            kind,
            None if pruner is None else Pruner.from_parts(pruner, arrays),
            float(field_of(header, "temperature", float, int)),
            taggers=taggers,
            **common,
        )

    def check(self) -> None:
        if not 0.0 < self.temperature < np.inf:
            raise ModelError("the temperature must be above zero")
        if self.kind.order == 2 and self.pruner is None:
            raise ModelError("trees of second order have a pruner")
        self.check_network(TokenArcs.kind, "biaffine", max(1, len(self.labels)))
        if self.features.kind == TokenArcs.kind and (self.kind.order, self.pruner) != (1, None):
            raise ModelError("networks score arcs one by one, and look at all of them")
        self.check_size(n_weights(self.structure()))


def needs_tags(features: ArcMap | TokenArcs) -> bool:
    """Whether a parser has learned from tags."""
    tag = features.columns[2]
    tags = features.tags if isinstance(features, ArcMap) else features.tables.get(tag, ())
    return any(text != MISSING for text in tags)


def check_columns(bank: Treebank, features: ArcMap | TokenArcs) -> None:
    """HopefearError for words without the tags that a parser learned from; a warning for others."""
    columns, (_, lemma, tag, _, morph) = bank.sentences.columns, features.columns

    def is_empty(name: str) -> bool:
        column = columns[name]
        known = [text != MISSING for text in column.strings]
        return bool(known) and not np.array(known)[column.ids].any()

    if bank.n_tokens and needs_tags(features) and is_empty(tag):
        raise HopefearError(
            f"{bank.source} has no tags in the column {tag}, from which the parser has learned; "
            "give them, or a tagger (--tagger MODEL, Parser(tagger=…)), or train a parser that has "
            "taggers of its own (--tagger auto)"
        )
    looked_at = str(features.templates) if isinstance(features, ArcMap) else ""
    more = {"lemma": lemma, "morph": morph}
    if lacking := [c for key, c in more.items() if c and key in looked_at and is_empty(c)]:
        those = " and ".join(lacking)
        warnings.warn(
            f"{bank.source} has no {those}, from which the parser has learned too: its trees will "
            f"be worse; give {those}, or train a parser with a tagger (train parse --tagger, "
            "Parser(tagger=…)), which then learns from what taggers give",
            stacklevel=3,
        )


def narrowed(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Coordinates in 32 bits, which are enough for hashed features and make files smaller."""
    return {
        name: array.astype(np.uint32) if name.endswith("weights.ids") else array
        for name, array in arrays.items()
    }


def widened(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Coordinates in 64 bits, as predictors have them."""
    narrow = [name for name in arrays if name in ("weights.ids", "pruner.weights.ids")]
    if any(arrays[name].dtype != np.uint32 for name in narrow):
        raise ModelError("the coordinates of the weights are not whole numbers of 32 bits")
    return {**arrays, **{name: arrays[name].astype(np.int64) for name in narrow}}


def structure_of(
    features: ArcMap | TokenArcs,
    labels: Sequence[str],
    kind: TreeKind,
    limits: np.ndarray | None = None,
) -> Tree:
    """The trees that features and relations make."""
    search = tree_search(kind.order, kind.projective, kind.single)
    return Tree.new(features.component(), max(1, len(labels)), search, limits)


def encoded(
    bank: Treebank,
    features: ArcMap | TokenArcs,
    labels: Sequence[str],
    kind: TreeKind,
    pruner: Pruner | None = None,
) -> TreeDataset:
    """A treebank as arrays; words whose head or relation is not known have the label -1."""
    ptr, heads = features.arcs(bank.sentences)
    number = {name: c for c, name in enumerate(labels)}
    known = np.array([number.get(name, -1) for name in bank.relations.strings] or [-1], np.int64)
    relations = known[bank.relations.ids] if labels else np.zeros(bank.n_tokens, np.int64)
    codes = np.where(
        (relations >= 0) & (bank.heads >= 0), bank.heads * max(1, len(labels)) + relations, -1
    )
    rows = TreeRows(
        bank.starts, *features.words(bank.sentences), ptr, heads, codes, np.ones(len(bank))
    )
    data = TreeDataset(rows, labels, features, bank.source, kind)
    if pruner is None:
        return data
    plain = plain_rows(data.rows, np.maximum(bank.heads, 0))
    return data.with_arcs(*pruner.prune(plain), pruner)


def with_heads_allowed(data: TreeDataset, allowed: Any) -> TreeDataset:
    """The same sentences, each word with the heads it may have, whatever was worth a look."""
    rows = data.rows
    lengths = np.diff(rows.starts)
    if len(allowed) != rows.labels.size:
        raise HopefearError(
            f"heads are allowed for {len(allowed):,} words, but there are {rows.labels.size:,}; "
            "give a set of heads, or None, for every word"
        )
    longest = np.repeat(lengths, lengths)
    own = np.arange(rows.labels.size) - np.repeat(rows.starts[:-1], lengths) + 1
    lists = []
    for k, some in enumerate(allowed):
        if some is None:
            lists.append(rows.heads[rows.ptr[k] : rows.ptr[k + 1]])
            continue
        heads = np.array(sorted({int(h) for h in some}), np.int32)
        if not heads.size or heads[0] < 0 or heads[-1] > longest[k] or own[k] in heads:
            raise HopefearError(
                f"word {own[k]} of a sentence of {longest[k]} words: allowed heads are numbers "
                f"from 0 to {longest[k]} other than its own, not {sorted(some)}"
            )
        lists.append(heads)
    ptr = np.concatenate([[0], np.cumsum([len(one) for one in lists])])
    return data.with_arcs(ptr, np.concatenate(lists), data.pruner)
