"""The task ``tag``: from labelled sequences and the name of a learner to a model."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hopefear.core.learner import Learner, parameters_by_part
from hopefear.data.schemes import Place, detect_scheme, spans
from hopefear.data.sequences import Column, Sentences, SequenceDataset
from hopefear.errors import HopefearError
from hopefear.features.templates import TemplateFeatures
from hopefear.metrics import best_temperature, chunk_scores
from hopefear.recipes import Scale
from hopefear.structures.chain.chain import Chain
from hopefear.structures.chain.searches import search_named
from hopefear.structures.chain.theta import no_limits
from hopefear.tasks import TASKS, recipe
from hopefear.tasks.tag.label_costs import ClassWeight, priced, resolved
from hopefear.tasks.tag.model import (
    SequenceModel,
    chain_of,
    check_features,
    decoder_of,
    encoded,
    scheme_limits,
)
from hopefear.training.checkpoints import Checkpoints
from hopefear.training.decoding import MOST_BYTES, Decoder, bytes_needed
from hopefear.training.fit import Event, Fit, fit
from hopefear.training.passes import Passes
from hopefear.training.predictors import LinearPredictor, Predictor
from hopefear.training.stopping import Stopping

DEFAULT_LEARNER = TASKS["tag"].learner
DEFAULT_FEATURES = "chunking"
EPOCHS = 10
CONSTRAINTS = ("predict", "always", "never")
# Losses whose scores are log probabilities up to a constant, over all outputs: temperature 1.
_PROBABILISTIC = ("Log",)
# Sequences that a temperature is fitted on, at most.
_FITTED_ON = 500


@dataclass(frozen=True)
class Trained:
    """A model and how it came about."""

    model: SequenceModel
    learner: Any
    fit: Any


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
    features : str or Templates
        A built-in set (``pos``, ``chunking``, ``ner``, ``bioner``), a template file, or templates.
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
    made, attributes = TemplateFeatures.fit_encode(
        features, sentences, min_count=min_count, hash_bits=hash_bits, keep_names=keep_names
    )
    if any(sentences.columns[name] is gold for name in made.needs):
        raise HopefearError(
            f"the templates look at the column {column!r}, which holds the labels to be learned; "
            "take it out of the templates, or name another label column"
        )
    return encoded(sentences, attributes, (), gold, made)


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
    learner: str = DEFAULT_LEARNER,
    params: Mapping[str, Any] | None = None,
    *,
    epochs: int | None = None,
    seed: int = 1,
    shuffle: bool = True,
    order: int = 1,
    search: str = "astar",
    beam: int = 50,
    scheme: str | None = "auto",
    constraints: str = "predict",
    class_weight: ClassWeight = None,
    start: np.ndarray | None = None,
    dev: SequenceDataset | None = None,
    stopping: Stopping | None = None,
    on_event: Sequence[Callable[[Event], None]] = (),
    trace: bool = False,
    checkpoints: Checkpoints | None = None,
    resume: bool = False,
    pieces: int = 1,
    n_jobs: int = 1,
    dtype: Any = np.float32,
) -> Trained:
    """Train a tagger.

    Parameters
    ----------
    data : SequenceDataset
        Sequences with a label on every token.
    learner, params
        Name of a recipe and the parameters to replace.
    epochs, seed, shuffle
        Passes over the data, 10 unless said, and their order. For a batch learner the most
        iterations; by default it goes on until it has settled.
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
    start : float array, optional
        Weights that a batch learner starts from, at all coordinates of the chain.
    dev, stopping
        Held-out data, scored after each pass, and when to stop on it (the best model is kept).
    on_event, trace, checkpoints, resume, pieces
        As in :func:`hopefear.training.fit.fit`.
    n_jobs : int
        Threads for dev evaluation and batch learners; the model does not depend on it.
    dtype : numpy dtype
        Of the weights while they are learned.

    Examples
    --------
    >>> words, tags = Column.of(["the", "cat", "a", "dog"]), Column.of(["D", "N", "D", "N"])
    >>> text = Sentences(np.array([0, 2, 4]), {"word": words, "label": tags})
    >>> model = train(dataset(text, "pos"), "perceptron", epochs=3).model
    >>> model.tag(text).texts()
    ['D', 'N', 'D', 'N']
    """
    check(data)
    scheme = scheme_of(data, scheme)
    check_constraints(data, scheme, constraints)
    if dev is not None:
        check_held_out(data, dev)
    find = search_named(search, beam)
    limits = scheme_limits(data.labels, scheme if constraints == "always" else None)
    structure = chain_of(data.features, data.labels, order, find, limits)
    constrained = constraints != "never"
    tagging_limits = scheme_limits(data.labels, scheme if constrained else None)
    tagging_structure = structure._replace(limits=tagging_limits)
    passes = Passes(data, seed, shuffle, pieces)  # type: ignore[arg-type]
    params = resolved(priced(params or {}, learner, class_weight, data), data.labels)
    made = recipe(learner, "tag").build(Scale(n=passes.n), **params)
    check_lengths(data, structure, made.loss.depth() if isinstance(made, Learner) else 1)
    if stopping is not None:
        stopping.check(score_names(scheme))
    evaluate = None if dev is None else evaluator(tagging_structure, dev, scheme, n_jobs)
    online = isinstance(made, Learner)
    if online and start is not None:
        raise HopefearError(
            f"{learner} learns online, and only batch learners start from given weights; use "
            "crf-lbfgs or crf-owlqn"
        )
    if not online and epochs is not None:
        made = replace(made, max_iter=epochs)
    epochs = EPOCHS if epochs is None and online else epochs
    length = {} if epochs is None else {"epochs": epochs}
    signature = made.signature(order=order, search=search, **length, seed=seed)
    identity = {
        "signature": signature,
        "data": data.digest,
        "order": order,
        "constraints": constraints,
        "scheme": scheme,
        "beam": beam,
        "shuffle": shuffle,
        "pieces": passes.n_pieces,
        "dev": None if dev is None else dev.digest,
        "stopping": None if stopping is None else [stopping.metric, stopping.patience],
    }
    if start is not None:
        identity["start"] = hashlib.sha256(np.asarray(start, np.float64).tobytes()).hexdigest()
    common: dict[str, Any] = {
        "evaluate": evaluate,
        "stopping": stopping,
        "on_event": on_event,
        "checkpoints": checkpoints,
        "resume": resume,
        "identity": identity,
    }
    result: Any
    if online:
        result = fit(
            structure, made, passes, epochs=int(epochs or 0), dtype=dtype, trace=trace, **common
        )
    else:
        if not structure.transitions:
            raise HopefearError(
                f"{learner} learns weights of label pairs, which the templates leave out (no B "
                "line); use an online learner such as crf"
            )
        result = made.fit(structure, data.rows, n_jobs=n_jobs, w0=start, **common)
    temperature = 1.0
    if needs_temperature(made, result.predictor):
        held = data if dev is None else dev
        temperature = fitted_temperature(tagging_structure, result.predictor, held, n_jobs)
    model = SequenceModel(
        result.predictor,
        data.labels,
        data.features,
        order,
        scheme,
        search,
        beam,
        temperature,
        signature,
        about(data, learner, made, result, epochs, seed),
        constrained,
    )
    return Trained(model, made, result)


def check(data: SequenceDataset) -> None:
    """Training needs sequences, a label on every token, and two different ones."""
    labels = data.rows.labels
    if labels.size == 0:
        raise HopefearError(f"{data.source}: there are no tokens to learn from")
    if labels.min() < 0:
        raise HopefearError(
            f"{data.source}: token {int(np.argmin(labels)) + 1} has no label; every token of the "
            "training data needs one"
        )
    if len(data.labels) < 2:
        raise HopefearError(
            f"{data.source}: expected at least two labels, found {data.labels[0]!r} only; there is "
            "nothing to tell apart"
        )
    empty = np.flatnonzero(np.diff(data.rows.starts) == 0)
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
    data: SequenceDataset, scheme: str | None, constraints: str, place: Place | None = None
) -> None:
    """Constraints must have a known name, and gold must keep to those that hold in training."""
    if constraints not in CONSTRAINTS:
        raise HopefearError(f"constraints is one of {', '.join(CONSTRAINTS)}, not {constraints!r}")
    if scheme is not None and constraints == "always":
        spans(Column(data.labels, data.rows.labels), data.rows.starts, scheme, place=place)


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


def evaluator(
    structure: Chain, data: SequenceDataset, scheme: str | None, n_jobs: int = 1
) -> Callable[[Predictor], dict[str, float]]:
    """Scores of a predictor on this data."""

    def evaluate(predictor: Predictor) -> dict[str, float]:
        return scores(data, decoder_of(structure, predictor, n_jobs=n_jobs).tags(data.rows), scheme)

    return evaluate


def scores(data: SequenceDataset, tags: np.ndarray, scheme: str | None) -> dict[str, float]:
    """Accuracy, and precision, recall and F1 of spans where labels have a scheme, in percent."""
    rows, reading = data.rows, reading_of(scheme)
    found = chunk_scores(rows.labels, tags, rows.starts, labels=data.labels, reading=reading)
    values = found.as_dict()
    return {name: values[name] for name in score_names(scheme)}


def reading_of(scheme: str | None) -> str:
    """How spans are counted: as the official script does, or as richer schemes mean them."""
    return "conlleval" if scheme in (None, "bio", "iob1") else "iobes"


def needs_temperature(learner: Any, predictor: Predictor) -> bool:
    """Whether scores must be scaled before they can pass for log probabilities."""
    loss = getattr(learner, "loss", None)
    return (
        loss is not None
        and type(loss).__name__ not in _PROBABILISTIC
        and isinstance(predictor, LinearPredictor)
    )


def fitted_temperature(
    structure: Chain, predictor: Any, data: SequenceDataset, n_jobs: int = 1
) -> float:
    """The temperature at which the labels of some data are most probable.

    Fitted on held-out data where there is any; on training data probabilities come out too sure.
    It stays at 1 where the data has no best one, as when all labels are right at any temperature.
    """
    step = max(1, len(data) // _FITTED_ON)
    rows = data.take(np.arange(0, len(data), step)).rows
    plain = structure._replace(limits=no_limits())

    def log_likelihood(temperature: float) -> float:
        logs = Decoder(plain, predictor.weights, temperature, n_jobs).log_likelihoods(rows)
        return float(logs[np.isfinite(logs)].sum())

    if log_likelihood(1.0) == 0.0:  # no sequence has labels that the model knows
        return 1.0
    found = best_temperature(log_likelihood)
    return 1.0 if found.at_bound else float(found.value)


def about(
    data: SequenceDataset, name: str, learner: Any, result: Fit, epochs: int | None, seed: int
) -> dict[str, Any]:
    """What goes into the model file about its making; nothing that changes from run to run."""
    return {
        "learner": name,
        "on": getattr(learner, "on", "batch"),
        "parameters": parameters_by_part(learner),
        "epochs": epochs,
        "seed": seed,
        "data": {
            "source": os.path.basename(data.source),
            "digest": data.digest,
            "examples": len(data),
            "tokens": data.n_tokens,
            "features": data.features.size,
            "edge_features": data.features.edge_size,
        },
        "training": {"best_epoch": result.best_epoch, "history": result.history},
    }
