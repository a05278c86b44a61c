"""Prices of labels and sets of positions, as people write them."""

import re

import numpy as np
import pytest

from hopefear.errors import HopefearError, InputError
from hopefear.recipes import CHAIN_RECIPES
from hopefear.tasks.tag.label_costs import read_prices, resolved, resolved_early, weighted_cost

pytestmark = pytest.mark.interpreted

LABELS = ["O", "B-X", "I-X"]


def test_what_names_most_wins():
    prices = {("*", "*"): 2.0, ("*", "O"): 3.0, ("B-X", "*"): 4.0, ("B-X", "O"): 5.0}
    table = weighted_cost(prices, LABELS).table
    np.testing.assert_array_equal(table, [[0.0, 2.0, 2.0], [5.0, 0.0, 4.0], [3.0, 2.0, 0.0]])
    turned = dict(reversed(prices.items()))
    np.testing.assert_array_equal(weighted_cost(turned, LABELS).table, table)


def test_a_label_nobody_has_is_refused():
    with pytest.raises(HopefearError, match="'B-Y'"):
        weighted_cost({("B-Y", "O"): 1.0}, LABELS)


def test_prices_come_from_a_file(tmp_path):
    path = tmp_path / "prices.txt"
    path.write_text("# missing an entity is worse\nB-X O 3\n\n* B-X 0.5\n")
    assert read_prices(path) == {("B-X", "O"): 3.0, ("*", "B-X"): 0.5}
    assert resolved({"cost": str(path)}, LABELS)["cost"].label_cost(1, 0) == 3.0


@pytest.mark.parametrize("line", ["B-X O", "B-X O many", "B-X O -1", "B-X O nan", "B-X O 1 2"])
def test_a_bad_line_is_named(tmp_path, line):
    path = tmp_path / "prices.txt"
    path.write_text(f"B-X O 3\n{line}\n")
    with pytest.raises(InputError, match=r"prices\.txt:2: .*price"):
        read_prices(path)


@pytest.mark.parametrize("text", ["a", "1-", "0-b", "1,,2"])
def test_bad_positions_are_named(text):
    with pytest.raises(HopefearError, match="set of positions"):
        CHAIN_RECIPES["swvp"].build(jj="own", own=text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("3-1", "ends before it begins, '3-1'; write 1-3"),
        ("0-3000000", "goes beyond the limit, '0-3000000'; positions go from -10000 to 9999"),
        ("-10001", "goes beyond the limit"),
        ("10000", "goes beyond the limit"),
    ],
)
def test_sets_that_are_empty_or_too_far_are_refused_by_line(tmp_path, text, reason):
    file = tmp_path / "sets.txt"
    file.write_text(f"0-9999,-10000\n\n1,{text}\n")
    with pytest.raises(HopefearError, match=re.escape(f"sets.txt:3: a set of positions {reason}")):
        CHAIN_RECIPES["swvp"].build(jj="own", own=file)
    for own in (f"0; {text}", f"{text}; 0"):
        with pytest.raises(HopefearError, match=f"^a set of positions {re.escape(reason)}"):
            CHAIN_RECIPES["swvp"].build(jj="own", own=own)


@pytest.mark.parametrize("sets", [[[]], [[0], []], [[0, 10_000]], [range(-10_001, 0)]])
def test_sets_from_lists_have_the_same_limits(sets):
    with pytest.raises(HopefearError, match=r"is empty; leave it out|beyond the limit"):
        CHAIN_RECIPES["swvp"].build(jj="own", own=sets)


def test_faults_are_found_before_labels_are_known(tmp_path):
    path = tmp_path / "prices.txt"
    path.write_text("B-X O 3\n")
    assert resolved_early({"cost": str(path), "C": 1})["cost"] == "hamming"
    path.write_text("B-X O\n")
    with pytest.raises(InputError, match="prices"):
        resolved_early({"cost": str(path)})
