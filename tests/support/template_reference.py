"""What templates mean, spelled out token by token in plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from hopefear.data.sequences import Column, Sentences
from hopefear.features.templates import Templates, parse_templates
from hopefear.features.templates.spec import Template, Term

TEXTS = ["", "a", "The", "cat", "IL-2", "ΑΒγ", "𝔄𝔅", "x1x1", "…", "1,000", "É", "the"]
TAGS = ["N", "V", "-"]
# One of everything a template can look at.
FEATURES = [
    "bias",
    "bos",
    "eos tag[0]",
    "bos eos",
    "word[-2..2]",
    "word[-1] word[0]",
    "tag[0] word[1] tag[-3]",
    "word[7]",
    "prefix(word, 1..3)",
    "suffix(word, 2)[-1] tag[1]",
    "suffix(lower(word), 1)[1]",
    "shape(word)[-1] shape(word)[0]",
    "short_shape(word)",
    "normal(word)[1]",
    "length(word)",
    "substrings(word, 1..3)[-1] tag[0]",
    "substrings(word, 2)",
    "classes(word)",
    "classes(word)[1] word[0]",
    "is(word, has-digit)[-1]",
    "number(score)",
    "number(score)[-1] tag[0]",
]


def templates_of(features: Sequence[str], padding: bool = False, edges: str = "false") -> Templates:
    quoted = ", ".join(f'"{f}"' for f in features)
    return parse_templates(
        f"padding = {str(padding).lower()}\n[[templates]]\noptional = true\n"
        f"edges = {edges}\nfeatures = [{quoted}]"
    )


def sentences_of(sentences: Sequence[Sequence[tuple[str, ...]]], *names: str) -> Sentences:
    rows = [row for sentence in sentences for row in sentence]
    starts = np.cumsum([0, *map(len, sentences)])
    columns = {name: Column.of([row[i] for row in rows]) for i, name in enumerate(names)}
    return Sentences(starts, columns, "test.txt")


@st.composite
def small_texts(draw) -> Sentences:
    row = st.tuples(
        st.sampled_from(TEXTS) | st.text(max_size=4),
        st.sampled_from(TAGS),
        st.sampled_from(["1", "-0.5", "0", "2e3"]),
    )
    sentences = draw(st.lists(st.lists(row, min_size=1, max_size=5), min_size=1, max_size=5))
    return sentences_of(sentences, "word", "tag", "score")


def expand(
    templates: Templates, sentences: Sentences, edges: bool
) -> list[list[tuple[str, float]]]:
    """Name and value of every attribute, token by token."""
    found = []
    for begin, end in pairwise(sentences.starts.tolist()):
        for k in range(begin, end):
            row: list[tuple[str, float]] = []
            for template in templates.templates:
                if (edges and k == begin) or template.on == ("labels" if edges else "edges"):
                    continue
                row += _fire(template, templates.padding, sentences, k, begin, end)
            found.append(row)
    return found


def decoded(name_of, indptr, indices, values) -> list[list[tuple[str, float]]]:
    """The same from numbers."""
    numbers = values.tolist() if len(values) else [1.0] * len(indices)
    rows = list(zip(map(name_of, indices.tolist()), numbers, strict=True))
    return [rows[a:b] for a, b in pairwise(indptr.tolist())]


def _fire(template: Template, padding: bool, sentences, k, begin, end):
    if (template.where & 1 and k != begin) or (template.where & 2 and k != end - 1):
        return
    value = 1.0
    if template.number is not None:
        p = k + template.number.offset
        if not begin <= p < end:
            return
        value = float(np.float32(sentences.columns[template.number.source.column][p]))
    choices = [_values(t, padding, sentences, k + t.offset, begin, end) for t in template.terms]
    combined = [()]
    for strings in choices:
        combined = [(*before, s) for before in combined for s in strings]
    for strings in combined:
        name = template.pieces[0]
        for s, piece in zip(strings, template.pieces[1:], strict=True):
            name += s + piece
        yield name, value


def _values(term: Term, padding: bool, sentences, p, begin, end) -> list[str]:
    if p < begin:
        return [f"_B-{begin - p}"] if padding else []
    if p >= end:
        return [f"_B+{p - end + 1}"] if padding else []
    values = [sentences.columns[term.source.column][p]]
    for view in term.views:
        values = [new for old in values for new in _view(old, view.name, *view.args)]
    return values


def _view(text: str, name: str, *args) -> list[str]:
    kinds = [
        "X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdigit() else c for c in text
    ]
    if name == "lower":
        return [text.lower()]
    if name == "normal":
        return ["".join("#" if c.isdigit() else c for c in text.lower())]
    if name == "shape":
        return ["".join(kinds)]
    if name == "short_shape":
        return ["".join(c for i, c in enumerate(kinds) if i == 0 or c != kinds[i - 1])]
    if name == "length":
        return [str(len(text)) if len(text) < 10 else "10+"]
    if name == "prefix":
        return [text[: args[0]]] if len(text) >= args[0] else []
    if name == "suffix":
        return [text[-args[0] :]] if len(text) >= args[0] else []
    if name == "substrings":
        spans = [(i, i + n) for i in range(len(text)) for n in range(args[0], args[1] + 1)]
        return list(dict.fromkeys(text[a:b] for a, b in spans if b <= len(text)))
    from hopefear.features.templates.string_features import classes

    return list(classes(text)) if name == "classes" else ["yes"] * (args[0] in classes(text))
