"""Template kernels as plain Python: keys, tables, lexicons and names."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from template_reference import FEATURES, decoded, expand, sentences_of, small_texts, templates_of

from hopefear.features.templates import TemplateFeatures
from hopefear.features.templates.spec import Lexicon

pytestmark = pytest.mark.interpreted


@settings(max_examples=40, deadline=None)
@given(
    small_texts(),
    st.lists(st.sampled_from(FEATURES), min_size=1, max_size=6, unique=True),
    st.booleans(),
)
def test_numbers_mean_what_templates_say(text, features, padding) -> None:
    templates = templates_of(features, padding, '"both"')
    fitted, found = TemplateFeatures.fit_encode(templates, text)
    again = TemplateFeatures.from_parts(fitted.to_header(), fitted.arrays())
    for rows in (found, again.encode(text)):
        assert decoded(fitted.name, *rows[:3]) == expand(templates, text, False)
        assert decoded(fitted.edge_name, *rows[3:]) == expand(templates, text, True)


def test_cut_off_and_hashing() -> None:
    text = sentences_of([[("a",), ("b",), ("a",)]], "word")
    templates = templates_of(["word[0]", "word[-1] word[0]"])
    _, found = TemplateFeatures.fit_encode(templates, text, min_count=2)
    assert found.indices.tolist() == [0, 0] and found.indptr.tolist() == [0, 1, 1, 2]
    fitted, found = TemplateFeatures.fit_encode(templates, text, hash_bits=5)
    assert fitted.encode(text).indices.tolist() == found.indices.tolist()


def test_lexicon() -> None:
    text = sentences_of([[("a",), ("b",), ("c",), ("a",)]], "word")
    column = text.columns["word"]
    lexicon = Lexicon(["a", "a b", "b c"], str)
    assert lexicon.match(text.starts, column.strings, column.ids).tolist() == [0, 1, -1, 0]
