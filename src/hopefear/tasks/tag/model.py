"""A trained tagger: chain, weights, feature map and labels; tag, rank, explain, save, load."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from hopefear.core.arrays import Strings
from hopefear.core.interfaces import n_weights
from hopefear.data.labels import limits_of
from hopefear.data.schemes import Constraints, legal
from hopefear.data.segments import SegmentDataset, SegmentRows, segment_codes
from hopefear.data.sequences import Column, Sentences, SequenceDataset, TokenRows
from hopefear.data.token_examples import TokenExamples
from hopefear.data.tokenizer import Tokenizer
from hopefear.errors import HopefearError, ModelError
from hopefear.features.parts import token_features_from_parts
from hopefear.storage import field_of, names_of
from hopefear.structures.chain.chain import Chain
from hopefear.structures.chain.searches import AStar, search_named
from hopefear.structures.chain.theta import Limits, no_limits
from hopefear.structures.lattice import padded_width
from hopefear.structures.segments.segments import Segments
from hopefear.tasks.base import Explanation, Model
from hopefear.tasks.tag.explaining import (
    SpanConfidence,
    explain,
    explain_segments,
    segment_probabilities,
    span_probabilities,
)
from hopefear.training.decoders.base import KBest
from hopefear.training.decoders.chains import ChainDecoder
from hopefear.training.decoders.segments import SegmentDecoder
from hopefear.training.predictors import Predictor, predictor_from_arrays

Allowed = Sequence[Sequence[Sequence[str] | None]]


@dataclass(frozen=True, repr=False)
class SequenceModel(Model):
    """A tagger that can be trusted, inspected and sent to others.

    Parameters
    ----------
    predictor : Predictor
        Weights, or votes.
    labels : tuple of str
        Label names, in the order of their numbers.
    features : feature map
        What attributes mean.
    order : int
        1 or 2: how many labels the next one depends on.
    scheme : str, optional
        Tag scheme of the labels (``bio``, ``iobes`` ...). None: labels that are no spans.
    search, beam : str, int
        How the n best are found.
    temperature : float
        Scores are divided by it before they become probabilities.
    signature : str
        How the model was made, in one line.
    about : dict
        Learner and its parameters, training summary, origin of the data.
    constrained : bool
        Whether outputs follow the scheme unless told otherwise.
    """

    task: ClassVar[str] = "tag"
    predictor: Predictor
    labels: tuple[str, ...]
    features: Any
    order: int = 1
    scheme: str | None = None
    search: str = "astar"
    beam: int = 50
    temperature: float = 1.0
    signature: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)
    constrained: bool = True

    @property
    def classes(self) -> tuple[str, ...]:
        """The labels, by the name that all models have for them."""
        return self.labels

    def known_words(self) -> Collection[str] | None:
        """Words that the features know; None where their names do not tell."""
        features = getattr(self.features, "tokens", self.features)  # of segments
        if features.kind == "token-ids":
            return features.known_words
        if features.kind != "templates" or features.hash_bits or not features.to_header()["named"]:
            return None
        for i, column in enumerate(features.needs):
            if column in ("word", "form"):
                strings = Strings.from_parts(features.arrays(), f"strings{i}")
                return {strings.get(k) for k in range(strings.size)}
        return None

    def text_columns(self) -> tuple[str, ...]:
        """Returns what features call words; HopefearError where they need more than words."""
        features, reading = self.features, self.about.get("reading", {})
        if features.kind == "attributes":
            raise HopefearError(
                "text has words, and this model's features are attributes that were made "
                "elsewhere; make them of the tokens that hopefear.data.tokenizer finds, and ask "
                "predict"
            )
        known = {"word", "form"}
        if reading.get("format") != "conllu":
            known |= {"0", *(reading.get("columns") or ("word",))[:1]}
        more = [name for name in features.needs if name not in known]
        if more:
            raise HopefearError(
                f"text has words alone, and this model's features need the column "
                f"{', '.join(more)} too; tag it elsewhere and give columns, or train on words "
                "alone (--columns word,_,label leaves out the column between)"
            )
        return tuple(features.needs) or ("word",)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The rules under which text looks as training data did."""
        return Tokenizer.suiting(self.known_words())

    def structure(self, constrained: bool | Constraints = True, allowed: Any = None) -> Any:
        """The structure, with the limits of the scheme (or of one's own) and of single tokens."""
        rules: str | Constraints | None = None
        if isinstance(constrained, Constraints):
            rules = constrained
        elif constrained and self.constrained:
            rules = self.scheme
        search = search_named(self.search, self.beam)
        return structure_of(self.features, self.labels, self.order, search, rules, allowed)

    def decoder(
        self, constrained: bool | Constraints = True, allowed: Any = None, n_jobs: int = 1
    ) -> Any:
        """What answers questions about sequences."""
        structure = self.structure(constrained, allowed)
        return decoder_of(structure, self.predictor, self.temperature, n_jobs)

    def encode(self, sentences: Any, column: str | None = None) -> SequenceDataset:
        """Sequences as this model sees them; ``column`` holds gold labels, where there are any.

        Labels the model does not know get numbers behind its own.
        """
        if isinstance(sentences, SequenceDataset):
            check_features(sentences, self.features)
            return sentences
        if isinstance(sentences, TokenExamples):
            content, gold = sentences.inputs, sentences.gold
        else:
            content, gold = sentences, None if column is None else sentences.columns[column]
        return encoded(sentences, self.features.encode(content), self.labels, gold, self.features)

    def tag(self, sentences: Sentences | SequenceDataset, **how: Any) -> Column:
        """The best labels of all tokens; see :meth:`decoder` for how."""
        return Column(self.labels, self.decoder(**how).predict(self.encode(sentences).rows))

    def nbest(self, sentences: Sentences | SequenceDataset, n: int, **how: Any) -> list[KBest]:
        """The n best outputs of every sequence: labels, scores, probabilities."""
        return self.decoder(**how).k_best(self.encode(sentences).rows, n)

    def marginals(self, sentences: Sentences | SequenceDataset, **how: Any) -> np.ndarray:
        """Probability of every label at every token."""
        return self.decoder(**how).probabilities(self.encode(sentences).rows)

    def span_probabilities(
        self, sentences: Sentences | SequenceDataset, tags: np.ndarray, **how: Any
    ) -> list[SpanConfidence]:
        """How probable each span of a tagging is; see :func:`hopefear.tasks.tag.explaining`."""
        if self.scheme is None:
            raise HopefearError("labels without a tag scheme make no spans")
        decoder, data = self._linear(self.encode(sentences), how, self.temperature)
        if isinstance(decoder, SegmentDecoder):
            return segment_probabilities(decoder, self.labels, data, tags)
        return span_probabilities(decoder, self.labels, self.scheme, data, tags)

    def explain(
        self, sentences: Sentences | SequenceDataset, sequence: int, token: int, **how: Any
    ) -> Explanation:
        """What made the label of a token beat the runner-up (both counted from 0)."""
        decoder, data = self._linear(self.encode(sentences), how)
        if isinstance(decoder, SegmentDecoder):
            return explain_segments(decoder, data, sequence, token)
        return explain(decoder, data.features, self.labels, data, sequence, token)

    def _linear(
        self, data: SequenceDataset, how: Mapping[str, Any], temperature: float = 1.0
    ) -> tuple[Any, SequenceDataset]:
        """A decoder of weights, and the data whose features have them.

        Of a network these are the scores of tokens.
        """
        decoder: Any = decoder_of(self.structure(**how), self.predictor, temperature)
        if hasattr(decoder, "on"):
            return decoder.on(data)
        self.check_linear()
        return decoder, data

    def transitions(self) -> np.ndarray:
        """Weights of label pairs: ``[label before, label]``."""
        width, n = padded_width(len(self.labels)), len(self.labels)
        if hasattr(self.predictor, "transitions"):
            table = self.predictor.transitions
            return np.zeros((n, n), np.float32) if table is None else table
        table = np.zeros((width, width), np.float32)
        where, weights = self.heaviest(self.features.size * width, table.shape)
        table[where] = weights
        return table[:n, :n].T.copy()

    def triples(self, n: int = 10) -> list[tuple[str, str, str, float]]:
        """The heaviest label triples of a second-order chain, by size, either sign.

        ``(label two before, label before, label, weight)``; none for a first-order chain.
        """
        if self.order == 1:
            return []
        width, names = padded_width(len(self.labels)), self.labels
        start = (self.features.size + (1 + self.features.edge_size) * width) * width
        heaviest = self._of_labels(start, (width,) * 3, slice(0, 3), n)
        return [(names[two], names[one], names[c], weight) for c, one, two, weight in heaviest]

    def edge_top(self, n: int = 10) -> list[tuple[str, str, str, float]]:
        """The heaviest edge attributes, by size, either sign.

        ``(attribute, label before, label, weight)``; none where templates have no edges.
        """
        width, names = padded_width(len(self.labels)), self.labels
        start, shape = (self.features.size + width) * width, (self.features.edge_size, width, width)
        return [
            (self.features.edge_name(a), names[one], names[c], weight)
            for a, c, one, weight in self._of_labels(start, shape, slice(1, 3), n)
        ]

    def _of_labels(
        self, start: int, shape: tuple[int, ...], axes: slice, n: int
    ) -> list[tuple[Any, ...]]:
        """Places and values of the n heaviest weights of a table with labels along some axes."""
        places, weights = self.heaviest(start, shape)
        known = np.all(np.array(places[axes]) < len(self.labels), axis=0)  # the others are padding
        columns = [column[known][:n].tolist() for column in (*places, weights)]
        return list(zip(*columns, strict=True))

    def top(self, n: int = 10) -> dict[str, list[tuple[str, float]]]:
        """The attributes that speak most for every label, heaviest first."""
        return self._extreme(n, 1.0)

    def bottom(self, n: int = 10) -> dict[str, list[tuple[str, float]]]:
        """The attributes that speak most against every label: of negative weight, lowest first."""
        return self._extreme(n, -1.0)

    def _extreme(self, n: int, sign: float) -> dict[str, list[tuple[str, float]]]:
        shape = self.features.size, padded_width(len(self.labels))
        columns = self.heaviest_rows(shape, n, sign)[: len(self.labels)]
        return {
            name: [(self.features.name(a), weight) for a, weight in pairs]
            for name, pairs in zip(self.labels, columns, strict=True)
        }

    def own_header(self) -> dict[str, Any]:
        return {
            "order": self.order,
            "scheme": self.scheme,
            "constrained": self.constrained,
            "search": self.search,
            "beam": self.beam,
            "temperature": self.temperature,
            "labels": list(self.labels),
        }

    @classmethod
    def from_header(
        cls, header: Mapping[str, Any], features: Any, arrays: Any, **common: Any
    ) -> SequenceModel:
        order, labels = field_of(header, "order", int), names_of(header, "labels")
        mapping = token_features_from_parts(header["features"], features)
        size = n_weights(structure_of(mapping, labels, order, AStar()))
        return cls(
            predictor_from_arrays(arrays, size),
            labels,
            mapping,
            order,
            field_of(header, "scheme", str, type(None)),
            field_of(header, "search", str),
            field_of(header, "beam", int),
            float(field_of(header, "temperature", float, int)),
            constrained=field_of({"constrained": True, **header}, "constrained", bool),
            **common,
        )

    def check(self) -> None:
        if self.order not in (1, 2) or not 0.0 < self.temperature < np.inf:
            raise ModelError("the order must be 1 or 2 and the temperature above zero")
        if not 0 < self.beam < 2**31:
            raise ModelError("the beam must be above 0 and have 32 bits")
        self.check_network("token-ids", "tag", len(self.labels))
        self.check_size(n_weights(self.structure()))


