"""Template kernels as plain Python: keys, tables, lexicons and names."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from template_reference import FEATURES, decoded, expand, sentences_of, small_texts, templates_of

from hopefear.core.hashing import mix
from hopefear.features.templates import TemplateFeatures
from hopefear.features.templates.numbering import number
from hopefear.features.templates.program import Slots
from hopefear.features.templates.spec import Lexicon
from hopefear.features.templates.string_features import hashes_of

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


def test_templates_that_share_a_key_share_its_number() -> None:
    rng = np.random.default_rng(4)
    words = [[(f"w{k}",) for k in rng.integers(0, 5, 4)] for _ in range(9)]
    text = sentences_of(words, "word")
    slots = Slots(
        templates_of(["word[0]", "word[1]", "word[-1] word[0]"]).for_columns(text.columns)
    )
    bound, program = slots.bind(text), slots.program("labels")
    known = [int(h) for h in hashes_of(text.columns["word"].strings)]
    # word[0]=(string 3) and word[1]=(string 1) get the same key, and no others do.
    odd = 0x9E3779B97F4A7C15
    program.seeds[1] = int(program.seeds[0]) ^ (known[3] * odd ^ known[1] * odd) % 2**64
    numbers, expected = {}, []
    with np.errstate(over="ignore"):
        found = number(bound, program, True)
        for sentence in words:
            hashes = [known[text.columns["word"].strings.index(word)] for (word,) in sentence]
            for k, now in enumerate(hashes):
                keys = [mix(program.seeds[0], np.uint64(now))]
                keys += [mix(program.seeds[1], np.uint64(h)) for h in hashes[k + 1 : k + 2]]
                if k:
                    before = mix(program.seeds[2], np.uint64(hashes[k - 1]))
                    keys.append(mix(before, np.uint64(now)))
                expected.append([numbers.setdefault(int(key), len(numbers)) for key in keys])
    rows = found.rows
    got = [rows.indices[a:b].tolist() for a, b in zip(rows.indptr, rows.indptr[1:], strict=False)]
    assert got == expected and found.keys.tolist() == list(numbers)
    with np.errstate(over="ignore"):
        shared = {int(mix(program.seeds[t], np.uint64(known[s]))) for t, s in ((0, 3), (1, 1))}
    assert len(shared) == 1 and shared < numbers.keys()


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
