"""The task ``tag``: from labelled sequences and the name of a learner to a model."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hopefear.core.checks import check_one_of
from hopefear.core.learner import Learner
from hopefear.data.blocks import chunks_of, elements
from hopefear.data.labels import check_blanks
from hopefear.data.schemes import LineOf, detect_scheme, spans
from hopefear.data.segments import check_segments
from hopefear.data.sequences import Column, Sentences, SequenceDataset
from hopefear.errors import HopefearError
from hopefear.features.templates import TemplateFeatures
from hopefear.metrics import Tagging as TaggingScores
from hopefear.structures.chain.chain import Chain, bytes_needed
from hopefear.structures.chain.searches import search_named
from hopefear.structures.chain.theta import no_limits, table_size
from hopefear.structures.segments.segments import Segments
from hopefear.tasks import TASKS, base
from hopefear.tasks.base import Task, Trained, best_of
from hopefear.tasks.tag.label_costs import ClassWeight, priced, resolved
from hopefear.tasks.tag.model import (
    SequenceModel,
    check_features,
    decoder_of,
    encoded,
    scheme_limits,
    structure_of,
)
from hopefear.training.decoders.chains import MOST_BYTES
from hopefear.training.loop import LearningWarning
from hopefear.training.online import DivergedError
from hopefear.training.predictors import Predictor
from hopefear.training.shards import TooFewExamplesError

DEFAULT_LEARNER = TASKS["tag"].learner
DEFAULT_FEATURES = "chunking"
# Visits to tokens after which averages hardly gain: epochs that make as many, within bounds.
VISITS, LEAST_EPOCHS, MOST_EPOCHS = 5_000_000, 10, 30
CONSTRAINTS = ("predict", "always", "never")
# Sequences without held-out ones from which on a fifth is held out for a temperature.
_FEWEST = 50
_MOST_AGAIN = 1_000_000  # tokens up to which there is a second training, in memory
# Sequences that a temperature is fitted on, at most.
_FITTED_ON = 500
# Entries of edge tables that they look at, at most: seconds, with hundreds of labels.
_FITTED_WORK = 200_000_000
# Making exponentials of a table costs a sequence as much as so many tokens do.
_TABLE = 8


@dataclass(frozen=True)
class Tagging(Task):
    """The options of :func:`train` that only taggers have."""

    name: ClassVar[str] = "tag"
    order: int = 1
    search: str = "astar"
    beam: int = 50
    scheme: str | None = "auto"
    constraints: str = "predict"
    class_weight: ClassWeight = None

    def usual_epochs(self, data: SequenceDataset) -> int:
        return usual_epochs(data.n_tokens)

    def check(self, data: SequenceDataset, dev: SequenceDataset | None) -> None:
        check(data)
        check_blanks(data.source, data.labels)
        check_constraints(data, scheme_of(data, self.scheme), self.constraints)
        if dev is not None:
            check_held_out(data, dev)

    def parameters(
        self, params: Mapping[str, Any], learner: str, data: SequenceDataset
    ) -> Mapping[str, Any]:
        if "cost" not in params and self.class_weight is None:
            return params
        return resolved(priced(params, learner, self.class_weight, data), data.labels)

    def structure(self, data: SequenceDataset) -> Any:
        search = search_named(self.search, self.beam)
        scheme = scheme_of(data, self.scheme) if self.constraints == "always" else None
        return structure_of(data.features, data.labels, self.order, search, scheme)

    def check_together(self, structure: Any, learner: Any, data: SequenceDataset) -> None:
        if isinstance(structure, Segments):
            check_segment_learner(learner)
            check_segments(data)
            return
        check_lengths(data, structure, 1 if learner.batch else learner.loss.n_outputs())
        if learner.batch and learner.observed is not None and not structure.transitions:
            raise HopefearError(
                "a batch CRF learns weights of label pairs, which the templates leave out: add a "
                "line B to the template file, or use an online learner such as crf"
            )
        check_inputs(learner, data)

    def score_names(self, data: SequenceDataset) -> tuple[str, ...]:
        return score_names(scheme_of(data, self.scheme))

    def evaluator(
        self, structure: Any, data: SequenceDataset, dev: SequenceDataset, n_jobs: int
    ) -> Callable[[Predictor], dict[str, float]]:
        scheme = scheme_of(data, self.scheme)
        if not isinstance(structure, Segments):  # which are legal by themselves
            rules = scheme if self.constraints != "never" else None
            structure = structure._replace(limits=scheme_limits(data.labels, rules))

        def evaluate(predictor: Predictor) -> dict[str, float]:
            return scores(
                dev, decoder_of(structure, predictor, n_jobs=n_jobs).predict(dev.rows), scheme
            )

        return evaluate

    def words(self, data: Any) -> dict[str, Any]:
        scheme = scheme_of(data, self.scheme)
        return {
            "order": self.order,
            "search": self.search,
            **({"beam": self.beam} if self.search == "beam" else {}),
            **({} if scheme is None else {"scheme": scheme}),
            **({"segments": data.features.longest} if data.features.kind == "segments" else {}),
            **({} if self.constraints == "predict" else {"constraints": self.constraints}),
            **{name: digest[:8] for name, digest in identity_of(data.features).items()},
        }

    def identity(self, data: SequenceDataset, structure: Any) -> dict[str, Any]:
        return {
            "order": self.order,
            "constraints": self.constraints,
            "scheme": scheme_of(data, self.scheme),
            "beam": self.beam,
            **identity_of(data.features),
        }

    def fitted_temperature(
        self,
        structure: Any,
        predictor: Any,
        data: SequenceDataset,
        dev: SequenceDataset | None,
        n_jobs: int,
        again: Callable[[Any], Trained],
    ) -> float:
        """On dev, or on a fifth of the sequences with a model of the others.

        Scores of sequences that were learned from are too sure of themselves: where all of them are
        right, any temperature is too high. Of few and of very many there is no other model.
        """
        if dev is None and len(data) >= _FEWEST and data.n_tokens <= _MOST_AGAIN:
            held = np.arange(len(data)) % 5 == 0
            with contextlib.suppress(DivergedError, TooFewExamplesError), warnings.catch_warnings():
                warnings.simplefilter("ignore", LearningWarning)  # which was said already
                predictor = again(data.take(np.flatnonzero(~held))).model.predictor
                dev = data.take(np.flatnonzero(held))
        return self.temperature(structure, predictor, data if dev is None else dev, n_jobs)

    def temperature(
        self, structure: Any, predictor: Any, data: SequenceDataset, n_jobs: int
    ) -> float:
        # Some hundred sequences are enough for one number, and fewer do where labels are many.
        if isinstance(structure, Segments):
            work = data.n_tokens * structure.longest * structure.labels
        else:
            work = (data.n_tokens + _TABLE * len(data)) * table_size(structure)
            structure = structure._replace(limits=no_limits())
        step = max(1, len(data) // _FITTED_ON, work // _FITTED_WORK)
        tolerance = 1e-6 if work // _FITTED_WORK < step else 1e-3  # no finer than so few tell
        rows = data.take(np.arange(0, len(data), step)).rows
        decoder = decoder_of(structure, predictor, n_jobs=n_jobs)

        def log_likelihood(temperature: float) -> float:
            decoder.temperature = temperature
            logs = decoder.log_likelihoods(rows)
            return float(logs[np.isfinite(logs)].sum())

        return best_of(log_likelihood, tolerance)

    def facts(self, data: SequenceDataset) -> dict[str, Any]:
        return {
            "examples": len(data),
            "tokens": data.n_tokens,
            "features": data.features.size,
            "edge_features": data.features.edge_size,
        }

    def model(
        self,
        data: Any,
        structure: Any,
        predictor: Any,
        temperature: float,
        signature: str,
        about: dict[str, Any],
    ) -> SequenceModel:
        return SequenceModel(
            predictor,
            data.labels,
            data.features,
            self.order,
            scheme_of(data, self.scheme),
            self.search,
            self.beam,
            temperature,
            signature,
            about,
            self.constraints != "never",
        )


def usual_epochs(n_tokens: int) -> int:
    """Returns the epochs of online learners: 5 million visits to tokens, in 10 to 30 epochs.

    >>> [usual_epochs(n) for n in (60_000, 212_000, 493_000)]
    [30, 24, 10]
    """
    return min(MOST_EPOCHS, max(LEAST_EPOCHS, round(VISITS / max(n_tokens, 1))))


def dataset(
    sentences: Sentences,
    features: str | Any = DEFAULT_FEATURES,
    column: str = "label",
    *,
    min_count: int = 1,
    hash_bits: int | None = None,
    keep_names: bool = True,
) -> SequenceDataset:
    """Apply templates to labelled sentences and number what they give.

    Parameters
    ----------
    sentences : Sentences
        Training text.
    features : str, Templates or TokenIdSettings
        A built-in set (``pos``, ``chunking``, ``ner``, ``bioner``), a template file, or templates;
        for networks, what ``inputs`` of their recipe gives.
    column : str
        The column that holds the labels.
    min_count, hash_bits, keep_names
        As in :meth:`hopefear.features.templates.TemplateFeatures.fit_encode`.

    Examples
    --------
    >>> words, tags = Column.of(["the", "cat"]), Column.of(["D", "N"])
    >>> text = Sentences(np.array([0, 2]), {"word": words, "label": tags})
    >>> dataset(text, "pos").labels
    ('D', 'N')
    """
    gold = gold_column(sentences, column)
    feature_map, attributes = fit_encode(
        features,
        sentences,
        min_count=min_count,
        hash_bits=hash_bits,
        keep_names=keep_names,
    )
    check_needs(feature_map, sentences, gold, column)
    return encoded(sentences, attributes, (), gold, feature_map)


def check_needs(features: Any, sentences: Sentences, gold: Column, column: str) -> None:
    """Refuse features that look at the labels."""
    if any(sentences.columns[name] is gold for name in features.needs):
        raise HopefearError(
            f"the features look at the column {column!r}, which holds the labels to be learned; "
            "take it out of them, or name another label column"
        )


def fit_encode(features: Any, sentences: Sentences, **options: Any) -> tuple[Any, Any]:
    """A feature map and the attributes of sentences, by templates or by settings of one's own."""
    if hasattr(features, "fit_encode"):
        return features.fit_encode(sentences, **options)
    return TemplateFeatures.fit_encode(features, sentences, **options)