def structure_of(
    features: Any,
    labels: Sequence[str],
    order: int,
    search: Any,
    scheme: str | Constraints | None = None,
    allowed: Any = None,
) -> Any:
    """The chain, or the segments, that a feature map and labels make; limits as of chains."""
    if features.kind != "segments":
        limits = scheme_limits(labels, scheme, allowed)
        return chain_of(features, labels, order, search, limits)
    if order != 1:
        raise HopefearError("a segment depends on the one before alone: segments go with order 1")
    tokens = None
    if allowed is not None:
        sets = [labels for sequence in allowed for labels in sequence]
        tokens = limits_of(labels, sets, "labels of token", len(labels)).ravel()
    return Segments.new(features.size, *segment_codes(labels), features.longest, tokens)


def decoder_of(
    structure: Any, predictor: Predictor, temperature: float = 1.0, n_jobs: int = 1
) -> Any:
    """What answers questions about sequences, given what their outputs look like."""
    kind = SegmentDecoder if isinstance(structure, Segments) else ChainDecoder
    return kind.of(structure, predictor, temperature, n_jobs)


def chain_of(
    features: Any, labels: Sequence[str], order: int, search: Any, limits: Limits | None = None
) -> Chain:
    """The chain that a feature map and labels make."""
    if order not in (1, 2):
        raise HopefearError(f"order must be 1 or 2, not {order!r}")
    transitions = getattr(getattr(features, "templates", None), "transitions", True)
    return Chain.new(
        features.size, len(labels), features.edge_size, order, search, limits, transitions
    )


