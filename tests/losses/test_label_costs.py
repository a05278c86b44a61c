"""Prices of labels and sets of positions, as people write them."""

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
    assert resolved({"cost": str(path)}, LABELS)["cost"].price(1, 0) == 3.0


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


def test_faults_are_found_before_labels_are_known(tmp_path):
    path = tmp_path / "prices.txt"
    path.write_text("B-X O 3\n")
    assert resolved_early({"cost": str(path), "C": 1})["cost"] == "hamming"
    path.write_text("B-X O\n")
    with pytest.raises(InputError, match="prices"):
        resolved_early({"cost": str(path)})
