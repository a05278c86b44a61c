"""CRF++ template files mean here what they mean there."""

from __future__ import annotations

import json
import re
from itertools import pairwise

import pytest
from template_reference import decoded, sentences_of

from hopefear.errors import HopefearError, InputError
from hopefear.features.templates import (
    TemplateFeatures,
    load_templates,
    parse_templates,
    string_features,
)

pytestmark = pytest.mark.interpreted

FILE = """\
# Unigram
U00:%x[-2,0]
U01:%x[0,0]
U02:%x[0,0]/%x[1,1]

U03:%x[-1,1]/%x[0,1]/%x[1,1] # not a comment
sack:no
"""
UNIGRAMS = [line for line in FILE.splitlines() if line.startswith("U")]
TEXT = sentences_of(
    [[("He", "PRP"), ("reckons", "VBZ"), ("the", "DT")], [("the", "NN")]], "word", "pos"
)


def strings(lines: list[str], k: int, begin: int, end: int) -> list[str]:
    """Attributes of a token as CRF++ writes them out."""

    def macro(match: re.Match[str]) -> str:
        p = k + int(match.group(1))
        if p < begin:
            return f"_B-{begin - p}"
        if p >= end:
            return f"_B+{p - end + 1}"
        return list(TEXT.columns.values())[int(match.group(2))][p]

    return [re.sub(r"%x\[(-?\d+),(\d+)\]", macro, line) for line in lines]


def expansion(lines: list[str], edges: bool = False) -> list[list[str]]:
    return [
        [] if edges and k == begin else strings(lines, k, begin, end)
        for begin, end in pairwise(TEXT.starts.tolist())
        for k in range(begin, end)
    ]


def names(name_of, *rows) -> list[list[str]]:
    return [[name for name, _ in row] for row in decoded(name_of, *rows)]


def test_unigrams_are_the_strings_of_crfpp(tmp_path) -> None:
    path = tmp_path / "template"
    path.write_bytes(
        "\ufeff".encode() + FILE.replace("sack:no\n", "").replace("\n", "\r\n").encode()
    )
    templates = load_templates(path)
    assert (templates.padding, templates.transitions, len(templates)) == (True, False, 4)
    features, found = TemplateFeatures.fit_encode(templates, TEXT)
    assert names(features.name, *found[:3]) == expansion(UNIGRAMS)
    again = TemplateFeatures.from_parts(
        json.loads(json.dumps(features.to_header())), features.arrays()
    )
    assert names(again.name, *again.encode(TEXT)[:3]) == expansion(UNIGRAMS)
    assert again.needs == ("word", "pos")


def test_bigrams_fire_on_pairs_of_labels() -> None:
    templates = parse_templates("U:%x[0,0]\nB\nB01:%x[-1,1]/%x[0,1]\n*02:%x[0,1]")
    assert templates.transitions
    features, found = TemplateFeatures.fit_encode(templates, TEXT)
    assert names(features.name, *found[:3]) == expansion(["U:%x[0,0]", "*02:%x[0,1]"])
    edges = expansion(["B01:%x[-1,1]/%x[0,1]", "*02:%x[0,1]"], edges=True)
    assert names(features.edge_name, *found[3:]) == edges


def test_equal_text_around_macros_makes_a_bag_of_words() -> None:
    features, found = TemplateFeatures.fit_encode(
        parse_templates("U:%x[-1,0]\nU:%x[0,0]\nU:%x[1,0]"), TEXT
    )
    assert features.size == 5  # He, reckons, the and both paddings
    assert names(features.name, *found[:3]) == expansion(["U:%x[-1,0]", "U:%x[0,0]", "U:%x[1,0]"])
    again = TemplateFeatures.from_parts(features.to_header(), features.arrays())
    assert again.encode(TEXT).indices.tolist() == found.indices.tolist()


