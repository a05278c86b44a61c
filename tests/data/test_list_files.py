"""Files of candidate lists: three formats, bad lists told with their place, duplicates."""

from __future__ import annotations

import gc
import gzip
import json
import weakref
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import DATA

from hopefear.data.files import ReadReport
from hopefear.data.lists.candidates import CandidateLists, NamedEntries, deduplicated
from hopefear.data.lists.files import read_lists
from hopefear.data.lists.trees import Symbols
from hopefear.errors import HopefearError, InputError
from hopefear.features.brackets import bracketed

pytestmark = pytest.mark.interpreted

GOLD = "(S1 (S (NP (PRP it)) (VP (VBZ is)) (. .)))"
FLAT = "(S1 (FRAG (PRP it) (VBZ is) (. .)))"
WRONG = "(S1 (S (NP (PRP it)) (X (VBZ is)) (. .)))"
COUNTS = {GOLD: [3, 3, 3], FLAT: [0, 3, 1], WRONG: [2, 3, 3]}


def saved(folder: Path, *lines, name: str = "a.jsonl") -> Path:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path = folder / name
    path.write_text("".join(text + "\n" for text in texts), encoding="utf-8")
    return path


def candidate(text="a", cost: float | None = 0, **more):
    found = {"text": text, "cost": cost, "score": 1, "features": {"f": 1}, **more}
    return {key: value for key, value in found.items() if value is not None}


def texts(name="x", *candidates, **more):
    return {"id": name, "candidates": list(candidates) or [candidate()], **more}


def parses(name="x", trees=(GOLD, FLAT), **more):
    found = [{"tree": tree, "logprob": -float(k)} for k, tree in enumerate(trees)]
    record = {"id": name, "tokens": ["it", "is", "."], "gold": GOLD, "candidates": found, **more}
    return {key: value for key, value in record.items() if value is not None}


def read(path, *args, **more) -> CandidateLists:
    (found,) = read_lists(path, *args, **more)
    return found


def test_generic_lists(tmp_path):
    path = saved(
        tmp_path,
        texts(
            "one",
            candidate("a b", 0.25, features={"lm": -1.5, "tag": "NP", "flag": True, "n": 2}),
            candidate("a", 1, score=None, derivation="h1", features=None) | {"score": 0.5},
            reference="a b c",
            weight=2,
        ),
        "",
        texts(7, candidate("é", 0, features={"n": 1}), references=["é", "e"]),
    )
    lists = read(path)
    assert (lists.ids, lists.texts, lists.metric) == (["one", "7"], ["a b", "a", "é"], "cost")
    assert lists.starts.tolist() == [0, 2, 3]
    assert lists.scores.tolist() == [1.0, 0.5, 1.0]
    assert lists.costs.tolist() == [0.25, 1.0, 0.0]
    assert lists.weights.tolist() == [2.0, 1.0]
    assert lists.references == [["a b c"], ["é", "e"]]
    assert lists.sparse.names == ["lm", "tag=NP", "flag", "n"]
    assert lists.sparse.indptr.tolist() == [0, 4, 4, 5]
    assert lists.sparse.ids.tolist() == [0, 1, 2, 3, 3]
    assert lists.sparse.values.tolist() == [-1.5, 1.0, 1.0, 2.0, 1.0]
    assert (lists.source, [lists.line_of(0), lists.line_of(1)]) == (str(path), [1, 3])
    assert lists.trees is None and lists.counts is None


def test_lists_that_say_little(tmp_path):
    lists = read(saved(tmp_path, {"id": "x", "candidates": [{}, {}]}))
    assert lists.texts == ["", ""] and lists.scores.tolist() == [0.0, 0.0]
    assert lists.costs is None and lists.sparse is None and lists.weights is None
    assert lists.references is None


class Length:
    """Words too few or too many, as a metric of texts."""

    name = "length"

    def statistics(self, references, outputs):
        pairs = zip(outputs, references, strict=True)
        return np.array([[len(a.split()), len(b[0].split())] for a, b in pairs])

    def costs(self, counts):
        return np.abs(counts[:, 0] - counts[:, 1])


