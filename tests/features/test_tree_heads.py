"""Heads of constituents: known cases, and the compiled rules against a search as written."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopefear.data.lists.trees import parse_trees
from hopefear.features.trees.tree import (
    NO_RANK,
    PUNCTUATION,
    SEMANTIC,
    SEMANTIC_RULES,
    SYNTACTIC,
    SYNTACTIC_RULES,
    find_heads,
    head_rules,
    new_scratch,
    prepare,
    symbol_facts,
    view,
)

pytestmark = pytest.mark.interpreted


def head_words(text: str, kind: int) -> dict[str, str]:
    """Word that is the head of each node, by label and tokens: ``NP0-2``."""
    trees = parse_trees([text])
    facts, strings = symbol_facts(trees.symbols, False)
    scratch = new_scratch(len(trees.rows.labels))
    with np.errstate(over="ignore"):
        prepare(trees.rows, 0, facts.bits, facts.lower, scratch)
        find_heads(view(trees.rows, 0, scratch), facts.heads)
    rows = trees.rows
    return {
        f"{trees.symbols[rows.labels[v]]}{rows.begins[v]}-{rows.ends[v]}": strings[
            scratch.words[scratch.leads[kind, v]]
        ]
        for v in range(len(rows.labels))
        if rows.words[v] < 0
    }


SENTENCE = (
    "(S1 (S (PP (IN In) (NP (NNP May))) (, ,) (NP (NP (NNP Kim) (POS 's)) (JJ old) (NN dog)) "
    "(VP (MD will) (VP (VB bark))) (. .)))"
)


def test_syntactic_heads():
    assert head_words(SENTENCE, SYNTACTIC) == {
        "S10-10": "will",
        "S0-10": "will",
        "PP0-2": "In",
        "NP1-2": "May",
        "NP3-7": "dog",
        "NP3-5": "'s",
        "VP7-9": "will",
        "VP8-9": "bark",
    }


def test_semantic_heads():
    assert head_words(SENTENCE, SEMANTIC) == {
        "S10-10": "bark",
        "S0-10": "bark",
        "PP0-2": "May",
        "NP1-2": "May",
        "NP3-7": "dog",
        "NP3-5": "Kim",
        "VP7-9": "bark",
        "VP8-9": "bark",
    }


@pytest.mark.parametrize(
    ("text", "syntactic", "semantic"),
    [
        ("(SBAR (WHNP (WP who)) (S (VP (VBD left))))", "who", "left"),
        ("(SBAR (IN that) (S (NP (PRP it)) (VP (VBZ is))))", "that", "is"),
        ("(QP (RB about) (CD 7) (CD million))", "about", "million"),
        ("(NP (NP (NNS cats)) (PP (IN of) (NP (NNP Rome))))", "cats", "cats"),
        ("(NP (DT the) (JJ rich))", "rich", "rich"),
        ("(VP (VP (VB sit)) (CC and) (VP (VB wait)))", "sit", "sit"),
        ("(NP (NN salt) (, ,) (CC and) (NN pepper))", "salt", "salt"),  # the first conjunct
        ("(ADVP (RB well) (RB enough))", "enough", "enough"),
        ("(PRN (: --) (S (VP (VB wait))) (: --))", "wait", "wait"),  # not the dash
        ("(FRAG (. .) (. !))", "!", "!"),  # nothing else is there
        ("(WEIRD (NN one) (NN two))", "one", "one"),
    ],
)
def test_known_cases(text, syntactic, semantic):
    root = next(iter(head_words(text, SYNTACTIC)))
    assert head_words(text, SYNTACTIC)[root] == syntactic
    assert head_words(text, SEMANTIC)[root] == semantic


def searched(rule, children: list[str]) -> int:
    """Place of the head, by the searches as they are written."""
    for late, groups in rule:
        for group in groups.split():
            labels = group.split("|")
            found = [
                c
                for c, label in enumerate(children)
                if label in labels
                or (labels == ["*"] and label not in PUNCTUATION | {"-LRB-", "-RRB-"})
            ]
            if found:
                return found[-1] if late else found[0]
    return -1


LABELS = sorted(
    {g for r in SYNTACTIC_RULES.values() for _, gs in r for g in gs.replace("|", " ").split()}
    - {"*"}
    | PUNCTUATION
    | {"-LRB-", "UH", "ODD"}
)


@given(
    st.sampled_from(sorted(SYNTACTIC_RULES)),
    st.lists(st.sampled_from(LABELS), min_size=1),
    st.data(),
)
def test_ranks_find_what_the_searches_find(parent, children, data):
    kind = data.draw(st.sampled_from([SYNTACTIC, SEMANTIC]))
    rules = head_rules([parent, *children])
    row = rules.row[0]
    ranks = rules.rank[kind, row, rules.column[1:]]
    best = int(ranks.min())
    places = np.flatnonzero(ranks == best)
    expected = searched((SYNTACTIC_RULES, SEMANTIC_RULES)[kind][parent], children)
    if best == NO_RANK:
        assert expected == -1
    else:
        assert expected == (places[-1] if rules.late[kind, row, best] else places[0])


def test_every_rule_has_room_for_its_ranks():
    rules = head_rules(["S"])
    assert (rules.rank[rules.rank < NO_RANK] < rules.late.shape[2]).all()
