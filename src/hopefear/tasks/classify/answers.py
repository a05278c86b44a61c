"""What a classifier answers: labels, probabilities, the n best, reasons; and how good it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from hopefear.data.parse_numbers import LARGEST
from hopefear.data.sparse import SparseDataset, named_values
from hopefear.errors import HopefearError
from hopefear.metrics import Classification, Probabilities, reliability
from hopefear.tasks import answers as base
from hopefear.tasks.answers import Question
from hopefear.tasks.base import Explanation
from hopefear.tasks.classify.model import Model
from hopefear.tasks.serving import Service

if TYPE_CHECKING:
    from hopefear.report.error_examples import ErrorExample

BEST = Question()
MOST = 400  # examples whose errors are kept
_RIVALS = 5
_VALUES = 40  # features that stand for an example without a text
_BINS = 15  # of probabilities, for the calibration error


class Output(NamedTuple):
    """One of the n best classes, or the best."""

    label: Any
    probability: float
    score: float


class Record(NamedTuple):
    """The answer to one example."""

    label: Any
    probability: float
    probabilities: Mapping[str, float] | None = None

    def as_dict(self) -> dict[str, Any]:
        return {name: value for name, value in self._asdict().items() if value is not None}


class NBestRecord(NamedTuple):
    """The n best classes of one example."""

    outputs: Sequence[Output]

    def as_dict(self) -> dict[str, Any]:
        return {"outputs": [output._asdict() for output in self.outputs]}


@dataclass(frozen=True)
class Answers(base.Answers):
    """Decisions on many rows.

    Parameters
    ----------
    model : Model
        What decided.
    labels : int array
        Position of the best class of every row.
    scores : float array
        One column for two classes, else one for each.
    question : Question
        What was asked.
    """

    model: Model
    labels: np.ndarray
    scores: np.ndarray
    question: Question = BEST

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def shares(self) -> np.ndarray:
        """Probabilities, a column a class."""
        return self.model.decoder().shares(self.scores)

    @property
    def points(self) -> np.ndarray:
        """Scores, a column a class."""
        scores = self.scores
        return np.hstack([-scores, scores]) if scores.shape[1] == 1 else scores

    @cached_property
    def is_known(self) -> np.ndarray:
        """Whether each answer is as probable as ``unknown`` asks."""
        least = self.question.unknown
        if least is None:
            return np.ones(len(self), bool)
        return self.shares.max(axis=1, initial=0.0) >= least

    def names(self) -> list[Any]:
        """The answers by name."""
        classes, other = self.model.classes, self.question.unknown_label
        if self.question.unknown is None:
            return [classes[i] for i in self.labels]
        return [classes[i] if k else other for i, k in zip(self.labels, self.is_known, strict=True)]

    def order(self) -> np.ndarray:
        """Positions of the n best classes of every row, best first."""
        return np.argsort(-self.points, axis=1, kind="stable")[:, : self.question.n or 1]

    def outputs(self, names: Sequence[Any]) -> Iterator[list[Output]]:
        """The n best classes of every row, by these names."""
        for order, shares, points in zip(self.order(), self.shares, self.points, strict=True):
            yield [Output(names[k], float(shares[k]), float(points[k])) for k in order.tolist()]

    def __iter__(self) -> Iterator[Record | NBestRecord]:
        if self.question.n is not None:
            yield from map(NBestRecord, self.outputs(self.model.classes))
            return
        best = self.shares.max(axis=1, initial=0.0).tolist()
        if not self.question.proba:
            yield from map(Record, self.names(), best)
            return
        classes = self.model.classes
        for name, p, row in zip(self.names(), best, self.shares.tolist(), strict=True):
            yield Record(name, p, dict(zip(classes, row, strict=True)))


def answer(model: Model, rows: Any, question: Question = BEST) -> Answers:
    """Returns what the model says of rows, texts or a dataset."""
    labels, scores = model.decide(rows)
    return Answers(model, labels, scores, question)


def explain(model: Model, data: SparseDataset, row: int = 0) -> Explanation:
    """Returns why a row got its label, in the names of features that an estimator was given."""
    reason, names = model.explain(data, row), model.about.get("feature_names")
    if names is None:
        return reason
    # The model knows columns by number; a name that is no number is the intercept.
    gains = [(names[int(f)] if f.isdigit() else f, x) for f, x in reason.contributions]
    return reason._replace(contributions=gains)


class Mistake(NamedTuple):
    """An example of which the model thought something else, or might have."""

    number: int  # in the file, from 0
    row: Any  # a dataset of it alone
    label: int
    gold: int
    shares: np.ndarray  # probability of every class


class Judged(NamedTuple):
    """How good a model's answers are."""

    classes: tuple[str, ...]  # those of the model, then those that it lacks
    counts: np.ndarray  # summed statistics of decisions
    sums: np.ndarray  # and of probabilities
    calibration: dict[str, Any]
    hits: np.ndarray  # 1 where the decision is right, by example
    errors: np.ndarray  # log losses of the others, where mistakes are kept
    mistakes: list[Mistake]  # the worst of them