def check_inputs(learner: Any, data: SequenceDataset) -> None:
    """Refuse networks on templates, and other learners on words as numbers."""
    kind = getattr(data.features, "kind", None)
    if hasattr(learner, "settings") != (kind == "token-ids"):
        raise HopefearError(
            f"{data.source} was encoded as {kind}, which this learner does not read; encode it "
            "with recipe(learner, 'tag').inputs(params, templates)"
        )


def identity_of(features: Any) -> dict[str, str]:
    """What tells feature maps apart whose numbers are the same: the vectors they bring."""
    vectors = getattr(features, "vectors", None)
    return {} if vectors is None else {"vectors": vectors.digest}


def suitable(columns: Collection[str], labels: Iterable[str], spans: bool) -> str:
    """The built-in templates for columns and labels of this kind.

    >>> suitable(["word"], ["N"], False), suitable(["word", "pos"], ["B-PER", "O"], True)
    ('pos', 'ner')
    >>> suitable(["word", "pos"], ["B-NP", "O"], True)
    'chunking'
    """
    if not spans:
        return "pos"
    # Chunks of the CoNLL kind come with parts of speech and have noun phrases.
    chunks = "pos" in columns and any(label.endswith("-NP") for label in labels)
    return "chunking" if chunks else "ner"


def gold_column(sentences: Sentences, column: str) -> Column:
    """The column that holds the labels."""
    if column not in sentences.columns:
        raise HopefearError(
            f"{sentences.source} has no column {column!r}; there are {', '.join(sentences.columns)}"
        )
    return sentences.columns[column]