def test_a_line_without_macros_is_a_bias() -> None:
    features, found = TemplateFeatures.fit_encode(parse_templates("U00:%x[0,0]\nU\nu1:"), TEXT)
    assert features.names([1, 2]) == ["U", "u1:"]
    assert len(found.indices) == 12


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (FILE, r"template:7: expected a template that begins with U, B or \*"),
        ("U1:%x[0,0]\nU2:%y[0,0]", r"template:2: expected %x\[row,column\], or.*found '%y"),
        ('U1:%m[0,0,"**"]', r"template:1: expected a pattern of Wapiti's, found \"'\*' without"),
        ('U1:%x[0,0,"A"]', r"expected %x\[row,column\], or"),
        ("U1:%t[0,0]", r"expected %x\[row,column\], or"),
        ("U1:%x[0]", r"expected %x\[row,column\], or.*found '%x\[0\]'"),
        ("U1:%x[@0,0]", r"expected %x\[row,column\], or"),
        ("U1:%x[9999,0]", "expected rows from -1000 to 1000"),
        ("U1:%x[" + "9" * 5000 + ",0]", "expected rows"),
        ("U1:%x[0,9999]", "expected columns from 0 to 999"),
    ],
)
def test_what_is_no_template_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_templates(text, "template")


WAPITI = """\
*

U:wrd X=%X[ 0,0]
U:wrd-2 L=%X[-1,0]/%x[ 0,0]
*:Pre-2 X=%m[ 0,0,"^.?.?"]
U:Suf-3 X=%M[ 0,0,".?.?.?$"]
*:AllC? X=%t[ 0,0,"^\\u*$"]
U:Punc? R=%T[ 1,0,"\\p"]
"""


def test_patterns_of_wapiti() -> None:
    templates = parse_templates(WAPITI, "pattern")
    assert templates.transitions and len(templates) == 7
    text = sentences_of([[("The", "D"), ("EU", "N"), ("IL-2", "N")]], "word", "pos")
    features, attributes = TemplateFeatures.fit_encode(templates, text)
    second = ["*", "U:wrd X=eu", "U:wrd-2 L=the/EU", "*:Pre-2 X=EU", "U:Suf-3 X=eu"]
    third = ["*", "U:wrd X=il-2", "U:wrd-2 L=eu/IL-2", "*:Pre-2 X=IL", "U:Suf-3 X=l-2"]
    assert names(features.name, *attributes[:3])[1:] == [
        [*second, "*:AllC? X=true", "U:Punc? R=true"],
        [*third, "*:AllC? X=false", "U:Punc? R=_B+1"],
    ]
    again = TemplateFeatures.from_parts(
        json.loads(json.dumps(features.to_header())), features.arrays()
    )
    assert again.encode(text).indices.tolist() == attributes.indices.tolist()


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (".?.?$", "a", "a"),
        ("^.?.?", "abc", "ab"),
        ("a*", "aab", ""),  # as few as will do
        ("a*b", "caab", "aab"),
        ("\\u\\l", "aBcD", "Bc"),
        ("\\D\\d*$", "ab12", "b12"),
        ("\\.x?$", "a.x", ".x"),
        ("a$b", "a$b", "a$b"),
        ("\\$", "5$", "$"),
        ("^b", "ab", None),
        ("^$", "", ""),
        ("\\u", "Ä", None),  # classes are those of ASCII, as there
        (".*" * 40 + "b", "a" * 2000, None),  # time grows with the length alone
    ],
)
def test_patterns_match_as_wapiti_matches(pattern: str, text: str, found: str | None) -> None:
    assert string_features.match(text, pattern) == (found or "",)
    assert string_features.is_match(text, pattern) == ("false" if found is None else "true",)


def test_a_column_too_far_is_refused() -> None:
    with pytest.raises(
        HopefearError, match=r"t:2: template 'U1:%x\[0,2\]' needs column 2 .*word, pos"
    ):
        TemplateFeatures.fit(parse_templates("\nU1:%x[0,2]", "t"), TEXT)


@pytest.mark.parametrize("text", ["# none\n", ""])
def test_an_empty_file_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="at least one"):
        parse_templates(text, "template")