def judge(model: Model, blocks: Iterable[SparseDataset], keeps_mistakes: bool = False) -> Judged:
    """Returns how good answers are to blocks of labelled rows; later ones may have more classes."""
    mistakes: list[Mistake] = []
    classes, number, sums = tuple(model.classes), 0, np.zeros(3)
    golds, outputs, errors = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)], [np.zeros(0)]
    shares = [np.zeros(0, np.float32)]
    for data in blocks:
        classes, gold = data.classes, data.rows.labels
        found = answer(model, data)
        labels, table = found.labels, _padded(found.shares, len(classes))
        sums += Probabilities(len(classes)).total(gold, table)
        golds.append(gold)
        outputs.append(labels.astype(np.int32))
        shares.append(table[np.arange(len(labels)), labels].astype(np.float32))
        if keeps_mistakes:
            mistakes = _worst(mistakes, data, labels, table, number)
            errors.append(losses(gold, labels, table))
        number += len(labels)
    gold, labels = np.concatenate(golds), np.concatenate(outputs)
    counts, hits = Classification(len(classes)).total(gold, labels), gold == labels
    sure = np.minimum(np.concatenate(shares), 1.0)
    calibration = reliability(sure, hits, bins=_BINS).as_dict()
    hits = hits.astype(np.uint8)
    return Judged(classes, counts, sums, calibration, hits, np.concatenate(errors), mistakes)


def some_mistakes(
    model: Model, blocks: Iterable[SparseDataset], numbers: Sequence[int]
) -> list[Mistake]:
    """Returns what the model says of the examples of these numbers."""
    wanted, first = np.sort(np.asarray(numbers)), 0
    some: list[Mistake] = []
    for data in blocks:
        after = first + len(data)
        rows = wanted[np.searchsorted(wanted, first) : np.searchsorted(wanted, after)] - first
        if rows.size:
            part = data.take(rows)
            found = answer(model, part)
            table = _padded(found.shares, len(data.classes))
            some += _mistakes(part, range(len(rows)), (rows + first).tolist(), found.labels, table)
        first = after
    return some


