"""The taggers of a parser: they give words the tags and the morphology that it looks at.

A tagger is better on text that it has learned from than it will ever be again, so training trees
are jackknifed: each part of them is tagged by taggers that have seen only the other parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.parallel import parallel
from hopefear.core.progress import stage
from hopefear.data.sequences import Column
from hopefear.data.tokenizer import Tokenizer
from hopefear.data.treebank import ALIASES, MISSING, TAGS, Treebank
from hopefear.errors import HopefearError, ModelError
from hopefear.storage import field_of, names_of
from hopefear.tasks import TASKS, estimator_of, model_from_parts, named_object
from hopefear.tasks.base import cut

FOLDS = 5
# Of a parser's own taggers. More epochs, and features of one word, made them no better on English,
# Basque and Spanish.
_OWN = {"features": "pos", "scheme": None, "epochs": 5, "min_count": 2}
# Labels of a tagger of morphology: fewer made more taggers, larger files, and none of them better.
_MOST = 256
# Words that have an attribute before a tagger learns it.
_LEAST = 10


class ColumnTagger(NamedTuple):
    """A tagger of words, and what its labels are.

    Parameters
    ----------
    columns : tuple of str
        Columns of a treebank that get its labels.
    estimator : Tagger
        What tags; anything with a ``predict`` that takes lists of words will do.
    attributes : frozenset of str, optional
        Attributes of the morphology that it learns; None is all.
    """

    columns: tuple[str, ...]
    estimator: Any
    attributes: frozenset[str] | None = None

    def gold(self, bank: Treebank) -> list[str]:
        """Returns what the words of a treebank should get."""
        column = bank.sentences.columns[self.columns[0]]
        if self.attributes is None:
            return column.texts()
        texts = [
            "|".join(v for v in values_of(text) if _attribute(v) in self.attributes) or MISSING
            for text in column.strings
        ]
        return [texts[k] for k in column.ids.tolist()]

    def predict(self, words: Sequence[Sequence[str]]) -> list[str]:
        """Returns the labels of all words."""
        labels = [str(label) for sentence in self.estimator.predict(words) for label in sentence]
        if len(labels) != (n := sum(map(len, words))):
            raise HopefearError(f"{n} words got {len(labels)} tags; is it a tagger?")
        return labels

    def untrained(self) -> Any:
        """Returns an estimator that learns as this one has learned."""
        model = _model(self.estimator)
        if model is None:
            from sklearn.base import clone  # which commands need not load

            return clone(self.estimator)
        given, about = model.features.templates, model.about
        # In a part of the data some of them may fire on nothing.
        templates = replace(
            given, templates=tuple(replace(each, optional=True) for each in given.templates)
        )
        return named_object(TASKS["tag"].estimator or "")(
            str(about.get("learner")),
            features=templates,
            columns=list(model.features.needs),
            order=model.order,
            scheme=None,
            epochs=about.get("training", {}).get("best_epoch") or about.get("epochs"),
            random_state=int(about.get("seed", 1)),
            **about.get("given", {}),
        )


@dataclass(frozen=True)
class Taggers:
    """The taggers of a parser.

    Parameters
    ----------
    parts : tuple of ColumnTagger
        Several may give the morphology, whose values are then joined.

    Examples
    --------
    >>> from hopefear.data.grammar import synthetic_treebank
    >>> bank = synthetic_treebank(20, seed=1)
    >>> taggers, tagged, _ = Taggers.new(bank, ["upos"]).learned(bank)
    >>> tagged.sentences.columns["upos"].texts()[:3]
    ['PRON', 'NOUN', 'VERB']
    """

    parts: tuple[ColumnTagger, ...]

    @classmethod
    def of(cls, tagger: Any) -> Taggers:
        """Creates them of a tagger, several, or a mapping of columns to taggers.

        A tagger is an estimator or a model. Where no column is named, it is the one that the
        tagger was trained on.
        """
        if isinstance(tagger, Taggers):
            return tagger
        if isinstance(tagger, Mapping):
            if unknown := sorted(set(tagger) - set(TAGS)):
                raise HopefearError(
                    f"a tagger gives one of the columns {', '.join(TAGS)}, not {unknown[0]!r}"
                )
            return cls(tuple(ColumnTagger((k,), _checked(each)) for k, each in tagger.items()))
        several = tagger if isinstance(tagger, list | tuple) else [tagger]
        parts = tuple(ColumnTagger(_columns_of(each), each) for each in map(_checked, several))
        columns = [name for part in parts for name in part.columns]
        if len(set(columns)) < len(columns):
            twice = next(name for name in columns if columns.count(name) > 1)
            raise HopefearError(f"two taggers give the column {twice}; give one for each column")
        return cls(parts)

    @classmethod
    def new(cls, bank: Treebank, columns: Iterable[str], seed: int = 1) -> Taggers:
        """Creates taggers for columns of a treebank, which have learned nothing yet.

        The morphology of a word is a set of values, and treebanks have thousands of such sets. So
        attributes are split among as many taggers as it takes for each to have few labels.
        """
        parts = []
        for name in columns:
            column = bank.sentences.columns[name]
            groups: Iterable[frozenset[str] | None] = [None]
            if name == "feats":
                groups = attribute_groups(column)
            for attributes in groups:
                estimator = named_object(TASKS["tag"].estimator or "")(**_OWN, random_state=seed)
                part = ColumnTagger((name,), estimator, attributes)
                if len(set(part.gold(bank))) > 1:
                    parts.append(part)
        if not parts:
            raise HopefearError(f"{bank.source} has no tags that taggers of its words could learn")
        return cls(tuple(parts))

    def tagged(self, bank: Treebank) -> Treebank:
        """Returns the sentences with the labels of the taggers alone, without lemmas."""
        words = cut(bank.sentences.columns["form"].texts(), bank.starts)
        return bank.with_tags(self._columns([part.predict(words) for part in self.parts]))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that words get."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.columns))

    @property
    def tokenizer(self) -> Any:
        """The rules under which text looks as training data did."""
        model = _model(self.parts[0].estimator)
        return Tokenizer(quotes="plain") if model is None else model.tokenizer

    def describe(self) -> list[dict[str, Any]]:
        """Returns what each tagger gives, and how many labels it has."""
        return [
            {
                "columns": " and ".join(part.columns),
                "labels": len(model.labels) if (model := _model(part.estimator)) else None,
            }
            for part in self.parts
        ]

    def learned(
        self, bank: Treebank, folds: int = FOLDS, n_jobs: int = 1
    ) -> tuple[Taggers, Treebank, list[str]]:
        """Learns from a treebank, and tags it as text that the taggers have not seen.

        Taggers that were trained before stay as they are.

        Parameters
        ----------
        bank : Treebank
            Sentences with the right tags.
        folds : int
            Parts of the treebank, each tagged by taggers that learn from the others; 0 for
            taggers as they are.
        n_jobs : int
            Threads; the tags do not depend on it.

        Returns
        -------
        taggers : Taggers
            Trained.
        bank : Treebank
            The sentences with these tags.
        messages : list of str
            How good the tags are.
        """
        words = cut(bank.sentences.columns["form"].texts(), bank.starts)
        gold = [part.gold(bank) for part in self.parts]
        reasons = [self._why_as_it_is(part, bank, folds) for part in self.parts]
        everything = np.arange(len(bank))
        jobs: list[tuple[int, np.ndarray | None]] = []
        for k, (part, reason) in enumerate(zip(self.parts, reasons, strict=True)):
            if _model(part.estimator) is None and hasattr(part.estimator, "fit"):
                jobs.append((k, None))
            if reason is None:
                jobs += [(k, fold) for fold in np.array_split(everything, folds)]

        def trained(job: tuple[int, np.ndarray | None]) -> Any:
            k, fold = job
            some = everything if fold is None else np.setdiff1d(everything, fold)
            labels = cut(gold[k], bank.starts)
            given = [labels[i] for i in some]
            if fold is not None and len(alike := {x for each in given for x in each}) == 1:
                return [*alike] * sum(len(words[i]) for i in fold)
            estimator = self.parts[k].untrained()
            estimator.fit([words[i] for i in some], given)
            part = self.parts[k]._replace(estimator=estimator)
            return part if fold is None else part.predict([words[i] for i in fold])

        parts, texts = list(self.parts), dict[int, list[str]]()
        with stage("taggers of the parser", len(jobs), "taggers") as work:
            for (k, fold), result in zip(jobs, parallel(jobs, trained, n_jobs), strict=True):
                if fold is None:
                    parts[k] = result
                else:
                    texts.setdefault(k, []).extend(result)
                work.advance(1)
        labels = [texts.get(k) or part.predict(words) for k, part in enumerate(parts)]
        columns = self._columns(labels)
        scores = [
            f"{_percent_right(columns[part.columns[0]], bank, part.columns[0]):.2f} % of "
            f"{part.columns[0]}"
            for part in {part.columns: part for k, part in enumerate(parts) if k in texts}.values()
        ]
        messages = []
        if scores:
            messages.append(
                f"right tags of taggers that saw the other parts of the treebank: "
                f"{', '.join(scores)}"
            )
        for reason in dict.fromkeys(filter(None, reasons)):
            messages.append(
                f"a tagger tags the training trees as it is ({reason}); if it has learned from the "
                "same text, its tags are better here than they will be later"
            )
        return Taggers(tuple(parts)), bank.with_tags(columns), messages

    def _columns(self, labels: Sequence[list[str]]) -> dict[str, Column]:
        """What taggers say as columns of a treebank."""
        texts: dict[str, list[list[str]]] = {}
        for part, some in zip(self.parts, labels, strict=True):
            for name in part.columns:
                texts.setdefault(name, []).append(some)
        return {
            name: Column.of(each[0] if len(each) == 1 else joined(each))
            for name, each in texts.items()
        }

    def _why_as_it_is(self, part: ColumnTagger, bank: Treebank, folds: int) -> str | None:
        """Why training trees are not tagged by taggers that have not seen them."""
        model = _model(part.estimator)
        if folds < 2:
            return "they are not jackknifed"
        if len(bank) < folds:
            return f"there are only {len(bank)} sentences"
        if not has_any(bank.sentences.columns[part.columns[0]]):
            return f"the treebank has no tags in the column {part.columns[0]}"
        if model is not None and model.features.kind != "templates":
            return "its features are given, not made by templates"
        return None if hasattr(part.estimator, "fit") else "it cannot be trained"

    def to_header(self) -> list[dict[str, Any]]:
        return [
            {"columns": list(part.columns), "model": _savable(part.estimator)._header()}
            for part in self.parts
        ]

    def arrays(self) -> dict[str, np.ndarray]:
        return {
            f"{_prefix(k)}{name}": array
            for k, part in enumerate(self.parts)
            for name, array in _savable(part.estimator)._arrays().items()
        }

    @classmethod
    def from_parts(cls, header: Sequence[Any], arrays: Mapping[str, np.ndarray]) -> Taggers:
        """Creates them of what a file holds; nothing in it is trusted."""
        parts = []
        for k, entry in enumerate(header):
            if type(entry) is not dict or not set(names_of(entry, "columns")) <= set(TAGS):
                raise ModelError(f"{entry!r:.60} is no tagger of {', '.join(TAGS)}")
            inner, prefix = field_of(entry, "model", dict), _prefix(k)
            if inner.get("task") != "tag":
                raise ModelError("a tagger of the parser is no model of the task tag")
            own = {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
            model = model_from_parts("a tagger of the parser", inner, own)
            parts.append(ColumnTagger(names_of(entry, "columns"), _checked(model)))
        if not parts:
            raise ModelError("taggers are an empty list")
        return cls(tuple(parts))


def values_of(text: str) -> list[str]:
    """The values of a text of morphology.

    >>> values_of("Case=Nom|Number=Sing"), values_of("_")
    (['Case=Nom', 'Number=Sing'], [])
    """
    return [] if text in (MISSING, "") else text.split("|")


def joined(columns: Iterable[list[str]]) -> list[str]:
    """Morphology of words from several texts of it.

    >>> joined([["Number=Sing"], ["_"], ["Case=Nom"]])
    ['Case=Nom|Number=Sing']
    """
    rows = list(zip(*columns, strict=True))
    texts = {
        row: "|".join(sorted({v for text in row for v in values_of(text)}, key=str.lower))
        or MISSING
        for row in set(rows)
    }
    return [texts[row] for row in rows]


def attribute_groups(
    column: Column, most: int = _MOST, least: int = _LEAST
) -> list[frozenset[str]]:
    """Attributes of morphology in groups, each with ``most`` different sets of values at most.

    A value without a name, such as ``NUMS``, is an attribute of its own. Those of fewer than
    ``least`` words are left out.

    >>> texts = ["Case=Nom|Number=Sing", "Case=Acc|Number=Sing", "Number=Plur"]
    >>> attribute_groups(Column.of(texts), least=1) == [{"Number", "Case"}]
    True
    >>> attribute_groups(Column.of(texts), most=2, least=1) == [{"Number"}, {"Case"}]
    True
    """
    counts = np.bincount(column.ids, minlength=len(column.strings)).tolist()
    words, sets = Counter[str](), set[frozenset[str]]()
    for text, n in zip(column.strings, counts, strict=True):
        values = frozenset(values_of(text))
        sets.add(values)
        words.update(dict.fromkeys(map(_attribute, values), n))
    groups: list[frozenset[str]] = []
    for name in sorted(words, key=lambda name: (-words[name], name)):
        if words[name] < least:
            continue
        for k, group in enumerate(groups):
            wider = group | {name}
            labels = {frozenset(v for v in one if _attribute(v) in wider) for one in sets}
            if len(labels) <= most:
                groups[k] = wider
                break
        else:
            groups.append(frozenset({name}))
    return groups


def has_any(column: Column) -> bool:
    """Whether a column holds anything."""
    return any(column.strings[k] != MISSING for k in np.unique(column.ids).tolist())


def _attribute(value: str) -> str:
    return value.partition("=")[0]


def _prefix(k: int) -> str:
    return f"tagger{k}."


def _checked(tagger: Any) -> Any:
    """Returns the estimator of a tagger that reads words alone; others are refused."""
    estimator = estimator_of(tagger) if hasattr(tagger, "task") else tagger
    model = _model(estimator)
    if not hasattr(estimator, "predict") or (model is not None and model.task != "tag"):
        raise HopefearError(
            f"{type(tagger).__name__} is no tagger; give a fitted Tagger, or 'auto' for taggers "
            "that are trained with the parser"
        )
    needs: Sequence[str] = ("",)
    if model is not None:
        usual = getattr(model.features, "needs", ())
        needs = model.about.get("estimator", {}).get("columns") or usual
    if len(needs) != 1:
        more = f"the columns {', '.join(needs)}" if needs else "attributes made elsewhere"
        raise HopefearError(
            f"a parser's tagger reads words alone, and this one reads {more}; train one on words"
        )
    return estimator


def _columns_of(estimator: Any) -> tuple[str, ...]:
    """The columns of a treebank that a tagger gives; both columns of tags where it tells none."""
    model = _model(estimator)
    name = None if model is None else model.about.get("reading", {}).get("column")
    name = ALIASES.get(name or "", name)
    return (name,) if name in TAGS else ("upos", "xpos")


def _model(estimator: Any) -> Any:
    """The model of a fitted tagger of hopefear; None of others."""
    return getattr(estimator, "model_", None)


def _savable(estimator: Any) -> Any:
    """The model of a tagger, for a file; taggers of other libraries are refused."""
    if (model := _model(estimator)) is None:
        raise HopefearError(
            f"{type(estimator).__name__} is no tagger of hopefear, so that a model file cannot "
            "hold it; give a Tagger"
        )
    return model


def _percent_right(column: Column, bank: Treebank, name: str) -> float:
    gold, texts = bank.sentences.columns[name].texts(), column.texts()
    right = sum(
        a == b or (name == "feats" and set(values_of(a)) == set(values_of(b)))
        for a, b in zip(gold, texts, strict=True)
    )
    return 100.0 * right / max(1, len(gold))