def scheme_limits(
    labels: Sequence[str], scheme: str | Constraints | None, allowed: Any = None
) -> Limits:
    """Limits of a tag scheme, and of single tokens.

    Parameters
    ----------
    labels : sequence of str
        All labels.
    scheme : str or Constraints, optional
        Label sequences must be legal in it: a tag scheme, or which labels may start, end and follow
        each other.
    allowed : sequence of sequences, optional
        For every sequence, for every token: the labels it may have, or None for any.

    Examples
    --------
    >>> limits = scheme_limits(("O", "B-X", "I-X"), "bio")
    >>> limits.start[:3].tolist()
    [0.0, 0.0, -inf]
    """
    if scheme is None and allowed is None:
        return no_limits()
    width, n = padded_width(len(labels)), len(labels)
    start, end = np.zeros(width, np.float32), np.zeros(width, np.float32)
    step = np.zeros((width, width), np.float32)
    if scheme is not None:
        rules = scheme if isinstance(scheme, Constraints) else legal(labels, scheme)
        shapes = tuple(np.shape(part) for part in rules)
        if shapes != ((n,), (n,), (n, n)):
            raise HopefearError(
                f"constraints on {n} labels are two arrays of {n} and one of both, not {shapes}"
            )
        start[:n] = _forbid(rules.start)
        end[:n] = _forbid(rules.end)
        step[:n, :n] = _forbid(rules.step).T
    tokens = np.empty(0, np.float32)
    if allowed is not None:
        sets = [one for sequence in allowed for one in sequence]
        tokens = limits_of(labels, sets, "labels of token", width)
    return Limits(start, end, step.ravel(), tokens)


