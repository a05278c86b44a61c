"""Features of arcs: templates are read, every difference in a field makes another feature."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hopefear.core.workspace import Example
from hopefear.data.grammar import synthetic_treebank
from hopefear.data.sequences import Column, Sentences
from hopefear.data.tree_rows import TreeRows
from hopefear.errors import HopefearError, ModelError
from hopefear.features.arcs.arc_map import ArcMap
from hopefear.features.arcs.templates import ArcTemplates, lines

pytestmark = pytest.mark.interpreted

COLUMNS = ("form", "lemma", "xpos", "upos", "feats")
BANK = synthetic_treebank(25, seed=3)


def mapping(**families):
    templates = ArcTemplates.of(families or {"arc": "h.tag m.tag"})
    return ArcMap.fit(BANK.sentences, BANK.heads, templates, COLUMNS, 20, 20)


def rows_of(features, sentences):
    ptr, heads = features.arcs(sentences)
    n = int(sentences.starts[-1])
    return TreeRows(
        sentences.starts, *features.words(sentences), ptr, heads, np.zeros(n, np.int32), np.ones(1)
    )


def keys(features, sentences, i, family, *words):
    """The features of one part, as the kernel spells them."""
    rows, made = rows_of(features, sentences), features.component()
    pad = made.new_buffer(rows)
    count = getattr(made, f"{family}_keys")(Example(rows, i), *words, pad)
    return pad.keys[:count].tolist()


def changed(sentences, k, name, text):
    """The sentences with another text at token k."""
    column = sentences.columns[name]
    texts = column.texts()
    texts[k] = text
    return Sentences(sentences.starts, {**sentences.columns, name: Column.of(texts)})


def test_a_template_looks_at_its_fields_and_at_nothing_else():
    features, text = mapping(arc="h.tag m.word"), BANK.sentences.take(np.array([0]))
    before = keys(features, text, 0, "arc", 2, 1)
    assert len(before) == 1
    assert keys(features, changed(text, 0, "form", "other"), 0, "arc", 2, 1) != before
    assert keys(features, changed(text, 1, "xpos", "OTHER"), 0, "arc", 2, 1) != before
    assert keys(features, changed(text, 0, "xpos", "OTHER"), 0, "arc", 2, 1) == before
    assert keys(features, changed(text, 2, "form", "other"), 0, "arc", 2, 1) == before
    assert keys(features, text, 0, "arc", 1, 2) != before  # the other way round
    upper = changed(text, 0, "form", text.columns["form"][0].upper())
    assert keys(features, upper, 0, "arc", 2, 1) == before  # case is folded


def test_neighbours_reach_beyond_both_ends():
    features, text = mapping(arc="m-2.tag / m-1.tag / m+1.tag / m+2.tag"), BANK.sentences
    n = int(text.starts[1])
    first, last = keys(features, text, 0, "arc", 0, 1), keys(features, text, 0, "arc", 0, n)
    assert len(set(first)) == len(set(last)) == 4
    assert keys(features, text, 0, "arc", 0, 2)[1] != first[1]


def test_lists_fire_once_for_each_value():
    words = {name: Column.of(["a", "b", "c", "d"]) for name in ("form", "lemma", "xpos")}
    tags, feats = Column.of(["N", "V", "V", "P"]), Column.of(["A=1|B=2", "_", "C=3", "D=4|E=5|F=6"])
    text = Sentences(np.array([0, 4]), {**words, "upos": tags, "feats": feats})
    features = mapping(arc="h.morph m.morph / h.morph / m.morph / between")
    assert len(set(keys(features, text, 0, "arc", 1, 4))) == 2 * 3 + 2 + 3 + 1  # V once
    assert len(keys(features, text, 0, "arc", 1, 2)) == 2
    assert keys(features, text, 0, "arc", 0, 1)[:0] == []


def test_families_of_second_order_know_their_third_word():
    features = mapping(
        arc="h.tag", sibling="h.tag s.word m.tag / s.tag distance", grandparent="g.word m.tag"
    )
    text = BANK.sentences
    assert keys(features, text, 0, "sibling", 1, 2, 3) != keys(
        features, text, 0, "sibling", 1, 0, 3
    )
    assert keys(features, text, 0, "grandparent", 1, 2, 3) != keys(
        features, text, 0, "grandparent", 4, 2, 3
    )
    assert keys(features, text, 0, "outermost_child", 1, 3) != keys(
        features, text, 0, "sibling", 1, 0, 3
    )


def test_features_are_spread_over_the_table():
    features = ArcMap.fit(
        BANK.sentences, BANK.heads, ArcTemplates.named("standard"), COLUMNS, 22, 20
    )
    rows, made = rows_of(features, BANK.sentences), features.component()
    pad, seen = made.new_buffer(rows), []
    for m in range(1, 9):
        for h in range(9):
            if h != m:
                seen += pad.keys[: made.arc_keys(Example(rows, 0), h, m, pad)].tolist()
    counts = np.bincount(np.array(seen) % 64, minlength=64)
    assert counts.min() > 0.5 * counts.mean()


@pytest.mark.parametrize(
    ("family", "template", "words"),
    [
        ("arc", "h.size", "no column 'size'"),
        ("arc", "s.tag", "'s.tag' is no field"),
        ("arc", "h-3.tag", "no field"),
        ("sibling", "h.morph m.tag", "morph is that of s or m"),
        ("sibling", "s-2.tag", "only the next neighbours of s"),
        ("sibling", "h.tag m+2.tag", "only the next neighbours of m"),
        ("grandparent", "m+1.morph", "morph is that of g or m"),
    ],
)
def test_what_is_no_template_is_said(family, template, words):
    with pytest.raises(HopefearError, match=words):
        ArcTemplates.of({"arc": "h.tag", family: template})


def test_families_have_names_and_arcs_have_templates():
    with pytest.raises(HopefearError, match="not 'arcs'"):
        ArcTemplates.of({"arcs": "h.tag"})
    with pytest.raises(HopefearError, match="at least one"):
        ArcTemplates.of({"label": "h.tag"})
    with pytest.raises(HopefearError, match="standard, light"):
        ArcTemplates.named("best")
    assert lines(["h.tag", " h.tag ", "m.tag"]) == ("h.tag", "m.tag")


def test_arcs_within_reach_hold_every_tree_of_the_data_and_some_tree_of_any():
    features = mapping()
    ptr, heads = features.arcs(BANK.sentences)
    for k, gold in enumerate(BANK.heads.tolist()):
        assert gold in heads[ptr[k] : ptr[k + 1]]
    unknown = {name: Column.of(["x"] * 40) for name in COLUMNS}
    ptr, heads = features.arcs(Sentences(np.array([0, 40]), unknown))
    for m in range(1, 41):
        own = heads[ptr[m - 1] : ptr[m]].tolist()
        assert own == sorted(set(own) - {m}) and m - 1 in own


def test_a_map_survives_a_model_file_and_no_forged_part_is_trusted():
    features = mapping(arc="h.tag m.tag", label="m.word")
    header, arrays = json.loads(json.dumps(features.to_header())), features.arrays()
    again = ArcMap.from_parts(header, arrays)
    assert again.templates == features.templates and again.coarse == features.coarse
    assert np.array_equal(again.reach, features.reach)
    forged = (
        {**header, "columns": ["form"]},
        {**header, "templates": {"arc": ["h.nothing"]}},
        {**header, "templates": []},
        {**header, "plain_bits": 60},
        {**header, "row_bits": "20"},
    )
    for one in forged:
        with pytest.raises(ModelError):
            ArcMap.from_parts(one, arrays)
    with pytest.raises(ModelError):
        ArcMap.from_parts(header, {**arrays, "reach": arrays["reach"][:-1]})
