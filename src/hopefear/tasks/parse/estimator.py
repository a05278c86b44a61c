"""The estimator ``Parser``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

from sklearn.utils.validation import check_is_fitted

from hopefear.data.treebank import MISSING, Treebank
from hopefear.errors import HopefearError
from hopefear.tasks.answers import Question
from hopefear.tasks.base import Explanation, NBestList, Predictions, Trained, begin, cut
from hopefear.tasks.estimator import ModelEstimator, as_value_errors, for_streams, given_together
from hopefear.tasks.parse.answers import BEST, ParseAnswers, ParsedSentence, answer, read_text
from hopefear.tasks.parse.model import ParseModel
from hopefear.tasks.parse.prepare import (
    DEFAULT_LEARNER,
    PreparedTrees,
    prepare,
    sentences_of,
    trees_of,
)
from hopefear.tasks.parse.pruning import HEADS
from hopefear.tasks.parse.taggers import FOLDS
from hopefear.tasks.parse.task import Parsing, scores_of
from hopefear.tasks.prepare import Run, held_out
from hopefear.training.loop import Event


class ParsedTree(NamedTuple):
    """One of the n best trees of a sentence."""

    tree: list[Any]  # as predict gives it
    probability: float  # under the whole model; of the n where no sum over all trees can be had
    share: float  # of the probability of the n
    score: float


class Parser(ModelEstimator[ParseModel]):
    """Dependency trees of sentences, by any learner of trees.

    ``argmax_y w . f(x, y)`` over trees; the same for the same data and ``random_state``

    Parameters
    ----------
    learner : str
        Name of a recipe; ``hopefear learners`` lists them.
    order : int, optional
        1: arcs are scored one by one; 2: with siblings and grandparents, among the likeliest heads,
        which is slower and better. None is 2, and 1 for networks.
    tree : {"auto", "projective", "nonprojective"}
        Whether arcs may cross; by default where over 5 % of the sentences have such arcs.
    features : str or ArcTemplates
        ``"standard"``, ``"light"`` (fewer: quicker, worse), a TOML file of templates, or templates.
    tags : str, optional
        Column of the tags; ``xpos`` unless it is empty, else ``upos``.
    tagger : "auto", Tagger, sequence or dict of taggers, optional
        What gives the words their tags; then lemmas are not looked at, and the words alone will do.
        ``"auto"`` trains taggers for the tags and the morphology that the features look at. A
        tagger of one's own gives the column it was trained on, or that of its key in a dict.
        Taggers are saved with the model.
    jackknife : int
        The training trees get their tags from taggers that were trained on all but one of so many
        parts, so that tags are as bad in training as later; 0 takes taggers as they are.
    heads : int
        Most heads of a word that are looked at, the likeliest of a small parser; 0 for all.
    unlabelled : bool
        Learn heads alone, without relations.
    hash_bits : int, optional
        Features share ``2**hash_bits`` weights; more make larger models, with fewer collisions.
    dictionary : bool
        Only the features of the training trees count, and each has weights of its own.
    temperature : bool
        Fit the temperature that makes probabilities of scores.
    epochs : int, optional
        Passes over the data, at most. None is 10; for batch learners, their own number; for
        networks 20.
    shuffle : bool
        A new random order for every pass; False keeps the order given.
    early_stopping : bool
        Hold out a part of the sentences, as ``X_val`` of :meth:`fit` would.
    validation_fraction : float
        The part that is held out. Larger chooses better and learns from less.
    metric : {"las", "uas"}, optional
        Score of the held-out data that decides; LAS where there are relations.
    patience : int, optional
        Passes without a better score before training ends; None is a third of the passes, 3 at
        least, of batch learners 20, of networks 5, and 0 runs all of them. The best model is kept
        in any case.
    n_jobs : int
        Threads for parsing, evaluation and batch learners; -1 for one a processor. Results do not
        depend on it.
    callbacks : sequence of callables, optional
        Each gets every event (a dict) as it happens.
    verbose : int
        Above 0, a line on the standard error stream after each pass.
    random_state : int, RandomState or None
        Fixes the order of the sentences in every pass, and those held out. None takes another one
        each time.
    shards : int or Shards, optional
        Learn on so many shards of the data side by side, which are merged after every pass; see
        :class:`hopefear.training.shards.Shards`.
    **params
        Parts and parameters of the learner, by name, such as ``C=0.1``; None is its own value.
        Checked by :meth:`fit`.

    Attributes
    ----------
    relations_ : tuple of str
        Names of the relations; none where only heads were learned.
    n_iter_, history_, best_epoch_, converged_
        Passes made, their events, the pass whose model was kept, and whether training ended because
        it got no better; see :class:`hopefear.tasks.estimator.ModelEstimator`.
    model_ : ParseModel
        What parses; can be saved, inspected and used without scikit-learn.

    Notes
    -----
    A word is a string, a row of strings, or a dict. A row of two is word and tag, one of five form,
    lemma, coarse tag, fine tag and morphological attributes (``Case=Nom|Number=Sing``); these are
    ``form``, ``lemma``, ``upos``, ``xpos`` and ``feats``, the keys of dicts. Empty strings and
    ``_`` stand for what is not known. Heads are numbers of words from 1; 0 is the root.

    Examples
    --------
    >>> X = [[("the", "D"), ("cat", "N"), ("sleeps", "V")], [("dogs", "N"), ("bark", "V")]]
    >>> y = [[(2, "det"), (3, "nsubj"), (0, "root")], [(2, "nsubj"), (0, "root")]]
    >>> parser = Parser("perceptron", order=1, epochs=3).fit(X, y)
    >>> parser.predict([[("a", "D"), ("dog", "N"), ("sleeps", "V")]])
    [[(2, 'det'), (3, 'nsubj'), (0, 'root')]]
    """

    _task, _models, _kind = "parse", ParseModel, Parsing
    _first: PreparedTrees | None = None  # what further sentences must be like

    def __init__(
        self,
        learner: str = DEFAULT_LEARNER,
        *,
        order: int | None = None,
        tree: str = "auto",
        features: Any = "standard",
        tags: str | None = None,
        tagger: Any = None,
        jackknife: int = FOLDS,
        heads: int = HEADS,
        unlabelled: bool = False,
        hash_bits: int | None = None,
        dictionary: bool = False,
        temperature: bool = True,
        epochs: int | None = None,
        shuffle: bool = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        metric: str | None = None,
        patience: int | None = None,
        n_jobs: int | None = 1,
        callbacks: Sequence[Callable[[Event], None]] | None = None,
        verbose: int = 0,
        random_state: Any = 1,
        shards: Any = None,
        **params: Any,
    ) -> None:
        self._keep(locals())

    def fit(self, X: Any, y: Any = None, X_val: Any = None, y_val: Any = None) -> Self:
        """Learn from all sentences, from the beginning.

        Parameters
        ----------
        X : list of sentences, or Treebank
            See the notes of the class; a :class:`~hopefear.data.treebank.Treebank` brings its
            trees along.
        y : list of trees
            Of each sentence a list of ``(head, relation)``, a list of heads alone, or the pair
            ``(heads, relations)``.
        X_val, y_val : like X and y, optional
            Held-out sentences, scored after each pass: training ends after ``patience`` passes
            without a better score, and the best model is kept.
        """
        with as_value_errors():
            bank = self._bank(X, y)
            given = (
                X_val is not None
                if isinstance(X_val, Treebank)
                else given_together(X_val=X_val, y_val=y_val)
            )
            self.train(bank, self._bank(X_val, y_val) if given else None)
        return self

    def train(self, examples: Any, dev: Any = None, run: Run | None = None) -> Trained:
        if dev is None and self.early_stopping:
            bank, fraction = examples, self.validation_fraction
            rest, part = held_out(len(bank), fraction, self._seed(), "sentences")
            dev, examples = bank.take(part), bank.take(rest)
        return super().train(examples, dev, run)

    @for_streams
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from some more sentences, in the order given, once.

        The first call fixes relations, tags, kind of trees and, of second order, the choice of
        arcs; new relations are refused. After :meth:`fit` it goes on from where that ended.
        """
        with as_value_errors():
            bank = self._bank(X, y)
            if self._begun():
                assert self._first is not None
                self._learn(self._first.more(bank), self._trainer)
                return self
            prepared = self._prepare(bank, self._options())
            params = self._learner_params()
            self._model, trainer = begin(prepared.task, prepared.data, self.learner, params)
            self._learn(prepared.data, trainer)
        return self

    def predict(self, X: Any) -> list[list[Any]]:
        """The best tree of every sentence: ``(head, relation)`` of each word, or its head alone."""
        return Predictions(each.tree for each in self._answer(X))

    def predict_nbest(self, X: Any, n: int = 5) -> list[list[ParsedTree]]:
        """The n best trees of every sentence, best first; fewer where there are fewer."""
        return [
            NBestList(ParsedTree(t.tree, t.probability, t.share, t.score) for t in ranked)
            for ranked in self._answer(X, Question(n))
        ]

    def predict_text(
        self, text: str, *, proba: bool = False, tokenizer: Any = None
    ) -> list[ParsedSentence]:
        """The sentences of a text, with their trees.

        A parser that has learned from tags needs a tagger, such as those of ``tagger="auto"``.
        Words have ``start`` and ``end``, in characters of the text.

        Parameters
        ----------
        text : str
            Any text; a blank line ends a sentence.
        proba : bool
            Probabilities of trees and heads.
        tokenizer : Tokenizer, optional
            What finds sentences and words; without it the
            :class:`~hopefear.data.tokenizer.Tokenizer` whose words look as those of the training
            data.

        Examples
        --------
        >>> parser = Parser("perceptron", order=1).fit([["It", "rains", "."]], [[2, 0, 2]])
        >>> parser.predict_text("It rains. It rains.")[1].tokens[0]
        ParsedToken(text='It', head=2, start=10, end=12)
        """
        check_is_fitted(self)
        with as_value_errors():
            if not isinstance(text, str):
                raise HopefearError(
                    f"predict_text takes one string, not {type(text).__name__}; "
                    "predict takes sequences of words"
                )
            model = self.model_
            rows = read_text(text, model.tokenizer if tokenizer is None else tokenizer)
            return list(answer(model, rows, Question(proba=proba), self._jobs()).trees())

    def predict_marginals(self, X: Any) -> list[list[dict[int, float]]]:
        """For every word the probability of each head, summed over all trees and relations.

        Heads that are not looked at are left out. Of second-order trees whose arcs may cross, the
        20 best trees stand for all.

        Examples
        --------
        >>> parser = Parser("crf", order=1).fit([["It", "rains"]], [[2, 0]])
        >>> [max(word, key=word.get) for word in parser.predict_marginals([["It", "rains"]])[0]]
        [2, 0]
        """
        with as_value_errors():
            check_is_fitted(self)
            rows = self.model_.encode(self._words(X)).rows
            shares = self.model_.decoder(self._jobs()).probabilities(rows)
        arcs = list(zip(rows.heads.tolist(), shares.tolist(), strict=True))
        return cut([dict(word) for word in cut(arcs, rows.ptr)], rows.starts)

    def score(self, X: Any, y: Any = None) -> float:
        """Share of the words with the right head and relation, from 0 to 1; of heads alone the UAS.

        For all scores see :meth:`metrics`.
        """
        scores = self.metrics(X, y)
        return float(scores["las" if self.relations_ else "uas"]) / 100.0

    def metrics(self, X: Any, y: Any = None) -> dict[str, float]:
        """Scores in percent; see :class:`hopefear.metrics.Dependencies`.

        The search for trees of second order whose arcs may cross is seldom beaten, and knows where
        it is not: ``proved_best`` is the share of trees that are proved best.
        """
        check_is_fitted(self)
        with as_value_errors():
            bank = self._bank(X, y)
            decoder, data = self.model_.decoder(self._jobs()), self.model_.encode(bank)
            scores = scores_of(bank, decoder.predict(data.rows), self._model.labels, data.bank)
            if decoder.proved is not None:
                scores["proved_best"] = 100.0 * decoder.proved / max(1, len(data))
            return scores

    def explain(self, X: Any, sentence: int = 0, word: int = 0) -> Explanation:
        """What made the head of a word beat the runner-up; see ``ParseModel.explain``."""
        check_is_fitted(self)
        with as_value_errors():
            return self.model_.explain(self._words(X), sentence, word)

    @property
    def relations_(self) -> tuple[str, ...]:
        check_is_fitted(self)
        return self._model.labels

    @classmethod
    def from_model(cls, model: ParseModel) -> Self:
        learner = str(model.about.get("learner", DEFAULT_LEARNER))
        parser = cls(learner, order=model.kind.order, tree=model.kind.name)
        parser._restore(model)
        parser._model = model
        return parser

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.input_tags.dict = True
        return tags

    def _answer(self, X: Any, question: Question = BEST) -> ParseAnswers:
        check_is_fitted(self)
        with as_value_errors():
            text = isinstance(X, str)
            rows = read_text(X, self.model_.tokenizer) if text else self._words(X)
            return answer(self.model_, rows, question, self._jobs())

    def _words(self, X: Any) -> Treebank:
        """Sentences without trees."""
        return X if isinstance(X, Treebank) else Treebank.bare(sentences_of(X))

    def _bank(self, X: Any, y: Any) -> Treebank:
        """Sentences with their trees."""
        if isinstance(X, Treebank):
            if y is not None:
                raise HopefearError("a Treebank has its own trees; leave y out")
            if X.n_tokens and X.heads.min() < 0:
                raise HopefearError(f"{X.source} was read without trees; read it with heads=True")
            return X
        if y is None:
            raise HopefearError("sentences need trees: give y, or a Treebank as X")
        sentences = sentences_of(X)
        heads, relations = trees_of(y, sentences.starts)
        return Treebank.of(sentences, heads, relations or [MISSING] * len(heads))

    def _prepare(self, examples: Any, options: Mapping[str, Any]) -> PreparedTrees:
        prepared = prepare(examples, options)
        data = prepared.data.take([]).known(None, 0)
        self._first = replace(prepared.alone(), data=data)
        return prepared