def _forbid(permitted: np.ndarray) -> np.ndarray:
    return np.where(permitted, np.float32(0.0), np.float32(-np.inf))


def check_features(data: SequenceDataset, features: Any) -> None:
    """Refuse data whose attributes have other numbers; kernels would look beyond the weights."""
    sizes, model_sizes = (
        (one.size, one.edge_size) if one is not None else None for one in (data.features, features)
    )
    if sizes != model_sizes:
        raise HopefearError(
            f"{data.source} has (attributes, edge attributes) {sizes}, the model {model_sizes}; "
            "read the data with the model's feature map"
        )


def encoded(
    sentences: Any,
    attributes: Any,
    labels: Sequence[str],
    gold: Column | None,
    features: Any,
) -> SequenceDataset:
    """Returns a dataset of encoded attributes; unknown labels get numbers behind the others."""
    names = list(labels)
    if gold is None:
        codes = np.full(sentences.starts[-1], -1, np.int32)
    else:
        number = {name: c for c, name in enumerate(names)}
        for name in gold.strings:
            number.setdefault(name, len(number))
        names = list(number)
        codes = np.array([number[name] for name in gold.strings], np.int32)[gold.ids]
    weights = getattr(sentences, "weights", None)
    if weights is None:
        weights = np.ones(len(sentences.starts) - 1)
    source = getattr(sentences, "source", "memory")
    arrays = (sentences.starts, *attributes, codes, weights)
    if features.kind == "segments":
        return SegmentDataset(SegmentRows(*arrays), names, features, source)
    return SequenceDataset(TokenRows(*arrays), names, features, source)