def scheme_of(data: SequenceDataset, scheme: str | None = "auto") -> str | None:
    """The tag scheme of a dataset's labels; ``"auto"`` looks for one, None means none."""
    if scheme != "auto":
        if scheme is not None:
            scheme_limits(data.labels, scheme)  # refuses labels outside it
        return scheme
    return detect_scheme(Column(data.labels, data.rows.labels), data.rows.starts)


def train(
    data: SequenceDataset,
    learner: str | Learner = DEFAULT_LEARNER,
    params: Mapping[str, Any] | None = None,
    *,
    order: int = 1,
    search: str = "astar",
    beam: int = 50,
    scheme: str | None = "auto",
    constraints: str = "predict",
    class_weight: ClassWeight = None,
    **common: Any,
) -> Trained:
    """Train a tagger.

    Parameters
    ----------
    data : SequenceDataset
        Sequences with a label on every token.
    learner, params
        Name of a recipe and the parameters to replace, or a learner.
    order : int
        1: a label depends on the one before; 2: on the two before.
    search, beam : str, int
        How the n best are found: ``astar`` and ``list`` exactly, ``beam`` by keeping so many.
    scheme : str, optional
        Tag scheme of the labels; ``"auto"`` detects it, None is for labels that are no spans.
    constraints : {"predict", "always", "never"}
        When outputs must be legal in the scheme: when tagging, in training too, or never.
    class_weight : "balanced" or dict, optional
        What it costs to miss each label; see :func:`hopefear.tasks.tag.label_costs.priced`.
    **common
        What all tasks share: passes (:func:`usual_epochs` unless said), their order, held-out data,
        events, checkpoints; see :func:`hopefear.tasks.base.train`.

    Examples
    --------
    >>> words, tags = Column.of(["the", "cat", "a", "dog"]), Column.of(["D", "N", "D", "N"])
    >>> text = Sentences(np.array([0, 2, 4]), {"word": words, "label": tags})
    >>> model = train(dataset(text, "pos"), "perceptron", epochs=3).model
    >>> model.tag(text).texts()
    ['D', 'N', 'D', 'N']
    """
    check(data)
    options = order, search, beam, scheme_of(data, scheme), constraints, class_weight
    return base.train(Tagging(*options), data, learner, params, **common)


