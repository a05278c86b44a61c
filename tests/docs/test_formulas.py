"""Formulas of docstrings as mathematics."""

from __future__ import annotations

import importlib.util
import re

import pytest
from places import ROOT

pytestmark = pytest.mark.interpreted
SPEC = importlib.util.spec_from_file_location("formulas", ROOT / "tools" / "formulas.py")
formulas = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(formulas)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("w <- w + rate_t g", r"w\leftarrow w+\mathrm{rate}_{t}\,g"),
        ("sqrt(sqrt(k) / l2)", r"\sqrt{\sqrt{k}/l_{2}}"),
        ("(x + y)**2 / 2", r"(x+y)^{2}/2"),
        ("j ** (1 / 3)", r"j^{1/3}"),
        ("log sum_y exp(score_y)", r"\log \,\sum_{y}\,\exp (\mathrm{score}_{y})"),
        ("score_i,gold", r"\mathrm{score}_{i,\mathrm{gold}}"),
        ("w'.(a - y_k) >= 0", r"w'\cdot (a-y_{k})\ge 0"),
        ("sum of g**2 so far", r"\sum \text{ of }g^{2}\text{ so }\text{ far }"),
    ],
)
def test_code_becomes_latex(code, expected):
    assert formulas.latex(code) == expected


@pytest.mark.parametrize("code", ["#{x}", 'f("x")', "x & y"])
def test_what_is_no_formula_stays_code(code):
    assert formulas.latex(code) is None


@pytest.mark.needs("docs")
def test_every_formula_can_be_set():
    from latex2mathml.converter import convert

    codes = formulas.codes()
    assert "w = shrink(m, l1 k) / (l2 k + sqrt(k) / rate)" in codes and len(codes) > 100
    assert "values[indptr[i]:indptr[i + 1]]" not in codes
    for code in codes:
        assert "merror" not in convert(formulas.latex(code))


def test_the_catalogue_shows_no_formula_as_code():
    page = (ROOT / "docs" / "learners.md").read_text("utf-8")
    parts = re.findall("^- (?:Loss|Rule|Averaging|What it solves).*", page, re.M)
    pieces = {piece for part in parts for piece in re.findall("`([^`]+)`", part) if " " in piece}
    assert len(pieces) > 30
    assert {piece for piece in pieces if not formulas.latex(piece)} == set()
    assert {piece for piece in pieces if piece not in formulas.codes()} == set()
