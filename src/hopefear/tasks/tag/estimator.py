"""The estimator ``Tagger``, and what every tagger can be asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hopefear.data.frames import from_table
from hopefear.data.labels import class_name
from hopefear.data.schemes import Constraints
from hopefear.data.sequences import SequenceDataset
from hopefear.data.token_examples import TokenExamples, of_text
from hopefear.data.token_input import (
    TokenInput,
    read_allowed,
    read_labels,
    weighted,
    with_labels,
)
from hopefear.errors import HopefearError
from hopefear.features.attributes import place
from hopefear.metrics import Tagging as TaggingScores
from hopefear.tasks.answers import Question
from hopefear.tasks.base import Explanation, NBestList, Predictions, begin, cut, objects
from hopefear.tasks.estimator import (
    ModelEstimator,
    as_value_errors,
    for_streams,
    given_together,
)
from hopefear.tasks.tag.answers import Span, TagAnswers, TagDecoder, TaggedSentence
from hopefear.tasks.tag.model import SequenceModel, encoded
from hopefear.tasks.tag.prepare import (
    HeldOut,
    Schemes,
    check_filled,
    check_known,
    encode_held_out,
    prepare,
    same_features,
)
from hopefear.tasks.tag.task import (
    DEFAULT_LEARNER,
    Tagging,
    check_constraints,
    reading_of,
    scores,
)
from hopefear.training.loop import Event
from hopefear.training.predictors import LinearPredictor


class Output(NamedTuple):
    """One of the n best label sequences."""

    labels: list[Any]
    probability: float  # under the whole model
    share: float  # of the probability of the n
    score: float


class SequencePredictor(ModelEstimator[SequenceModel]):
    """A fitted tagger; estimators that learn one inherit from it.

    Attributes
    ----------
    classes_ : array
        The labels in order of first appearance.
    scheme_ : str or None
        Tag scheme of the labels.
    model_ : SequenceModel
        What predicts; can be saved, inspected and used without scikit-learn.
    """

    _models, _kind = SequenceModel, Tagging
    _reader: TokenInput
    classes_: np.ndarray
    scheme_: str | None

    def predict(
        self,
        X: Any,
        constrained: bool | Constraints = True,
        allowed: Any = None,
        scheme: str | None = None,
    ) -> list[list[Any]]:
        """Returns the best labels of every sequence.

        Parameters
        ----------
        X : list of lists of tokens
            Sequences as for :meth:`fit`.
        constrained : bool or Constraints
            Follow the tag scheme, if the labels have one; False permits any labels, and
            :class:`~hopefear.data.schemes.Constraints` those of your own.
        allowed : list of lists, optional
            For every sequence, for every token: the labels it may have, or None for any.
        scheme : str, optional
            Spell spans in this scheme, rather than in the one that was learned (``convert``).

        Examples
        --------
        >>> from hopefear import Tagger
        >>> tagger = Tagger("perceptron").fit([["a", "b"]], [["A", "B"]])
        >>> tagger.predict([["a", "a"]], allowed=[[None, ["B"]]])
        [['A', 'B']]
        """
        with as_value_errors():
            answers = self._answers(X, None, constrained, allowed, scheme)
            return Predictions(cut(answers.values(), answers.starts))

    def predict_single(self, x: Any) -> list[Any]:
        """Returns the best labels of one sequence."""
        return self.predict([x])[0]

    def predict_nbest(
        self, X: Any, n: int = 5, constrained: bool | Constraints = True, allowed: Any = None
    ) -> list[list[Output]]:
        """Returns the n best label sequences of every sequence; fewer where there are fewer.

        Parameters
        ----------
        X, constrained, allowed
            As for :meth:`predict`.
        n : int
            How many, best first.

        Examples
        --------
        >>> from hopefear import Tagger
        >>> tagger = Tagger("crf").fit([["a", "b"]], [["A", "B"]])
        >>> [output.labels for output in tagger.predict_nbest([["a"]], n=2)[0]]
        [['A'], ['B']]
        """
        with as_value_errors():
            answers = self._answers(X, n, constrained, allowed)
            columns = answers.probabilities, answers.shares, answers.scores
            outputs = [
                Output(*output)
                for output in zip(
                    cut(answers.values(), answers.starts),
                    *(column.tolist() for column in columns),
                    strict=True,
                )
            ]
            assert answers.counts is not None
            return list(map(NBestList, cut(outputs, np.cumsum([0, *answers.counts]))))

    def predict_marginals(
        self, X: Any, constrained: bool | Constraints = True, allowed: Any = None
    ) -> list[list[dict[Any, float]]]:
        """Returns for every token the probability of each label, over all label sequences.

        The most probable label of each token need not be the one of the best sequence.
        """
        with as_value_errors():
            answers = self._answers(X, None, constrained, allowed)
            labels = self.classes_.tolist()
            dicts = [dict(zip(labels, row, strict=True)) for row in answers.marginals.tolist()]
            return cut(dicts, answers.starts)

    def predict_marginals_single(self, x: Any) -> list[dict[Any, float]]:
        """Returns label probabilities of one sequence."""
        return self.predict_marginals([x])[0]

    def predict_spans(
        self, X: Any, constrained: bool | Constraints = True, allowed: Any = None
    ) -> list[list[Span]]:
        """Returns the spans that the best labels of every sequence spell, with probabilities.

        Parameters
        ----------
        X, constrained, allowed
            As for :meth:`predict`; the labels must have a tag scheme.

        Examples
        --------
        >>> from hopefear import Tagger
        >>> X, y = [["Ann", "Lee", "sings"]] * 2, [["B-P", "I-P", "O"]] * 2
        >>> [span[:3] for span in Tagger("crf").fit(X, y).predict_spans(X[:1])[0]]
        [(0, 2, 'P')]
        """
        with as_value_errors():
            answers = self._answers(X, None, constrained, allowed)
            return [list(spans) for spans in answers.span_lists(proba=True)]

    def predict_text(
        self,
        text: str,
        constrained: bool | Constraints = True,
        tokenizer: Any = None,
        proba: bool = False,
    ) -> list[TaggedSentence]:
        """Returns the sentences of a text, with labels, and spans where labels make some.

        Tokens and spans have ``start`` and ``end``, in characters of the text.

        Parameters
        ----------
        text : str
            Any text; a blank line ends a sentence.
        constrained : bool or Constraints
            As for :meth:`predict`.
        tokenizer : Tokenizer, optional
            What finds sentences and tokens; without it the
            :class:`~hopefear.data.tokenizer.Tokenizer` whose tokens look as those of the training
            data. Anything with its methods ``sentences`` and ``words`` will do.
        proba : bool
            Whether tokens, spans and sentences have a ``probability``.

        Examples
        --------
        >>> from hopefear import Tagger
        >>> X, y = [["Ann", "Lee", "sings", "."]] * 2, [["B-PER", "I-PER", "O", "O"]] * 2
        >>> tagger = Tagger("perceptron").fit(X, y)
        >>> tagger.predict_text("Ann Lee sings. Ann sings.")
        [<[PER Ann Lee] sings .>, <[PER Ann] sings .>]
        >>> tagger.predict_text("Ann Lee sings.")[0].spans[0][:3]
        (0, 7, 'PER')
        """
        check_is_fitted(self)
        with as_value_errors():
            if not isinstance(text, str):
                raise HopefearError(
                    f"predict_text takes one string, not {type(text).__name__}; "
                    "predict takes sequences of tokens"
                )
            return list(self._answers(text, None, constrained, tokenizer=tokenizer, proba=proba))

    def _answer(self, X: Any, question: Question) -> TagAnswers:
        """Returns answers to sequences, or to the sentences of a text."""
        limits = {name: getattr(question, name) for name in ("constrained", "allowed", "scheme")}
        return self._answers(X, question.n, proba=question.proba, **limits)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """F1 of spans where labels have a tag scheme, elsewhere the share of tokens that are right.

        From 0 to 1, so that searches optimise what is meant; weights are those of sequences. For
        all scores see :meth:`metrics`, and for a scorer that is always F1
        :func:`hopefear.metrics.span_f1`.

        Examples
        --------
        >>> from hopefear import Tagger
        >>> X, y = [["Ann", "Lee", "sings"]] * 2, [["B-P", "I-P", "O"]] * 2
        >>> Tagger("perceptron").fit(X, y).score(X[:1], [["B-P", "O", "O"]])
        0.0
        """
        data, tags = self._judged(X, y)
        weights = np.ones(len(data)) if sample_weight is None else sample_weight
        with as_value_errors():
            weights = data.weighted(weights).rows.weights.astype(np.float64)
            if weights @ np.diff(data.rows.starts) == 0.0:
                raise HopefearError("there are no tokens to score; give some, of weight above 0")
            metric = TaggingScores(reading_of(self.scheme_))
            rows: Any = metric.statistics(data.rows.labels, tags, data.rows.starts, data.labels)
        name = "accuracy" if self.scheme_ is None else "f1"
        return float(metric.scores(weights @ rows)[name]) / 100.0

    def metrics(self, X: Any, y: Any = None) -> dict[str, float]:
        """Scores in percent: accuracy of tokens and sequences, and of spans where there are any.

        Examples
        --------
        >>> from hopefear import Tagger
        >>> X, y = [["Ann", "sings"], ["Bo", "sings"]], [["B-P", "O"], ["B-P", "O"]]
        >>> sorted(Tagger("perceptron").fit(X, y).metrics(X, y))
        ['accuracy', 'f1', 'precision', 'recall', 'sentence_accuracy']
        """
        data, tags = self._judged(X, y)
        return scores(data, tags, self.scheme_)

    def explain(
        self,
        X: Any,
        sequence: int = 0,
        token: int = 0,
        constrained: bool | Constraints = True,
        allowed: Any = None,
    ) -> Explanation:
        """Returns what made the label of a token beat the runner-up, both counted from 0."""
        with as_value_errors():
            decoder, examples = self._question(X, constrained, allowed)
            return decoder.explain(self.model_.encode(examples), sequence, token)

    @classmethod
    def from_model(cls, model: SequenceModel) -> Self:
        about, tagger = model.about.get("estimator", {}), cls()
        # Tokens are what the features need, unless they were given with more.
        columns = about.get("columns", getattr(model.features, "needs", ()))
        whole = about.get("labels") == "whole numbers"
        tagger._settle(TokenInput(tuple(columns)), whole, model)
        return tagger

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.input_tags.dict = True
        return tags

    def _settle(self, reader: TokenInput, whole: bool, model: SequenceModel) -> None:
        """Takes over a model, with what :meth:`load` needs to read and label as it does.

        ``whole`` says that labels are whole numbers.
        """
        about: dict[str, Any] = {}
        if reader.columns != tuple(getattr(model.features, "needs", ())):
            about["columns"] = list(reader.columns)
        if whole:
            about["labels"] = "whole numbers"
        source = model.about.get("reading", {}).get("scheme", model.scheme)
        self._schemes, self.scheme_ = Schemes(source, model.scheme), model.scheme
        self._reader = reader
        self.classes_ = objects([int(name) if whole else name for name in model.labels])
        if about:
            model = replace(model, about={**model.about, "estimator": about})
        self._model = model

    def _question(
        self,
        X: Any,
        constrained: bool | Constraints = True,
        allowed: Any = None,
        scheme: str | None = None,
        tokenizer: Any = None,
    ) -> tuple[TagDecoder, TokenExamples]:
        """Returns who answers, and sequences without labels."""
        check_is_fitted(self)
        model = self.model_
        if isinstance(X, str):
            columns = model.text_columns()
            examples = of_text(X, tokenizer or model.tokenizer, columns)
        else:
            examples = self._reader.read(from_table(X, None, "tokens", "tags")[0])
        if allowed is not None:
            names = {label: class_name(label) for label in self.classes_.tolist()}
            allowed = read_allowed(allowed, examples.starts, names)
        labels = self.classes_.tolist()
        return TagDecoder(model, constrained, allowed, self._jobs(), scheme, labels), examples

    def _answers(
        self, X: Any, n: int | None = None, *limits: Any, proba: bool = False, **how: Any
    ) -> TagAnswers:
        decoder, examples = self._question(X, *limits, **how)
        return decoder.answers(examples, n, proba)

    def _held_out(self, X: Any, y: Any, features: Any, labels: Sequence[str]) -> HeldOut:
        """Returns sequences with labels to score on; all of them stay."""
        X, y = from_table(X, y, "tokens", "tags")
        examples = with_labels(self._reader.read(X), y)
        errors = "raise" if getattr(self, "scheme_errors", "begin") == "raise" else "begin"
        return encode_held_out(examples, features, labels, self._schemes, errors)

    def _judged(self, X: Any, y: Any) -> tuple[SequenceDataset, np.ndarray]:
        """Returns sequences with their labels, and the labels they get."""
        check_is_fitted(self)
        with as_value_errors():
            data = self._held_out(X, y, self.features_, self._model.labels).data
            decoder = TagDecoder(self.model_, n_jobs=self._jobs())
            return data, decoder.search.predict(data.rows)


class Tagger(SequencePredictor):
    """Labels for the tokens of sequences, by any learner of label chains.

    ``argmax_y w . f(x, y)`` over label sequences; the same for the same data and
    ``random_state``

    Parameters
    ----------
    learner : str
        Name of a recipe; ``hopefear learners`` lists them.
    features : str or Templates
        ``"attributes"``: tokens are dicts or lists of attributes, as in CRFsuite. A built-in set
        (``"pos"``, ``"chunking"``, ``"ner"``, ``"bioner"``), a template file or templates: tokens
        are strings or rows of columns. ``"auto"``: attributes where tokens are dicts or lists and
        ``columns`` is None; else a built-in set that suits the labels. Networks read words and
        columns, and templates with ``wide=True``.
    columns : str or sequence of str, optional
        Names of the columns of a token: then a token is a tuple or list of so many strings, or a
        dict with these keys. Without it a string is the column ``word``, and tuples of equally many
        strings are columns as in a file: of two ``word`` and ``pos``.
    epochs : int, optional
        Passes over the data, at most. More fit the data better, and at last too well. None is by
        the size of the data: 30, fewer from 170,000 tokens on, 10 from 480,000 on; for batch
        learners, their own number of iterations; for networks 20.
    shuffle : bool
        A new random order for every pass; False keeps the order given.
    order : int
        1: a label depends on the one before; 2: on the two before, which costs more.
    segments : int, optional
        Label segments of up to so many tokens as wholes (a semi-Markov model) rather than tokens:
        spans have features of their own, such as their words and length. Larger finds longer spans
        and costs more; longer ones of the data are cut. Labels come out in BIO.
    search, beam : str, int
        How the n best are found: ``"astar"`` and ``"list"`` exactly, ``"beam"`` by keeping so many.
    scheme : str, optional
        Tag scheme of the labels (``"bio"``, ``"iobes"`` ...); ``"auto"`` detects it, None is for
        labels that are no spans.
    scheme_errors : {"begin", "skip", "raise"}
        What becomes of labels that the scheme forbids, such as ``I-LOC`` behind ``O``: they begin
        a span, their sequence is left out (of data to learn from and ``X_val``), or they are
        refused.
    convert : str, optional
        Learn the same spans in another scheme, such as ``"iobes"``. Labels that come out are of
        that scheme unless :meth:`predict` is told one.
    constraints : {"predict", "always", "never"}
        When outputs must be legal in the scheme: when tagging, in training too, or never.
    class_weight : dict or "balanced", optional
        What it costs to miss a label, 1 where a dict does not name it; more keeps a wider margin
        where the label is right. ``"balanced"``: in inverse proportion to their numbers. For
        ``mira``, ``nbest-mira``, ``ssvm`` and ``arow``, whose losses know costs.
    warm_start : bool
        A further :meth:`fit` of a batch learner starts from the weights of the last one where
        labels and features are the same as then, and from zero where not; the result is the same,
        sooner. Online learners go on by :meth:`partial_fit`.
    min_count : int
        Attributes seen fewer times are left out; more makes smaller models.
    hash_bits : int, optional
        Hash the attributes of templates to ``2**hash_bits`` numbers, so that streams may bring new
        ones. More bits mean fewer collisions and more memory.
    names : bool
        Whether the model has the names of features; without them it is smaller, and there is
        nothing to inspect.
    allow_outside : bool
        Whether lexicons that a template file names may lie outside its folder.
    temperature : bool
        Whether a temperature is fitted, by which scores become probabilities.
    early_stopping : bool
        Hold out a part of the sequences, as ``X_val`` of :meth:`fit` would.
    validation_fraction : float
        The part that is held out. Larger chooses better and learns from less.
    metric : str
        Score of the held-out data that decides; ``"auto"`` is ``"f1"`` where labels have a scheme
        and ``"accuracy"`` elsewhere.
    patience : int, optional
        Passes without a better score before training ends; None is a third of the passes, 3 at
        least, of batch learners 20, of networks 5, and 0 runs all of them. The best model is kept
        in any case.
    n_jobs : int
        Threads for tagging, evaluation and batch learners; -1 for one a processor. Results do not
        depend on it.
    callbacks : sequence of callables, optional
        Each gets every event (a dict) as it happens.
    verbose : int
        Above 0, a line on the standard error stream after each pass.
    random_state : int, RandomState or None
        Fixes the order of the sequences in every pass, and those held out. None takes another one
        each time.
    shards : int or Shards, optional
        Learn on so many shards of the data side by side, which are merged after every pass; see
        :class:`hopefear.training.shards.Shards`.
    **params
        Parts and parameters of the learner, by name, such as ``n=5``; None is its own value.
        Checked by :meth:`fit`.

    Attributes
    ----------
    classes_ : array
        The labels in order of first appearance.
    scheme_ : str or None
        Tag scheme of the labels.
    n_iter_, history_, best_epoch_, converged_
        Passes made (of a batch learner, iterations), their events, the pass whose model was kept,
        and whether training ended because it got no better; see
        :class:`hopefear.tasks.estimator.ModelEstimator`.
    model_ : SequenceModel
        What predicts; can be saved, inspected and used without scikit-learn.

    Notes
    -----
    A sequence of weight w is met ``ceil(w)`` times in a pass, each time with an equal share of w;
    weight 0 is absence. Probabilities are those of the scores divided by a temperature: 1 for
    learners whose scores are log probabilities, else fitted, on held-out data if there is any.

    Examples
    --------
    >>> X = [["the", "cat", "sleeps"], ["a", "dog", "sleeps"]]
    >>> y = [["D", "N", "V"], ["D", "N", "V"]]
    >>> tagger = Tagger("sapo", n=3, epochs=5).fit(X, y)
    >>> tagger.predict([["the", "dog"]])
    [['D', 'N']]
    """

    _task = "tag"

    def __init__(
        self,
        learner: str = DEFAULT_LEARNER,
        *,
        features: Any = "auto",
        columns: str | Sequence[str] | None = None,
        epochs: int | None = None,
        shuffle: bool = True,
        order: int = 1,
        segments: int | None = None,
        search: str = "astar",
        beam: int = 50,
        scheme: str | None = "auto",
        scheme_errors: str = "begin",
        constraints: str = "predict",
        class_weight: Mapping[Any, float] | str | None = None,
        warm_start: bool = False,
        convert: str | None = None,
        min_count: int = 1,
        hash_bits: int | None = None,
        names: bool = True,
        allow_outside: bool = False,
        temperature: bool = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        metric: str = "auto",
        patience: int | None = None,
        n_jobs: int | None = 1,
        callbacks: Sequence[Callable[[Event], None]] | None = None,
        verbose: int = 0,
        random_state: Any = 1,
        shards: Any = None,
        **params: Any,
    ) -> None:
        self._keep(locals())

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, X_val: Any = None, y_val: Any = None
    ) -> Self:
        """Learn from all sequences, from the beginning.

        Parameters
        ----------
        X : list of lists of tokens, or table
            Sequences. A token is a string, a row of columns, or a dict or list of attributes. Of a
            table (pandas, polars, Hugging Face ``datasets``) with a column ``tokens``, its lists.
        y : list of lists of labels, or str, optional
            A label for each token: all strings, or all whole numbers; or the name of the column of
            a table that has them, ``tags`` unless said.
        sample_weight : sequence of float, optional
            Weight of each sequence.
        X_val, y_val : like X and y, optional
            Held-out sequences, scored after each pass: training ends after ``patience`` passes
            without a better score, and the best model is kept.
        """
        with as_value_errors():
            reader, examples, whole = self._read(X, y, sample_weight)
            dev = None
            X_val, y_val = from_table(X_val, y_val, "tokens", "tags")
            if given_together(X_val=X_val, y_val=y_val):
                dev = with_labels(reader.read(X_val), y_val)
            self._settle(reader, whole, self.train(examples, dev).model)
        return self

    @for_streams
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from some more sequences, in the order given, once.

        The first call fixes the labels, the scheme and the features. Attributes that come up later
        are left out, unless templates are hashed (``hash_bits``); new labels are refused. Rates
        that depend on the number of sequences take that of the first call. After :meth:`fit` it
        goes on from where that ended.

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`fit`.
        classes : sequence of labels, optional
            All labels there will ever be; without it, those of the first call.

        Examples
        --------
        >>> tagger = Tagger("perceptron").partial_fit([["a", "b"]], [[1, 2]], classes=[1, 2, 3])
        >>> tagger.partial_fit([["b", "a"]], [[2, 1]]).predict([["b"]])
        [[2]]
        """
        with as_value_errors():
            if self.class_weight is not None:
                raise HopefearError(
                    "class_weight needs all data, which partial_fit never sees; give the prices "
                    "themselves: cost={('B-X', '*'): 2.0}"
                )
            if self.segments is not None:
                raise HopefearError("segments are learned from all data at once; use fit")
            if self._begun():
                self._learn(self._more(X, y, sample_weight, classes), self._trainer)
                return self
            reader, examples, whole = self._read(X, y, sample_weight)
            if classes is not None:
                classes, whole = _distinct(classes)
            first = prepare(examples, {**self._options(), "classes": classes})
            check_known(first.data, len(first.data.labels if classes is None else classes))
            self._check_legal(first.data, first.task.scheme)
            model, trainer = begin(first.task, first.data, self.learner, self._learner_params())
            self._learn(first.data, trainer)
        about = {**model.about, "reading": first.reading}
        self._settle(reader, whole, replace(model, about=about))
        return self

    @classmethod
    def from_model(cls, model: SequenceModel) -> Self:
        tagger = super().from_model(model)
        tagger.learner = str(model.about.get("learner", DEFAULT_LEARNER))
        tagger.order, tagger.search, tagger.beam = model.order, model.search, model.beam
        tagger.segments = getattr(model.features, "longest", None)
        tagger._restore(model)
        return tagger

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[TokenInput, TokenExamples, bool]:
        """Returns how sequences are read, those of weight above 0, and whether labels are numbers.

        Weight 0 is absence, from feature tables too.
        """
        X, y = from_table(X, y, "tokens", "tags")
        if y is None:
            raise HopefearError("sequences need labels: give y, or a table with a column tags")
        reader = TokenInput.of(X, self.columns, self.features)
        examples = reader.read(X)
        check_filled(examples)
        gold, labels = read_labels(y, examples.starts)
        examples = weighted(replace(examples, gold=gold), sample_weight)
        return reader, examples, bool(labels) and not isinstance(labels[0], str)

    def _more(self, X: Any, y: Any, sample_weight: Any, classes: Any) -> SequenceDataset:
        """Returns further data for a trainer that has begun."""
        if classes is not None and set(_distinct(classes)[0]) != set(self._model.labels):
            raise HopefearError(
                f"classes={list(classes)} are not those of the first call, "
                f"{self.classes_.tolist()}; fit a new {type(self).__name__}"
            )
        X, y = from_table(X, y, "tokens", "tags")
        examples = self._reader.read(X)
        check_filled(examples)
        examples = weighted(with_labels(examples, y), sample_weight)
        examples = self._schemes.labelled(examples, self.scheme_errors).examples
        names = self._model.labels
        attributes = self.features_.encode(examples.inputs)
        data = encoded(examples, attributes, names, examples.gold, self.features_)
        check_known(data, len(names))
        self._check_legal(data, self.scheme_)
        return data

    def _check_legal(self, data: SequenceDataset, scheme: str | None) -> None:
        check_constraints(data, scheme, self.constraints, lambda k: (place(data.rows.starts, k), 0))

    def _start(self, prepared: Any) -> np.ndarray | None:
        if not self.warm_start:
            return None
        if not self._is_batch():
            raise HopefearError(
                f"warm_start is for batch learners such as crf-lbfgs, and {self.learner} learns "
                "online: partial_fit goes on from where fit ended"
            )
        if not hasattr(self, "_model"):
            return None
        model, features = self.model_, prepared.data.features
        same = model.order == self.order and model.labels == prepared.data.labels
        same = same and isinstance(model.predictor, LinearPredictor)
        return model.weights if same and same_features(model.features, features) else None


def _distinct(classes: Any) -> tuple[list[str], bool]:
    """Names of labels, each once, and whether they are whole numbers."""
    classes = list(classes)
    names, labels = read_labels([classes], np.array([0, len(classes)]))
    return list(names.strings), bool(labels) and not isinstance(labels[0], str)