def test_a_metric_makes_costs_where_there_are_references(tmp_path):
    given = texts("x", candidate("a b", 9), candidate("", 9), reference="a b c")
    path = saved(tmp_path, given)
    lists = read(path, metric=Length())
    assert (lists.metric, lists.counts.tolist()) == ("length", [[2, 3], [0, 3]])
    assert lists.costs.tolist() == [1.0, 3.0]
    plain = read(saved(tmp_path, texts("x", candidate("a b", 9))), metric=Length())
    assert (plain.metric, plain.costs.tolist(), plain.counts) == ("cost", [9.0], None)
    mixed = saved(tmp_path, given, texts("y", candidate("a", 1)))
    with pytest.raises(InputError, match=r":2: expected a reference, and texts, in list 'y'"):
        list(read_lists(mixed, metric=Length()))


def test_parse_lists(tmp_path):
    counted = parses("two", (FLAT, WRONG), gold=None, tokens=None)
    for entry, row in zip(counted["candidates"], ([1, 5, 4], [2, 5, 4]), strict=True):
        entry |= dict(zip(("matched", "gold_brackets", "test_brackets"), row, strict=True))
    path = saved(tmp_path, parses("one"), counted)
    symbols = Symbols()
    lists = read(path, symbols=symbols)
    assert lists.metric == "parseval"
    assert lists.counts.tolist() == [COUNTS[GOLD], COUNTS[FLAT], [1, 5, 4], [2, 5, 4]]
    assert lists.costs.tolist() == pytest.approx([0.0, 1.0, 1 - 2 / 9, 1 - 4 / 9])
    assert lists.scores.tolist() == [0.0, -1.0, 0.0, -1.0]
    assert [bracketed(lists.trees, t) for t in range(4)] == lists.texts
    assert lists.trees.symbols is symbols.names
    assert lists.references is None


def test_counts_of_a_file_are_trusted_until_a_recount(tmp_path):
    record = parses("x", (GOLD, WRONG))
    for entry in record["candidates"]:
        entry |= {"matched": 1, "gold_brackets": 1, "test_brackets": 1}
    path = saved(tmp_path, record)
    assert read(path).counts.tolist() == [[1, 1, 1]] * 2
    assert read(path, recount=True).counts.tolist() == [COUNTS[GOLD], COUNTS[WRONG]]


def test_parses_without_gold_have_no_costs(tmp_path):
    path = saved(tmp_path, parses("x", gold=None, tokens=None))
    assert read(path).costs is None and read(path).counts is None
    with pytest.raises(InputError, match="a gold tree, counts of brackets or costs in list 'x'"):
        read(path, require_costs=True)


BLLIP = f"2\twsj.0\n-1.5\n{GOLD}\n-2\n{FLAT}\n\n\n1\twsj.1\n-3e1\n{WRONG}\n"


def test_lists_as_a_parser_prints_them(tmp_path):
    path = tmp_path / "a.nbest.gz"
    path.write_bytes(gzip.compress(BLLIP.encode()))
    lists = read(path)
    assert (lists.ids, lists.texts) == (["wsj.0", "wsj.1"], [GOLD, FLAT, WRONG])
    assert lists.scores.tolist() == [-1.5, -2.0, -30.0]
    assert lists.costs is None and lists.lines.tolist() == [1, 8]
    gold = saved(tmp_path, GOLD, "", GOLD, name="gold")
    lists = read(path, gold=gold)
    assert lists.counts.tolist() == [COUNTS[GOLD], COUNTS[FLAT], COUNTS[WRONG]]
    assert lists.references == [[GOLD], [GOLD]]
    with pytest.raises(InputError, match=r"short: expected a tree for every list.* line 8"):
        read(path, gold=saved(tmp_path, GOLD, name="short"))
    with pytest.raises(InputError, match=r"long:3: expected as many trees as"):
        read(path, gold=saved(tmp_path, GOLD, GOLD, GOLD, name="long"))
    with pytest.raises(HopefearError, match="hold their own gold trees"):
        read(saved(tmp_path, parses()), gold=gold)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"2\tx\n-1\n{GOLD}\n\n", r":4: expected a score and a tree for candidate 2 of list 'x'"),
        (f"2\tx\n-1\n{GOLD}\n-2\n", r":4: expected a score and a tree .* 'the end of the file'"),
        (f"1\tx\nnan\n{GOLD}\n", r":2: expected a finite number as score in candidate 1 of list"),
        (f"1\tx\n{GOLD}\n-1\n", r":2: expected a finite number as score"),
        ("0\tx\n\n", r":1: expected at least one candidate in list 'x', found '0'"),
        (f"1\tx\n-1\n{GOLD}\n-2\n{GOLD}\n", r":4: expected a number of candidates, a tab and"),
        (f"1\tx\n-1\n{GOLD[:-1]}\n", r":3: .*'\('.* in candidate 1 of list 'x', character 1, fo"),
        (
            f"1\tx\n-1\n{GOLD}\n\n1\tx\n-1\n{GOLD}\n",
            r":5: expected every id once.* 'x' comes again",
        ),
        (
            f"2\tx\n-1\n{GOLD}\n-1\n{GOLD.replace('is', 'was')}\n",
            r":5: expected 'is' as word 2, as in the sentence, in candidate 2 .*'x', found 'was'",
        ),
    ],
)
def test_bad_lists_of_a_parser(tmp_path, text, message):
    path = tmp_path / "a.nbest"
    good = f"1\tgood\n-1\n{GOLD}\n"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        list(read_lists(path, "bllip"))
    report = ReadReport()
    path.write_text(text + "\n" + good)
    ids = [
        name
        for lists in read_lists(path, on_error="skip", report=report, format="bllip")
        for name in lists.ids
    ]
    assert ids[-1] == "good" and len(ids) == report.rows
    assert report.skipped == 1 and report.messages[0].startswith(f"{path}:")


