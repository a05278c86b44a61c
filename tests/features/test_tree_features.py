"""Features of trees: every family written out by hand, keys that do not depend on numbering."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter

import numba
import numpy as np
import pytest
from places import ROOT

from hopefear.data.lists.trees import Symbols, parse_trees
from hopefear.errors import HopefearError, ModelError
from hopefear.features.brackets import BracketTrees
from hopefear.features.trees import KINDS, TreeFamilies, families, tree_keys, tree_names
from hopefear.features.trees.families import SPECIALS
from hopefear.features.trees.tree import LONGEST

SENTENCE = (
    "(S1 (S (NP (DT The) (NN dog)) (VP (MD will) (VP (VB see) "
    "(NP (NP (NNS cats)) (CC and) (NP (JJ wild) (NNS mice))))) (. .)))"
)
SHORT = "(S1 (S (NP (PRP It)) (VP (VBZ is) (PP (IN in) (NP (NNP Rome)))) (. .)))"


def counted(text: str, kinds: str, lower: bool = True) -> Counter[str]:
    """Features of a tree by name, without their kinds where only one is asked for."""
    trees, chosen = parse_trees([text]), families(kinds, lower)
    keyed = tree_keys(trees, chosen)
    names = tree_names(trees, chosen, np.sort(keyed.keys))
    counts: Counter[str] = Counter()
    for key, value in zip(keyed.keys.tolist(), keyed.values.tolist(), strict=True):
        kind, name = names[key].split("|", 1)
        assert kind in chosen.kinds
        counts[name if len(chosen.kinds) == 1 else f"{kind}|{name}"] += value
    return counts


BY_HAND = {
    "Rule.plain": ("S1 -> S; S -> NP VP .; NP -> PRP; VP -> VBZ PP; PP -> IN NP; NP -> NNP"),
    "Rule.up": (
        "S -> NP VP . ^ S1; NP -> PRP ^ S; VP -> VBZ PP ^ S; PP -> IN NP ^ VP; NP -> NNP ^ PP"
    ),
    "Rule.up2": (
        "S -> NP VP . ^ S1 []; NP -> PRP ^ S S1; VP -> VBZ PP ^ S S1; PP -> IN NP ^ VP S; "
        "NP -> NNP ^ PP VP"
    ),
    "Rule.tag": (
        "S1 -> S * * VBZ; S -> NP VP * . * VBZ; NP -> PRP * * PRP; VP -> VBZ * PP * VBZ; "
        "PP -> IN * NP * IN; NP -> NNP * * NNP"
    ),
    "Rule.word": (
        "S1 -> S * is; S -> NP VP . * is; NP -> PRP * it; VP -> VBZ PP * is; PP -> IN NP * in; "
        "NP -> NNP * rome"
    ),
    "Rule.content": "PP -> IN NP * rome",
    "Rule.function": "NP -> PRP it; PP -> IN in NP",
    "NGram.2": (
        "S [] NP <; S NP VP *; S VP * .; S . [] >; VP [] VBZ *; VP VBZ * PP; VP PP [] >; "
        "PP [] IN *; PP IN * NP; PP NP [] >"
    ),
    "NGram.2up": (
        "S [] NP < ^ S1; S NP VP * ^ S1; S VP * . ^ S1; S . [] > ^ S1; VP [] VBZ * ^ S; "
        "VP VBZ * PP ^ S; VP PP [] > ^ S; PP [] IN * ^ VP; PP IN * NP ^ VP; PP NP [] > ^ VP"
    ),
    "NGram.2tag": (
        "S [] NP < VBZ; S NP VP * VBZ; S VP * . VBZ; S . [] > VBZ; VP [] VBZ * VBZ; "
        "VP VBZ * PP VBZ; VP PP [] > VBZ; PP [] IN * IN; PP IN * NP IN; PP NP [] > IN"
    ),
    "NGram.2word": (
        "S [] NP < is; S NP VP * is; S VP * . is; S . [] > is; VP [] VBZ * is; VP VBZ * PP is; "
        "VP PP [] > is; PP [] IN * in; PP IN * NP in; PP NP [] > in"
    ),
    "NGram.2function": "PP [] IN * in; PP IN * in NP",
    "NGram.3": "S [] NP VP *; S NP VP * .; S VP * . []",
    "NGram.3up": "S [] NP VP * ^ S1; S NP VP * . ^ S1; S VP * . [] ^ S1",
    "NGram.3tag": "S [] NP VP * VBZ; S NP VP * . VBZ; S VP * . [] VBZ",
    "NGramTree.2": (
        "S NP PRP ) ) VP VBZ; VP VBZ ) PP IN; PP IN ) NP NNP; S VP PP NP NNP ) ) ) ) ."
    ),
    "NGramTree.2function": ("S NP PRP it ) ) VP VBZ; VP VBZ ) PP IN in; PP IN in ) NP NNP"),
    "NGramTree.2word": (
        "S NP PRP it ) ) VP VBZ is; VP VBZ is ) PP IN in; PP IN in ) NP NNP rome; "
        "S VP PP NP NNP rome ) ) ) ) . ."
    ),
    "NGramTree.3": (
        "S NP PRP ) ) VP VBZ ) PP IN; VP VBZ ) PP IN ) NP NNP; S VP PP IN ) NP NNP ) ) ) ) ."
    ),
    "NGramTree.3function": (
        "S NP PRP it ) ) VP VBZ ) PP IN in; VP VBZ ) PP IN in ) NP NNP; "
        "S VP PP IN in ) NP NNP ) ) ) ) ."
    ),
    "Heads.tt": "VBZ < PRP; VBZ > IN; IN > NNP",
    "Heads.tw": "VBZ < it; VBZ > in; IN > rome",
    "Heads.wt": "is < PRP; is > IN; in > NNP",
    "Heads.ww": "is < it; is > in; in > rome",
    "Heads.label": "S VP NP VBZ < PRP; VP VBZ PP VBZ > IN; PP IN NP IN > NNP",
    "Heads.ttt": "[] > VBZ < PRP; [] > VBZ > IN; VBZ > IN > NNP",
    "Heads.ttw": "[] > VBZ < it; [] > VBZ > in; VBZ > IN > rome",
    "Heads.semantic.tt": "VBZ < PRP; VBZ > NNP; NNP < IN",
    "Heads.semantic.tw": "VBZ < it; VBZ > rome; NNP < in",
    "Heads.semantic.wt": "is < PRP; is > NNP; rome < IN",
    "Heads.semantic.ww": "is < it; is > rome; rome < in",
    "Heads.semantic.ttt": "[] > VBZ < PRP; [] > VBZ > NNP; VBZ > NNP < IN",
    "HeadTree.plain": ("PRP ^ NP _; VBZ ^ VP _ PP ^ S NP _ . ^ S1 _; IN ^ PP _ NP; NNP ^ NP _"),
    "HeadTree.word": (
        "it PRP ^ NP _; is VBZ ^ VP _ PP ^ S NP _ . ^ S1 _; in IN ^ PP _ NP; rome NNP ^ NP _"
    ),
    "HeadTree.semantic": "NNP ^ NP _ ^ PP IN _",
    "HeadTree.semantic.word": "rome NNP ^ NP _ ^ PP IN _",
    "LexFunHeads.tags": "PP IN NNP",
    "LexFunHeads.function": "PP in NNP",
    "LexFunHeads.words": "PP in rome",
    "WProj.tag": "PRP NP ^ S; VBZ VP S S1 ^ []; IN PP ^ VP; NNP NP ^ PP; . ^ S",
    "WProj.word": "it NP ^ S; is VP S S1 ^ []; in PP ^ VP; rome NP ^ PP; . ^ S",
    "Word.1": "it PRP; is VBZ; in IN; rome NNP; . .",
    "Word.2": "it PRP NP; is VBZ VP; in IN PP; rome NNP NP; . . S",
    "Word.3": "it PRP NP S; is VBZ VP S; in IN PP VP; rome NNP NP PP; . . S S1",
    "RightBranch": "yes; yes; yes; yes; yes; no",
    "Heavy": "S 5 yes no; NP 1 no no; VP 3 yes yes; PP 2 yes yes; NP 1 yes yes",
    "Neighbours.1": "S 5 [] []; NP 1 [] VBZ; VP 3 PRP .; PP 2 VBZ .; NP 1 IN .",
    "Neighbours.2": "S 5 [] [] []; NP 1 [] [] VBZ; VP 3 [] PRP .; PP 2 PRP VBZ .; NP 1 VBZ IN .",
    "CoPar.depth": "",
    "CoPar.label": "",
    "CoLenPar.plain": "",
    "CoLenPar.label": "",
    "Edges.left": "S [] PRP; NP [] PRP; VP PRP VBZ; PP VBZ IN; NP IN NNP",
    "Edges.right": "S . []; NP PRP VBZ; VP NNP .; PP NNP .; NP NNP .",
    "Edges.inner": "S PRP .; NP PRP PRP; VP VBZ NNP; PP IN NNP; NP NNP NNP",
    "Edges.outer": "S [] []; NP [] VBZ; VP PRP .; PP VBZ .; NP IN .",
    "Edges.around": (
        "S [] PRP . []; NP [] PRP PRP VBZ; VP PRP VBZ NNP .; PP VBZ IN NNP .; NP IN NNP NNP ."
    ),
    "Edges.left.length": "S 5 [] PRP; NP 1 [] PRP; VP 3 PRP VBZ; PP 2 VBZ IN; NP 1 IN NNP",
    "Edges.right.length": "S 5 . []; NP 1 PRP VBZ; VP 3 NNP .; PP 2 NNP .; NP 1 NNP .",
    "Edges.left2": (
        "S [] [] PRP VBZ; NP [] [] PRP VBZ; VP [] PRP VBZ IN; PP PRP VBZ IN NNP; NP VBZ IN NNP ."
    ),
    "Edges.right2": (
        "S NNP . [] []; NP [] PRP VBZ IN; VP IN NNP . []; PP IN NNP . []; NP IN NNP . []"
    ),
    "WordEdges.first": "S 5 it; NP 1 it; VP 3 is; PP 2 in; NP 1 rome",
    "WordEdges.last": "S 5 .; NP 1 it; VP 3 rome; PP 2 rome; NP 1 rome",
    "WordEdges.before": "S 5 []; NP 1 []; VP 3 it; PP 2 is; NP 1 in",
    "WordEdges.after": "S 5 []; NP 1 is; VP 3 .; PP 2 .; NP 1 .",
    "WordEdges.left": "S [] it; NP [] it; VP it is; PP is in; NP in rome",
    "WordEdges.right": "S . []; NP it is; VP rome .; PP rome .; NP rome .",
    "Distance.tt": "VBZ < PRP 1; VBZ > IN 1; IN > NNP 1",
    "Distance.tw": "VBZ < it 1; VBZ > in 1; IN > rome 1",
    "Distance.wt": "is < PRP 1; is > IN 1; in > NNP 1",
    "SpanShape": ("S 5 S1 PRP .; NP 1 S PRP PRP; VP 3 S VBZ NNP; PP 2 VP IN NNP; NP 1 PP NNP NNP"),
    "Subcat.tag": (
        "S1 S VBZ _; S VP VBZ NP _; NP PRP PRP _; VP VBZ VBZ _ PP; PP IN IN _ NP; NP NNP NNP _"
    ),
    "Subcat.word": (
        "S1 S is _; S VP is NP _; NP PRP it _; VP VBZ is _ PP; PP IN in _ NP; NP NNP rome _"
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_by_hand(kind):
    assert counted(SHORT, kind) == Counter(filter(None, BY_HAND[kind].split("; ")))


def test_conjuncts_by_hand():
    assert counted(SENTENCE, "CoPar.depth") == Counter(
        {"1 yes": 1, **{f"{depth} no": 1 for depth in (2, 3, 4, 5)}}
    )
    assert counted(SENTENCE, "CoLenPar.label") == Counter({"NP 1 yes": 1})
    row = "(NP (NP (DT a) (NN b)) (, ,) (NP (DT c) (NN d)) (CC and) (NP (NP (NN e)) (NP (NN f))))"
    assert counted(row, "CoPar.label") == Counter(
        {f"NP {d} yes": 1 + (d == 1) for d in range(1, 6)} | {f"NP {d} no": 1 for d in range(2, 6)}
    )
    assert counted(row, "CoLenPar.plain") == Counter({"0 no": 1, "0 yes": 1})
    # A conjunction at the front joins nothing here.
    assert not counted("(S (CC But) (NP (NN x)) (, ,) (VP (VB y)))", "CoPar,CoLenPar")


def test_auxiliaries_have_two_heads():
    assert counted(SENTENCE, "LexFunHeads.words") == Counter({"S1 will see": 1})
    semantic = counted(SENTENCE, "Heads.semantic.ww")
    assert semantic["see < dog"] == 1 and semantic["see > cats"] == 1
    assert counted(SENTENCE, "Heads.ww")["will < dog"] == 1


def test_right_branch_counts_are_values():
    trees = parse_trees([SHORT])
    keyed = tree_keys(trees, families("RightBranch"))
    assert sorted(keyed.values.tolist()) == [1.0, 5.0]


def test_frames_are_in_no_order():
    one = counted("(VP (VB put) (NP (NN it)) (PP (IN on)))", "Subcat.tag")
    two = counted("(VP (VB put) (PP (IN on)) (NP (NN it)))", "Subcat.tag")
    assert one == two and sum(one.values()) == 3


def test_case_of_words_matters_where_asked():
    assert "it PRP" in counted(SHORT, "Word.1")
    assert "It PRP" in counted(SHORT, "Word.1", lower=False)


def test_lower_case_is_shared_between_words():
    one, two = parse_trees(["(NP (NN Rome))"]), parse_trees(["(NP (NN ROME))"])
    chosen = families("rich")
    assert tree_keys(one, chosen).keys.tolist() == tree_keys(two, chosen).keys.tolist()


def test_keys_do_not_depend_on_numbers():
    plain = parse_trees([SENTENCE, SHORT])
    symbols = Symbols()
    symbols.numbers([*reversed(plain.symbols), "unused"])
    other = parse_trees([SENTENCE, SHORT], symbols)
    assert plain.rows.labels.tolist() != other.rows.labels.tolist()
    first, second = (tree_keys(trees, families("rich")) for trees in (plain, other))
    for a, b in zip(first, second, strict=True):
        assert np.array_equal(a, b)


def test_different_features_have_different_keys():
    trees, chosen = parse_trees([SENTENCE, SHORT]), families("rich")
    keyed = tree_keys(trees, chosen)
    names = tree_names(trees, chosen, np.sort(keyed.keys))
    assert set(names) == set(keyed.keys.tolist())
    assert len(set(names.values())) == len(names)
    assert 0 not in names


def test_names_only_of_what_occurs():
    trees, chosen = parse_trees([SHORT, SENTENCE]), families("Word.1")
    keyed = tree_keys(trees, chosen)
    wanted = np.sort(np.append(keyed.keys[[1, -2]], np.uint64(12345)))
    found = tree_names(trees, chosen, wanted)
    assert sorted(found.values()) == ["Word.1|is VBZ", "Word.1|mice NNS"]
    assert tree_names(trees, chosen, np.empty(0, np.uint64)) == {}


def test_many_trees_and_one_large_one():
    """Tape and keys grow on the way, and give what trees give alone."""
    wide = "(S " + " ".join(f"(NP (DT the) (NN n{i}))" for i in range(700)) + ")"
    texts = [SHORT, wide, SENTENCE]
    chosen = families("ptb,-NGram.2word")
    together = tree_keys(parse_trees(texts), chosen)
    for t, text in enumerate(texts):
        alone = tree_keys(parse_trees([text]), chosen)
        part = slice(together.indptr[t], together.indptr[t + 1])
        assert np.array_equal(alone.keys, together.keys[part])
        assert np.array_equal(alone.values, together.values[part])


def test_deep_trees_leave_out_what_is_too_long():
    depth = 3 * LONGEST
    deep = "(S " * depth + "(NN x)" + ")" * depth
    assert sum(counted(deep, "HeadTree,WProj").values()) == 0
    assert counted(deep, "Rule.plain") == Counter({"S -> S": depth - 1, "S -> NN": 1})


def test_no_trees():
    keyed = tree_keys(parse_trees([]), families("rich"))
    assert keyed.indptr.tolist() == [0] and len(keyed.keys) == 0


def test_interpreted_equals_compiled(tmp_path):
    if numba.config.DISABLE_JIT:
        pytest.skip("NUMBA_DISABLE_JIT is set, so nothing is compiled")
    code = (
        "import sys, json\n"
        "from hopefear.data.lists.trees import parse_trees\n"
        "from hopefear.features.trees import families, tree_keys\n"
        "keyed = tree_keys(parse_trees(json.loads(sys.argv[1])), families('rich'))\n"
        "print(json.dumps([keyed.keys.tolist(), keyed.values.tolist()]))\n"
    )
    out = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, json.dumps([SENTENCE, SHORT])],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    keyed = tree_keys(parse_trees([SENTENCE, SHORT]), families("rich"))
    assert json.loads(out) == [keyed.keys.tolist(), keyed.values.tolist()]


def test_named_sets():
    assert set(families("ptb").kinds) < set(families("rich").kinds) == set(KINDS)
    assert families("Rule.up,Heavy").kinds == families(" Heavy , Rule.up").kinds
    assert families("Word,-Word.3").kinds == ("Word.1", "Word.2")
    assert TreeFamilies().kinds == families("ptb").kinds


@pytest.mark.parametrize("text", ["Rules", "", "ptb,Nope", "-Nope"])
def test_unknown_families_are_named_with_the_known(text):
    with pytest.raises(HopefearError, match=r"nothing is called .*known are ptb, rich, Rule"):
        families(text)


def test_unknown_variants_are_named_with_those_of_the_family():
    with pytest.raises(HopefearError, match=r"'Word.7'; known are Word.1, Word.2, Word.3$"):
        families("Word.7")
    with pytest.raises(HopefearError, match="leaves no family"):
        families("Rule,-Rule")


def test_headers():
    chosen = families("Rule,Edges.left", lower=False)
    assert TreeFamilies.from_header(json.loads(json.dumps(chosen.to_header()))) == chosen
    good = chosen.to_header()
    bad = [
        {},
        {**good, "definitions": 0},
        {**good, "kinds": "Rule"},
        {**good, "kinds": ["Rule"]},
        {**good, "kinds": [3]},
        {**good, "lower": 1},
    ]
    for header in bad:
        with pytest.raises(ModelError, match="tree features"):
            TreeFamilies.from_header(header)


def test_marks_are_no_words():
    """A word that looks like a mark has another key."""
    assert len(set(SPECIALS)) == len(SPECIALS)
    trees = parse_trees(["(S (NP (NN [])) (VP (VB a)))", "(S (NP (NN b)) (VP (VB a)))"])
    assert isinstance(trees, BracketTrees)
    chosen = families("WordEdges.before")
    keyed = tree_keys(trees, chosen)
    before = keyed.keys.reshape(2, 2)
    assert before[0, 0] == before[1, 0] != before[0, 1]
    names = tree_names(trees, chosen, np.sort(keyed.keys))
    assert names[int(before[0, 0])] == "WordEdges.before|NP 1 []"
