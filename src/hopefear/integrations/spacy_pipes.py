"""Taggers and parsers as components of a spaCy pipeline: ``hopefear_tagger``, ``hopefear_parser``.

Where hopefear is installed with spaCy, pipelines know both by these names. A saved pipeline holds
the models.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from spacy.attrs import DEP, HEAD
from spacy.language import Language
from spacy.tokens import Doc, Span, Token

import hopefear
from hopefear.errors import HopefearError

# What a column of a model is called here; a column of another name is empty.
_ATTRIBUTES = {
    **dict.fromkeys(("word", "form", "0"), "text"),
    **dict.fromkeys(("pos", "xpos", "tag", "1"), "tag_"),
    **{"upos": "pos_", "cpos": "pos_", "lemma": "lemma_", "feats": "morph"},
}


@Language.factory("hopefear_tagger", default_config={"model": "", "attribute": "tag_"})
def tagger(nlp: Language, name: str, model: str, attribute: str) -> TaggerPipe:
    """Spans become ``doc.ents``; labels that are no spans an attribute of the tokens.

    Parameters
    ----------
    nlp, name
        As spaCy gives them.
    model : str
        Path of a tagger. Not needed where a pipeline is read that was saved with its models.
    attribute : {"tag_", "pos_"}
        Where labels go that are no spans.

    Examples
    --------
    >>> import spacy, tempfile
    >>> from hopefear import Tagger
    >>> ann = Tagger("perceptron").fit([["Ann", "Lee", "sings"]] * 2, [["B-PER", "I-PER", "O"]] * 2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ann.save(f"{folder}/names.model")
    ...     nlp = spacy.blank("en")
    ...     _ = nlp.add_pipe("hopefear_tagger", config={"model": f"{folder}/names.model"})
    >>> [(span.text, span.label_) for span in nlp("Ann Lee sings").ents]
    [('Ann Lee', 'PER')]
    """
    return TaggerPipe(name, model, attribute)


@Language.factory("hopefear_parser", default_config={"model": ""})
def parser(nlp: Language, name: str, model: str) -> ParserPipe:
    """Heads and relations of the tokens; the root of a sentence is its own head.

    Parameters
    ----------
    nlp, name, model
        As for the tagger.
    """
    return ParserPipe(name, model)


class ModelPipe:
    """A component around a model, which is written and read with its pipeline.

    Parameters
    ----------
    name : str
        Name of the component.
    path : str
        Path of its model file. One that does not exist is refused at the first document: a
        pipeline that was saved knows the path that was given once, and has the model itself.
    """

    _estimators: ClassVar[Any]

    def __init__(self, name: str, path: str = "") -> None:
        self.name, self.path, self._estimator = name, path, None
        if path and os.path.exists(path):
            self.from_disk(path)

    @property
    def estimator(self) -> Any:
        """The estimator around the model."""
        if self._estimator is None:
            found = f", and {self.path} does not exist" if self.path else ""
            raise HopefearError(f'{self.name} needs a model{found}: config={{"model": "PATH"}}')
        return self._estimator

    def to_disk(self, path: Any, *, exclude: Any = ()) -> None:
        """Write the model file."""
        self.estimator.save(path)

    def from_disk(self, path: Any, *, exclude: Any = ()) -> Self:
        """Read a model file."""
        task, estimator = self._estimators._task, hopefear.load(path)
        if estimator.model_.task != task:
            raise HopefearError(
                f"{path} is a model of the task {estimator.model_.task}, and {self.name} needs one "
                f"of the task {task}"
            )
        self._estimator = estimator
        return self

    def to_bytes(self, *, exclude: Any = ()) -> bytes:
        """The model file, in memory."""
        return self.estimator.to_bytes()

    def from_bytes(self, data: bytes, *, exclude: Any = ()) -> Self:
        """Read what :meth:`to_bytes` gave."""
        self._estimator = self._estimators.from_bytes(data)
        return self


class TaggerPipe(ModelPipe):
    """A component that tags; sentences are tagged one by one where the document has some."""

    _estimators = hopefear.Tagger

    def __init__(self, name: str, path: str = "", attribute: str = "tag_") -> None:
        super().__init__(name, path)
        self.attribute = attribute

    def __call__(self, doc: Doc) -> Doc:
        columns = tuple(getattr(self.estimator.model_.features, "needs", ())) or ("word",)
        parts = list(_sentences(doc))
        tokens = [[_row(token, columns) for token in part] for part in parts]
        if not tokens:
            return doc
        if self.estimator.scheme_ is not None:
            spans = zip(parts, self.estimator.predict_spans(tokens), strict=True)
            doc.set_ents(
                [
                    Span(doc, part.start + span.start, part.start + span.end, span.label)
                    for part, found in spans
                    for span in found
                ]
            )
            return doc
        for part, labels in zip(parts, self.estimator.predict(tokens), strict=True):
            for token, label in zip(part, labels, strict=True):
                setattr(token, self.attribute, str(label))
        return doc


class ParserPipe(ModelPipe):
    """A component that parses, sentence by sentence where the document has some."""

    _estimators = hopefear.Parser

    def __call__(self, doc: Doc) -> Doc:
        parts = list(_sentences(doc))
        names = ("form", "lemma", "upos", "xpos", "feats")
        words = [
            [dict(zip(names, map(str, _row(token, names)), strict=True)) for token in part]
            for part in parts
        ]
        if not words:
            return doc
        arcs = np.zeros((len(doc), 2), np.uint64)
        for part, tree in zip(parts, self.estimator.predict(words), strict=True):
            for i, entry in enumerate(tree):
                head, relation = entry if isinstance(entry, tuple) else (entry, "dep")
                offset = head - 1 - i if head else 0
                name = "ROOT" if not head else str(relation)
                # spaCy reads offsets to the left as whole numbers that wrapped.
                arcs[part.start + i] = offset % 2**64, doc.vocab.strings.add(name)
        return doc.from_array([HEAD, DEP], arcs)


def _sentences(doc: Doc) -> Iterator[Span]:
    if len(doc) and doc.has_annotation("SENT_START"):
        yield from doc.sents
    elif len(doc):
        yield doc[:]


def _row(token: Token, columns: tuple[str, ...]) -> Any:
    """A token as the model has its columns; what is missing is ``_``, as in files."""
    cells = [str(getattr(token, _ATTRIBUTES.get(name, ""), "") or "_") for name in columns]
    return cells[0] if len(cells) == 1 else tuple(cells)