def test_a_list_seen_twice_takes_no_other_with_it(tmp_path):
    path = tmp_path / "a.nbest"
    path.write_text("".join(f"1\t{name}\n-1\n{GOLD}\n" for name in "xyxz"))
    report = ReadReport()
    assert read(path, on_error="skip", report=report).ids == ["x", "y", "z"]
    assert report.skipped == 1 and ":7: expected every id once" in report.messages[0]


def test_gold_trees_stay_in_step_when_lists_are_skipped(tmp_path):
    path = tmp_path / "a.nbest"
    path.write_text(f"1\tx\n-1\n{FLAT[:-2]}\n\n1\ty\nnan\n{GOLD}\n\n1\tz\n-1\n(S1 (A b))\n")
    gold = saved(tmp_path, GOLD, GOLD, "(S1 (A b))", name="gold")
    lists = read(path, gold=gold, on_error="skip")
    assert (lists.ids, lists.references) == (["z"], [["(S1 (A b))"]])
    path.write_text(f"1\tx\n-1\n{GOLD}\n-2\n{GOLD}\n\n1\ty\n-1\n{GOLD}\n")
    with pytest.raises(InputError, match=r":4: expected a number of candidates"):
        read(path, gold=gold, on_error="skip")


BAD_TEXTS = [
    ('{"id": "x", ', r":2: expected a list as JSON, with finite numbers, found 'Input data was tr"),
    ("[1]", r":2: expected an object"),
    ({"id": None, "candidates": [{}]}, r"a string or a whole number as id in this.*found 'null'"),
    ({"id": True, "candidates": [{}]}, r"a string or a whole number as id.*found 'true or false'"),
    ({"id": "", "candidates": [{}]}, r"a string that is not empty as id"),
    ({"id": "x"}, r"the field `candidates` in list 'x'"),
    ({"id": "x", "candidates": []}, r"a list that is not empty as candidates in list 'x'"),
    ({"id": "x", "candidates": ["a"]}, r"an object in candidate 1 of list 'x', found 'a string'"),
    (texts("good"), r"every id once.*'good' comes again"),
    (texts("x", candidate(), candidate(cost=None)), r"a cost, as other.*candidate 2 of list 'x'"),
    (
        texts("x", candidate(cost="low")),
        r"a number as cost in candidate 1 of list 'x'.*'a string",
    ),
    (texts("x", candidate(score=float("nan"))), r"with finite numbers, found .*invalid character"),
    (texts("x", candidate(score=10**400)), r"a number of at most 1e15 in size as score"),
    (texts("x", candidate(cost=-2e15)), r"a number of at most 1e15 in size as cost in cand"),
    (
        texts("x", candidate(features={"a": 1e39})),
        r":2: expected a number of at most 1e15 in size as a feature in candidate 1 of list 'x'",
    ),
    (texts("x", candidate(score=True)), r"a number as score.*found 'true or false'"),
    (texts("x", candidate(text=1)), r"a string as text in candidate 1.*found 'a whole number'"),
    (texts("x", candidate(derivation=1)), r"a string as derivation"),
    (texts("x", candidate(features=[1])), r"an object as features.* found 'a list'"),
    (texts("x", candidate(features={"a": None})), r"a number or a string as a feature.*'null'"),
    (texts("x", candidate(features={"a": [1]})), r"a number or a string as a feature in cand"),
    (texts("x", candidate(features={"a": float("inf")})), r"with finite numbers"),
    (texts("x", candidate(features={"a=b": 1, "a": "b"})), r"every feature once.*found 'a=b'"),
    (texts("x", weight=-1), r"a number >= 0.0 as weight in list 'x'"),
    (texts("x", references=[]), r"a list that is not empty as references"),
    (texts("x", references=["a", 1]), r"a string as references\[1\] in list 'x', found 'a whole"),
    (texts("x", reference=["a"]), r"a string as reference"),
    (texts("x", candidate(cost=None)), r"costs in list 'x', as in the lists before it, found 'no"),
]