def check(data: SequenceDataset) -> None:
    """Training needs sequences, a label on every token, and two different ones."""
    if not data.n_tokens:
        raise HopefearError(f"{data.source}: there are no tokens to learn from")
    before = 0
    for (labels,) in chunks_of(data, "labels"):
        if labels.min() < 0:
            raise HopefearError(
                f"{data.source}: token {before + int(np.argmin(labels)) + 1} has no label; every "
                "token of the training data needs one"
            )
        before += labels.size
    if len(data.labels) < 2:
        raise HopefearError(
            f"{data.source}: expected at least two labels, found {data.labels[0]!r} only; there is "
            "nothing to tell apart"
        )
    empty = np.flatnonzero(np.diff(elements(data, "starts")) == 0)
    if empty.size:
        raise HopefearError(
            f"{data.source}: sequence {int(empty[0]) + 1} has no tokens; leave it out"
        )


def check_held_out(data: SequenceDataset, dev: SequenceDataset) -> None:
    """Held-out data must mean the same by its numbers; labels of its own come behind."""
    check_features(dev, data.features)
    if dev.labels[: len(data.labels)] != data.labels:
        raise HopefearError(
            f"{dev.source} numbers its labels {', '.join(dev.labels)}, the training data "
            f"{', '.join(data.labels)}; encode both with the same labels"
        )


def check_constraints(
    data: SequenceDataset, scheme: str | None, constraints: str, line_of: LineOf | None = None
) -> None:
    """Constraints must have a known name, and gold must keep to those that hold in training."""
    check_one_of("constraints", constraints, CONSTRAINTS)
    if scheme is not None and constraints == "always":
        spans(Column(data.labels, data.rows.labels), data.rows.starts, scheme, line_of=line_of)


def check_segment_learner(learner: Any) -> None:
    """Refuse learners of label chains alone."""
    if hasattr(learner, "settings"):
        raise HopefearError("segments have templates, and networks read words; leave out one")
    if learner.batch and learner.observed is not None:
        raise HopefearError(
            "the batch CRF learns label chains alone; learn segments by an online learner, such as "
            "crf"
        )
    if not learner.batch and learner.averaging.needs_history:
        raise HopefearError("segments have no votes; use averaging=averaged")


def check_lengths(data: SequenceDataset, structure: Chain, depth: int = 1) -> None:
    """Refuse sequences whose tables would not fit into memory."""
    lengths = np.diff(data.rows.starts)
    longest = int(lengths.max())
    need = 2 * bytes_needed(structure, longest, depth)
    if need > MOST_BYTES:
        raise HopefearError(
            f"{data.source}: sequence {int(lengths.argmax()) + 1} has {longest:,} tokens, and to "
            f"learn from it takes {need / 2**30:.1f} GiB; the limit is {MOST_BYTES >> 30} GiB: "
            "split it, or use order=1 and templates without edges"
        )


def score_names(scheme: str | None) -> tuple[str, ...]:
    """Names of the scores that a tagger gets."""
    spans = ("f1", "precision", "recall")
    return ("accuracy", "sentence_accuracy", *(spans if scheme is not None else ()))


def scores(data: SequenceDataset, tags: np.ndarray, scheme: str | None) -> dict[str, float]:
    """Accuracy, and precision, recall and F1 of spans where labels have a scheme, in percent."""
    rows, metric = data.rows, TaggingScores(reading_of(scheme))
    values = metric.scores(metric.total(rows.labels, tags, rows.starts, data.labels))
    return {name: values[name] for name in score_names(scheme)}


def reading_of(scheme: str | None) -> str:
    """How spans are counted: as the official script does, or as richer schemes mean them."""
    return "conlleval" if scheme in (None, "bio", "iob1") else "iobes"