def losses(gold: np.ndarray, labels: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Log loss of the examples that are wrong, 0 of the others.

    >>> losses(np.array([0, 1]), np.array([0, 0]), np.array([[0.9, 0.1], [0.75, 0.25]])).round(3)
    array([0.   , 1.386])
    """
    shares = table[np.arange(len(gold)), gold].astype(np.float64)
    return np.where(labels != gold, np.maximum(-np.log(np.maximum(shares, 1e-300)), 1e-9), 0.0)


def _worst(
    before: Sequence[Mistake], data: Any, labels: np.ndarray, table: np.ndarray, first: int
) -> list[Mistake]:
    """Those of before and of a block whose right class was thought least probable."""
    gold = data.rows.labels
    wrong = np.flatnonzero(labels != gold)
    shares = table[wrong, gold[wrong]]
    rows = wrong[np.argsort(shares, kind="stable")[:MOST]].tolist()
    some = _mistakes(data, rows, [first + row for row in rows], labels, table)
    return sorted([*before, *some], key=lambda mistake: mistake.shares[mistake.gold])[:MOST]


def _mistakes(
    data: Any, rows: Iterable[int], numbers: Iterable[int], labels: np.ndarray, table: np.ndarray
) -> list[Mistake]:
    gold = data.rows.labels
    return [
        Mistake(number, data.take([k]), int(labels[k]), int(gold[k]), table[k])
        for k, number in zip(rows, numbers, strict=True)
    ]


def _padded(table: np.ndarray, n: int) -> np.ndarray:
    """Probabilities of ``n`` classes, of which those behind the model's have none."""
    return np.pad(table, ((0, 0), (0, n - table.shape[1])))


def cases(
    model: Model, classes: Sequence[str], mistakes: Sequence[Mistake], texts: Mapping[int, str]
) -> list[ErrorExample]:
    """The mistakes with what misled the model; ``texts`` by number, where there are any.

    ``classes`` are those of the model, and behind them those that it lacks.
    """
    from hopefear.report.error_examples import ErrorExample
    from hopefear.report.examples import Rival, View, WeighedText

    rows = []
    for number, row, label, gold, shares in mistakes:
        explained = model.predictor.linear and label != gold and gold < len(model.classes)
        reason = model.explain(row, 0, label, gold) if explained else None
        names = classes[gold], classes[label]
        order = np.argsort(-shares, kind="stable")[:_RIVALS].tolist()
        view: View | str
        if number in texts:
            view = WeighedText.of(texts[number], () if reason is None else reason.contributions)
        else:
            values = zip(row.rows.indices[:_VALUES], row.rows.values[:_VALUES], strict=True)
            view = " ".join(f"{model.feature_name(j)}:{value:g}" for j, value in values)
        facts = {
            "example": number + 1,
            "p(gold)": round(float(shares[gold]), 4),
            "gold": names[0],
            "predicted": names[1],
        }
        rivals = [Rival(classes[k], float(shares[k]), k == gold) for k in order]
        kinds = [f"{names[0]} → {names[1]}"]
        rows.append(
            ErrorExample(facts, None, view, kinds, sorted({*names}), rivals, reason, number)
        )
    return rows


class ClassifyService(Service):
    """Classes of texts, or of rows of features, asked in JSON.

    Examples
    --------
    >>> from hopefear import Classifier
    >>> model = Classifier("perceptron").fit(["good fun", "so bad"], ["hope", "fear"]).model_
    >>> service = ClassifyService(model)
    >>> service.predict([service.read("all good")])[0]["label"]
    'hope'
    """

    asked: ClassVar[frozenset[str]] = frozenset({"unknown", "unknown_label", "proba"})

    def __init__(self, model: Model, tagger: Any = None) -> None:
        super().__init__(model, tagger)
        self.text = hasattr(model.features, "grams")
        names = model.about.get("feature_names")  # that an estimator was given with its matrix
        self._given = None if names is None else {name: k for k, name in enumerate(names)}
        self.forms = ("an object of feature: number", f"a list of {model.features.size:,} numbers")
        column = min(1, model.features.size - 1)
        self.example = {list(names)[column] if names else model.features.name(column): 1.0}
        if self.text:
            self.forms, self.example = ("a text",), "No hope without fear, and no fear without hope"

    def read(self, value: Any) -> Any:
        if self.text:
            if not isinstance(value, str):
                raise self.refuse(value)
            return value
        size = self.model.features.size
        if isinstance(value, dict):
            if hasattr(self.model.features, "find"):
                value = named_values(value, "the input")
            columns, numbers = self._columns(list(value)), list(value.values())
        elif isinstance(value, list) and len(value) == size:
            columns, numbers = np.arange(size, dtype=np.int32), value
        else:
            raise self.refuse(value)
        for number in numbers:
            if type(number) not in (int, float) or not abs(number) <= LARGEST:
                raise HopefearError(
                    f"expected a number of at most 1e15 in size, found {number!r:.60}"
                )
        known = columns >= 0
        return columns[known], np.array(numbers, np.float32)[known]

    def steps(self, one: Any, verb: str, numbers: Mapping[str, int]) -> int:
        size = len(one) if self.text else len(one[0])
        most = numbers.get("n", 1)
        return size // 20 + (200 + numbers["top"] if verb == "explain" else 20 + most)

    def predict(self, inputs: Sequence[Any], **question: Any) -> list[dict[str, Any]]:
        return answer(self.model, self._data(inputs), Question(**question)).as_dicts()

    def nbest(self, inputs: Sequence[Any], n: int) -> list[dict[str, Any]]:
        return answer(self.model, self._data(inputs), Question(n)).as_dicts()

    def explain(self, one: Any, top: int, place: Mapping[str, int]) -> dict[str, Any]:
        if place:
            raise HopefearError(f"{' and '.join(place)}: an input here has none; leave it out")
        return {"reasons": [explain(self.model, self._data([one])).facts(top)]}

    def _data(self, inputs: Sequence[Any]) -> Any:
        if self.text:
            return self.model.read(list(inputs))
        from scipy import sparse

        sizes = [0, *np.cumsum([len(columns) for columns, _ in inputs]).tolist()]
        columns, values = (np.concatenate(parts) for parts in zip(*inputs, strict=True))
        shape = len(inputs), self.model.features.size
        return SparseDataset.from_csr(sparse.csr_array((values, columns, sizes), shape))

    def _columns(self, names: list[str]) -> np.ndarray:
        """Columns of names or of ids as files have them; -1 where the model knows none."""
        features, given = self.model.features, self._given
        if given is not None:
            return np.array([given.get(name, -1) for name in names], np.int32)
        if hasattr(features, "find"):
            return features.find(names)
        try:
            return features.columns(np.array([int(name) for name in names], np.int64))
        except (ValueError, OverflowError):
            odd = next(name for name in names if not name.isdecimal() or len(name) > 18)
            raise HopefearError(
                f"features of this model are numbers, and {odd!r:.60} is none"
            ) from None