@pytest.mark.parametrize(("line", "message"), BAD_TEXTS)
def test_bad_lists_of_texts(tmp_path, line, message):
    path = saved(tmp_path, texts("good"), line, texts("last"))
    with pytest.raises(InputError, match=message) as caught:
        list(read_lists(path))
    assert str(caught.value).startswith(f"{path}:2: expected ")
    report = ReadReport()
    lists = read(path, on_error="skip", report=report)
    assert (lists.ids, report.rows, report.skipped) == (["good", "last"], 2, 1)
    assert report.messages == [str(caught.value)]


BAD_PARSES = [
    (parses("x", (GOLD, GOLD[:-1])), r"a '\)' for every '\(' in candidate 2 of list 'x', char"),
    (parses("x", (GOLD.replace("is", "was"),)), r"'is' as word 2, as in.*1 of list 'x', found 'w"),
    (parses("x", ("(S1 (PRP it) (VBZ is))",)), r"'\.' as word 3.*found 'the end of the tree'"),
    (parses("x", tokens=["it", "is"]), r"'no more words' as word 3, .*candidate 1"),
    (parses("x", gold="(S1 (S it"), r"a '\)' for every '\(' in the gold tree of list 'x'"),
    (parses("x", gold="(S1 (S it))"), r"'is' as word 2, .* in the gold tree of list 'x'"),
    (parses("x", gold=1), r"a string as gold in list 'x'"),
    (parses("x", tokens="it is"), r"a list as tokens"),
    (parses("x", gold=None), r"a gold tree or counts of brackets in list 'x'"),
    (texts("x"), r"the field `tree` in candidate 1 of list 'x'"),
    (
        {"id": "x", "candidates": [{"tree": GOLD, "matched": 4, "gold_brackets": 3}]},
        r"counts that fit together.*found '4, 3, -'",
    ),
]


@pytest.mark.parametrize(("line", "message"), BAD_PARSES)
def test_bad_lists_of_parses(tmp_path, line, message):
    path = saved(tmp_path, parses("good"), line, parses("last"))
    with pytest.raises(InputError, match=message) as caught:
        list(read_lists(path))
    assert str(caught.value).startswith(f"{path}:2: expected ")
    report = ReadReport()
    lists = read(path, on_error="skip", report=report)
    assert (lists.ids, report.rows, report.skipped) == (["good", "last"], 2, 1)
    assert lists.counts.tolist() == [COUNTS[GOLD], COUNTS[FLAT]] * 2
    assert report.messages == [str(caught.value)]


def test_files_that_hold_no_lists(tmp_path):
    for content, message in [
        ("", "at least one list; the file is empty"),
        ("\n\n", "at least one list"),
        ("hello world\n", r":1: expected lists: "),
        ("0 ||| a b\n", r":1: expected ID \|\|\| words"),
        ('{"id": 1}\n', "the field `candidates` in list '1'"),
    ]:
        path = tmp_path / "a.jsonl"
        path.write_text(content)
        with pytest.raises(InputError, match=message):
            list(read_lists(path))
    path.write_text('{"id": 1}\n{"id": 2}\n')
    with pytest.raises(InputError, match="all 2 lists are bad and were skipped"):
        list(read_lists(path, on_error="skip"))
    path.write_bytes(b'{"id": "\xff", "candidates": [{}]}\n')
    with pytest.raises(InputError, match="UTF-8"):
        list(read_lists(path))
    for wrong in ({"format": "xml"}, {"dedup": "some"}, {"on_error": "?"}, {"block_lists": 0}):
        with pytest.raises(HopefearError, match=r"must be|at least 1"):
            read_lists(path, **wrong)


def test_the_format_is_known_behind_a_bad_first_line(tmp_path):
    path = saved(tmp_path, '{"id": ', parses("x"))
    lists = read(path, on_error="skip")
    assert lists.metric == "parseval"


