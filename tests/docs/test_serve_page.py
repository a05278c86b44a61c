"""The guide to serving: commands parse, code runs, numbers are those of the code."""

from __future__ import annotations

import pytest
from doc_pages import ROOT, table, text_of

from hopefear.cli import parser_of

pytestmark = [pytest.mark.interpreted, pytest.mark.filterwarnings("ignore:overflow")]
PAGE = text_of("docs/serve.md")


def test_bounds_are_those_of_the_command():
    parser = parser_of("serve")
    for option, (usual, _) in table(PAGE, "option").items():
        number = usual.split()[0].replace(",", "")
        assert int(number) == parser.get_default(option.removeprefix("--").replace("-", "_"))


@pytest.mark.needs("serve")
def test_fields_are_those_of_requests():
    from hopefear.serve.requests import NUMBERS

    numbers = {name for fields in NUMBERS.values() for name in fields}
    others = {"model", "input", "inputs", "unknown_label", "proba"}
    assert set(table(PAGE, "field")) == others | numbers


def test_the_picture_is_small():
    assert (ROOT / "docs/img/serve.png").stat().st_size < 200_000