def test_brackets_among_the_tokens_are_written_as_in_trees(tmp_path):
    tree = "(S1 (NP (-LRB- -LRB-) (NN a) (-RRB- -RRB-)))"
    path = saved(tmp_path, parses("x", (tree,), tokens=["(", "a", ")"], gold=tree))
    assert read(path).counts.tolist() == [[1, 1, 1]]


def test_blocks_hold_whole_lists_and_are_forgotten(tmp_path):
    path = saved(tmp_path, *(texts(str(k), candidate("a"), candidate("b")) for k in range(7)))
    sizes, alive = [], []
    for lists in read_lists(path, block_lists=3):
        sizes.append(len(lists))
        alive.append(weakref.ref(lists))
        del lists
        gc.collect()
        assert alive[-1]() is None
    assert sizes == [3, 3, 1]
    trees = saved(tmp_path, *(parses(str(k)) for k in range(4)), name="trees")
    one, two = read_lists(trees, block_lists=2)
    assert one.trees.symbols is two.trees.symbols
    assert np.array_equal(one.trees.rows.labels, two.trees.rows.labels)


def test_duplicates_while_reading(tmp_path):
    again = GOLD.replace("(S1 ", "(S1  ")
    path = saved(tmp_path, parses("x", (FLAT, GOLD, FLAT, again, FLAT)))
    assert read(path).texts == [FLAT, GOLD, again]
    assert read(path).scores.tolist() == [0.0, -1.0, -3.0]
    assert read(path).trees.rows.starts.tolist() == [0, 5, 12, 19]
    assert read(path, dedup="none").n_candidates == 5


CANDIDATES = st.lists(
    st.tuples(st.sampled_from(["", "a", "b", "c"]), st.integers(-2, 2)), min_size=1, max_size=6
)


@settings(max_examples=200, deadline=None)
@given(st.lists(CANDIDATES, min_size=1, max_size=4), st.sampled_from(["none", "first", "best"]))
def test_one_candidate_for_each_text(lists, policy):
    flat = [entry for entries in lists for entry in entries]
    n = len(flat)
    starts = np.concatenate([[0], np.cumsum([len(entries) for entries in lists])])
    block = CandidateLists(
        [str(i) for i in range(len(lists))],
        starts,
        [text for text, _ in flat],
        np.array([float(score) for _, score in flat]),
        costs=np.arange(n) / 8,
        counts=np.arange(3 * n).reshape(n, 3),
        sparse=NamedEntries(["f"], np.arange(n + 1), np.zeros(n, np.int32), np.arange(n) * 1.0),
    )
    wanted, sizes = [], []
    for begin, entries in zip(starts, lists, strict=False):
        kept = []
        for k, (text, score) in enumerate(entries):
            same = [(s, -j) for j, (t, s) in enumerate(entries) if t == text]
            first = min(-j for _, j in same) == k
            best = max(same) == (score, -k)
            if policy == "none" or not text or (first if policy == "first" else best):
                kept.append(begin + k)
        wanted += kept
        sizes.append(len(kept))
    found = deduplicated(block, policy)
    assert np.diff(found.starts).tolist() == sizes
    assert (found.costs * 8).tolist() == wanted
    assert found.counts[:, 0].tolist() == [3 * c for c in wanted]
    assert found.sparse.values.tolist() == wanted
    assert found.texts == [flat[c][0] for c in wanted]
    assert found.scores.tolist() == [flat[c][1] for c in wanted]


@pytest.mark.compiled
def test_real_lists():
    path = DATA / "ptb-nbest" / "test.jsonl.xz"
    if not path.exists():
        pytest.skip(f"no lists at {path}; set HOPEFEAR_DATA to a folder that holds ptb-nbest")
    report = ReadReport()
    blocks = list(read_lists(path, report=report, require_costs=True))
    assert (report.rows, report.skipped) == (518, 0)
    assert sum(lists.n_candidates for lists in blocks) == 25_855
    firsts = sum(lists.counts[lists.starts[:-1]].sum(axis=0) for lists in blocks)
    assert firsts.tolist() == [8252, 9560, 9644]
    last = blocks[-1]
    assert bracketed(last.trees, 7) == last.texts[7]


def test_lists_without_id_are_numbered(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    one = '{"candidates": [{"text": "a", "cost": 0}]}\n'
    path.write_text(one + "\n" + one + '{"id": "x", "candidates": [{"text": "b", "cost": 1}]}\n')
    assert next(read_lists(path)).ids == ["0", "1", "x"]
