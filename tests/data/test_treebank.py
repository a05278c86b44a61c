"""Treebanks: three formats into one shape, bad trees refused by line, every byte back out."""

from __future__ import annotations

import gzip
import io
import itertools
import random
import sys
from pathlib import Path

import numpy as np
import pytest
from places import DATA

from hopefear.data.files import ReadReport
from hopefear.data.grammar import synthetic_treebank
from hopefear.data.sequences import Column, Sentences
from hopefear.data.sources import load
from hopefear.data.treebank import (
    Treebank,
    faults,
    parse_treebank,
    projectivise,
    read_treebank,
    with_trees,
    write_trees,
)
from hopefear.errors import HopefearError, InputError

pytestmark = pytest.mark.interpreted


def row(number: int | str, head: int | str, deprel: str = "dep", **more: str) -> str:
    names = ("form", "lemma", "upos", "xpos", "feats")
    fields = [more.get(name, "w" if name == "form" else "_") for name in names]
    tail = [more.get("deps", "_"), more.get("misc", "_")]
    return "\t".join([str(number), *fields, str(head), deprel, *tail])


def conll(*sentences: list[str]) -> bytes:
    return "".join("".join(line + "\n" for line in lines) + "\n" for lines in sentences).encode()


UNIVERSAL = conll(
    [
        "# sent_id = 1",
        row("1-2", "_", "_", form="vámonos", misc="SpaceAfter=No"),
        row(1, 0, "root", form="vamos", upos="VERB", feats="Mood=Imp|Number=Plur"),
        row(2, 1, "obj:x", form="nos", upos="PRON"),
        row("2.1", "_", "_", form="ya", deps="1:advmod"),
        row(3, 1, "punct", form=".", upos="PUNCT", deps="1:punct"),
    ],
    ["#", row(1, 0, "root", form="# no")],
)
SHARED_TASK = conll(
    [
        row(1, 2, "_", form="Las", lemma="el", upos="d", xpos="da", feats="gen=f|num=p", deps="2"),
        row(2, 0, "SUJ", form="reservas", lemma="reserva", upos="n", xpos="nc", deps="9"),
    ]
)
FEW = b"the\tDT\t2\n#\t#\t0\n\n# a comment\nGo\tVB\t0\n"


def test_conllu_keeps_words_and_skips_the_rest() -> None:
    bank = parse_treebank(UNIVERSAL)
    assert bank.format == "conllu" and len(bank) == 2
    columns = bank.sentences.columns
    assert list(columns) == ["form", "lemma", "upos", "xpos", "feats", "head", "deprel"]
    assert columns["word"].texts() == ["vamos", "nos", ".", "# no"]
    assert columns["cpos"] is columns["upos"] and columns["pos"] is columns["xpos"]
    assert bank.heads.tolist() == [0, 1, 1, 0] and bank.heads.dtype == np.int32
    assert not bank.heads.flags.writeable
    assert bank.relations.texts() == ["root", "obj:x", "punct", "root"]


def test_shared_tasks_of_2006_and_2007_with_ten_or_eight_columns() -> None:
    bank = parse_treebank(SHARED_TASK)
    assert bank.format == "conllx"
    assert bank.sentences.columns["cpos"].texts() == ["d", "n"]
    assert bank.relations.texts() == ["_", "SUJ"]
    short = b"".join(b"\t".join(line.split(b"\t")[:8]) + b"\n" for line in SHARED_TASK.splitlines())
    eight = parse_treebank(short)
    assert eight.format == "conllx" and eight.heads.tolist() == [2, 0]
    assert eight.digest == bank.digest


@pytest.mark.parametrize(
    ("lines", "name", "format"),
    [
        ([row(1, 0, upos="IZE")], "a.conll", "conllx"),
        ([row(1, 0, upos="IZE")], "a.conllu.gz", "conllu"),
        (["# c", row(1, 0, upos="IZE")], "a", "conllu"),
        ([row("0.1", "_"), row(1, 0, upos="IZE")], "a", "conllu"),
        ([row(1, 0, upos="NOUN")], "a", "conllu"),
        ([row(1, 0, upos="NOUN", deps="0")], "a", "conllx"),
        ([row(1, 0, upos="NOUN", deps="0:root")], "a", "conllu"),
        ([row(1, 0)], "a", "conllu"),
    ],
)
def test_formats_are_told_apart(lines: list[str], name: str, format: str) -> None:
    assert parse_treebank(conll(lines), name).format == format


def test_three_columns_where_a_word_may_be_a_hash() -> None:
    bank = parse_treebank(FEW)
    assert bank.format == "columns"
    columns = bank.sentences.columns
    assert columns["form"].texts() == ["the", "#", "Go"]
    assert columns["upos"].texts() == columns["xpos"].texts() == ["DT", "#", "VB"]
    assert columns["lemma"].texts() == ["_"] * 3 == bank.relations.texts()
    assert parse_treebank(b"#\t#\t0\n").sentences.columns["form"].texts() == ["#"]
    labelled = parse_treebank(b"the\tDT\t2\tdet\ncat\tNN\t0\troot\n")
    assert labelled.relations.texts() == ["det", "root"]


@pytest.mark.parametrize(
    ("rows", "line", "words"),
    [
        ([row(1, 2), row(2, 1)], 1, "heads that make a tree; words 1, 2 form a cycle"),
        ([row(1, 2), row(2, 3), row(3, 4), row(4, 3)], 3, "words 3, 4 form a cycle"),
        ([row(1, 0), row(2, 3)], 2, "a head from 0 (the root) to 2, found '3'"),
        ([row(1, 0), row(2, 2)], 2, "; 2 is the word itself"),
        ([row(1, 0), row(2, "_")], 2, "found '_'"),
        ([row(1, 0), row(2, "-1")], 2, "found '-1'"),
        ([row(1, 0), row(2, "1.0")], 2, "found '1.0'"),
        ([row(1, 0), row(2, "9" * 30)], 2, "a head from 0 (the root) to 2"),
        ([row(1, 0), row(3, 1)], 2, "the id 2, found '3'"),
        ([row(1, 0), row(2, 1).replace("\t", " ")], 2, "10 columns separated by tabs"),
        ([row("1-3", "_"), row(1, 0), row(2, 1)], 1, "a multiword token that spans words"),
    ],
)
def test_what_is_no_tree_is_refused_with_its_line_or_skipped(
    rows: list[str], line: int, words: str
) -> None:
    good = [row(1, 0, "root"), row(2, 1)]
    with pytest.raises(InputError) as error:
        parse_treebank(conll(good, rows), "bank")
    assert f"bank:{3 + line}: expected " in str(error.value) and words in str(error.value)
    report = ReadReport()
    bank = parse_treebank(conll(good, rows, good), "bank", on_error="skip", report=report)
    assert len(bank) == report.rows == 2 and report.skipped == 1
    assert words in report.messages[0]
    assert bank.sentences.lines is not None
    assert bank.sentences.lines.tolist() == [1, 2, len(rows) + 5, len(rows) + 6]
    with pytest.raises(InputError, match="lines with tokens are bad and were skipped"):
        parse_treebank(conll([row(1, 1)]), "bank", on_error="skip")


def test_a_first_line_without_tabs_tells_what_is_read() -> None:
    text = conll([row(1, 0).replace("\t", " ")], [row(1, 0)])
    with pytest.raises(InputError, match=r"memory:1: expected 10 or 8 columns \(CoNLL\) or 3"):
        parse_treebank(text)
    assert len(parse_treebank(text, on_error="skip")) == 1


@pytest.mark.parametrize("text", [b"", b"\n\n", b"# only\n# comments\n"])
def test_a_file_without_words_is_refused(text: bytes) -> None:
    with pytest.raises(InputError):
        parse_treebank(text)


def test_several_roots_and_single_words_are_trees() -> None:
    bank = parse_treebank(conll([row(1, 0), row(2, 0)], [row(1, 0)]))
    assert bank.roots.tolist() == [2, 1] and bank.projective.all()
    assert bank.describe() == "2 sentences, 3 words; 1 with several roots"


def test_heads_need_not_be_there_for_prediction() -> None:
    text = conll([row(1, "_", "_"), row(2, "?", "_")])
    with pytest.raises(InputError):
        parse_treebank(text)
    bank = parse_treebank(text, heads=False)
    assert bank.heads.tolist() == [-1, -1] and "projective" not in bank.describe()
    assert parse_treebank(b"a\tX\nb\tY\n", heads=False).format == "columns"
    with pytest.raises(InputError, match="separated by tabs"):
        parse_treebank(b"a\tX\nb\tY\n")


@pytest.mark.parametrize("text", [UNIVERSAL, SHARED_TASK, FEW])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_files_come_back_byte_for_byte(text: bytes, end: bytes, mark: bytes, tmp_path) -> None:
    text = mark + text.replace(b"\n", end)
    bank = parse_treebank(text)
    out = tmp_path / "out"
    write_trees(out, bank, bank.heads, None if bank.format == "columns" else bank.relations)
    assert out.read_bytes() == text


def test_heads_and_relations_are_replaced_and_nothing_else(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_trees(out, parse_treebank(UNIVERSAL), [2, 0, 2, 0], ["a", "b", "c", "d"])
    again = parse_treebank(out.read_bytes())
    assert again.heads.tolist() == [2, 0, 2, 0]
    assert again.relations.texts() == ["a", "b", "c", "d"]
    changed = out.read_bytes().splitlines()
    for old, new in zip(UNIVERSAL.splitlines(), changed, strict=True):
        one, two = old.split(b"\t"), new.split(b"\t")
        assert one[:6] == two[:6] and one[8:] == two[8:]
    write_trees(out, parse_treebank(UNIVERSAL), [2, 0, 2, 0])
    assert parse_treebank(out.read_bytes()).relations.texts() == ["_"] * 4
    write_trees(out, parse_treebank(FEW), [0, 1, 0], ["a", "b", "c"], comments=[["x"], []])
    lines = ["# x", "the\tDT\t0\ta", "#\t#\t1\tb", "", "# a comment", "Go\tVB\t0\tc", ""]
    assert out.read_bytes().decode().split("\n") == lines
    write_trees(out, parse_treebank(FEW), [0, 1, 0])
    assert out.read_bytes() == FEW.replace(b"2\n", b"0\n").replace(b"#\t0", b"#\t1")


def test_writing_to_standard_output_and_from_memory(monkeypatch, tmp_path: Path) -> None:
    class Out(io.StringIO):
        buffer = io.BytesIO()

    monkeypatch.setattr(sys, "stdout", Out())
    bank = parse_treebank(FEW)
    write_trees("-", bank, bank.heads)
    assert Out.buffer.getvalue() == FEW
    words = Sentences(np.array([0, 1]), {"word": Column.of(["a"])})
    with pytest.raises(HopefearError, match="no file"):
        write_trees(tmp_path / "x", Treebank.of(words, [0], ["root"]), [0])
    assert not (tmp_path / "x").exists()


def test_skipped_sentences_are_written_as_they_were(tmp_path: Path) -> None:
    text = conll([row(1, 7)], [row(1, 0, "root")])
    bank = parse_treebank(text, on_error="skip")
    write_trees(tmp_path / "out", bank, [0], ["other"])
    assert (tmp_path / "out").read_bytes() == text.replace(b"root", b"other")


def test_packed_files_and_other_names(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu.gz"
    path.write_bytes(gzip.compress(UNIVERSAL))
    assert read_treebank(path).digest == parse_treebank(UNIVERSAL).digest
    assert read_treebank(path).source == str(path)


def test_some_sentences(tmp_path: Path) -> None:
    bank = parse_treebank(UNIVERSAL).take([1, 0])
    assert bank.heads.tolist() == [0, 0, 1, 1] and bank.starts.tolist() == [0, 1, 4]
    assert bank.relations.texts() == ["root", "root", "obj:x", "punct"]
    assert bank.digest != parse_treebank(UNIVERSAL).digest == bank.take([1, 0]).digest
    write_trees(tmp_path / "out", bank, bank.heads, bank.relations)
    assert (tmp_path / "out").read_bytes() == UNIVERSAL


def test_trees_in_memory_are_checked() -> None:
    words = Sentences(np.array([0, 2]), {"word": Column.of(["a", "b"])})
    bank = Treebank.of(words, [0, 1], ["root", "x"])
    assert bank.sentences.columns["form"].texts() == ["a", "b"]
    assert bank.sentences.columns["head"].texts() == ["0", "1"]
    for heads in ([2, 1], [0, 3], [0, -1], [0.0, 1.0], [0]):
        with pytest.raises(HopefearError):
            Treebank.of(words, heads, ["root", "x"])


def trees(n: int) -> list[tuple[int, ...]]:
    """All heads of n words that make a tree, by walking up from each word."""
    result = []
    for heads in itertools.product(range(n + 1), repeat=n):
        for m in range(1, n + 1):
            for _ in range(n):
                m = heads[m - 1] if m else 0
            if m:
                break
        else:
            result.append(heads)
    return result


def crosses(heads) -> bool:
    arcs = [sorted((h, m)) for m, h in enumerate(heads, 1)]
    return any(a < c < b < d for a, b in arcs for c, d in arcs)


def test_cycles_and_projectivity_agree_with_all_small_trees() -> None:
    for n in range(1, 5):
        good = set(trees(n))
        assert len(good) == (n + 1) ** (n - 1)
        for heads in itertools.product(range(n + 1), repeat=n):
            assert (heads in good) == (not list(faults(np.array([0, n]), np.array(heads))))
        for heads in good:
            bank = Treebank.of(
                Sentences(np.array([0, n]), {"word": Column.of(["w"] * n)}), heads, ["x"] * n
            )
            assert bool(bank.projective[0]) == (not crosses(heads))


def test_lifting_gives_projective_trees_and_leaves_those_that_are() -> None:
    rng = np.random.default_rng(3)
    for _ in range(100):
        n = int(rng.integers(1, 12))
        order = rng.permutation(n) + 1
        heads = np.zeros(n, np.int32)
        for k, m in enumerate(order[1:], 1):
            heads[m - 1] = order[rng.integers(k)] if rng.random() < 0.9 else 0
        starts = np.array([0, n])
        lifted = projectivise(starts, heads)
        assert not crosses(lifted) and not list(faults(starts, lifted))
        if not crosses(heads):
            assert (lifted == heads).all()
        for m in np.flatnonzero(lifted != heads) + 1:  # the new head is an ancestor
            h = int(heads[m - 1])
            while h and h != lifted[m - 1]:
                h = int(heads[h - 1])
            assert h == lifted[m - 1]


def test_the_shortest_arc_is_lifted_first() -> None:
    # 2 -> 4 and 1 -> 3 cross; both have length 2, so the left one goes.
    assert projectivise(np.array([0, 4]), np.array([0, 1, 1, 2])).tolist() == [0, 1, 1, 1]
    bank = parse_treebank(conll([row(1, 0), row(2, 1), row(3, 1), row(4, 2)]))
    lifted = bank.with_heads(projectivise(bank.starts, bank.heads))
    assert lifted.projective.all() and lifted.sentences.columns["head"].texts()[3] == "1"


PIECES = [
    *(b"\n", b"\t", b" ", b"\r\n", b"\0", b"\xff", b"\xc3", b"\xef\xbb\xbf", b"#", b"# ", b"_"),
    *(b"-", b".", b"0", b"1", b"1-2", b"3.1", b"-1", b"999999999999", b"1e9", b"\n\n", b"|"),
]


def test_damaged_treebanks_are_read_or_refused(tmp_path: Path) -> None:
    rng = random.Random("trees")
    for _ in range(300):
        data = rng.choice([UNIVERSAL, SHARED_TASK, FEW, UNIVERSAL + UNIVERSAL])
        for _ in range(rng.randint(0, 4)):
            a = rng.randint(0, len(data))
            b = rng.choice([a, min(len(data), a + rng.randint(0, 9))])
            data = data[:a] + rng.choice([b"", rng.choice(PIECES), rng.randbytes(2)]) + data[b:]
        for heads, on_error in ((True, "raise"), (True, "skip"), (False, "skip")):
            report = ReadReport()
            try:
                bank = parse_treebank(data, heads=heads, on_error=on_error, report=report)
            except HopefearError:
                continue
            assert len(bank) == report.rows > 0, data
            assert len(bank.heads) == len(bank.relations.ids) == bank.n_tokens, data
            if heads:
                assert not list(faults(bank.starts, bank.heads)), data
                labelled = bank.file is not None and "deprel" in bank.file.sentences.columns
                if any("\r" in text for text in bank.relations.strings):
                    continue  # no line can hold it, so writing is refused
                out = tmp_path / "out"
                write_trees(out, bank, bank.heads, bank.relations if labelled else None)
                again = parse_treebank(out.read_bytes(), on_error=on_error)
                assert again.digest == bank.digest, data


def test_generated_trees_are_trees_and_repeat() -> None:
    bank = synthetic_treebank(60, seed=2)
    assert bank.digest == synthetic_treebank(60, seed=2).digest
    assert bank.digest != synthetic_treebank(60, seed=3).digest
    assert bank.format == "conllu" and bank.projective.all() and (bank.roots == 1).all()
    assert np.diff(bank.starts).max() > 60 and len(bank.relations.strings) > 10
    assert {"nsubj", "obj", "obl", "nmod:poss", "ccomp", "punct"} <= set(bank.relations.strings)
    crossing = synthetic_treebank(30, nonprojective=1.0)
    assert not crossing.projective.any()
    with pytest.raises(HopefearError, match="nonprojective from 0 to 1"):
        synthetic_treebank(3, nonprojective=2.0)


COUNTS = {
    "conll2007/basque.train.conll.gz": ("conllx", 2595, 40032, 11653, 23, 60, 33, 669, 1007),
    "conll2007/basque.test.conll.gz": ("conllx", 580, 10096, 3771, 23, 55, 30, 159, 200),
    "conll2007/spanish.train.conll.gz": ("conllx", 2949, 75822, 14851, 15, 47, 21, 52, 0),
    "conll2007/spanish.test.conll.gz": ("conllx", 563, 19206, 4906, 13, 41, 20, 8, 0),
    "ud_english_ewt/train.conllu.gz": ("conllu", 12544, 204577, 19674, 17, 49, 51, 288, 0),
    "ud_english_ewt/dev.conllu.gz": ("conllu", 2001, 25147, 5494, 17, 49, 49, 31, 0),
    "ud_english_ewt/test.conllu.gz": ("conllu", 2077, 25094, 5629, 17, 48, 49, 26, 0),
    "ptb_sample/train.dp.gz": ("columns", 2967, 71633, None, 45, 45, 1, 0, 0),
    "ptb_sample/dev.dp.gz": ("columns", 389, 9182, None, 40, 40, 1, 0, 0),
    "ptb_sample/test.dp.gz": ("columns", 558, 13269, None, 40, 40, 1, 0, 0),
}


@pytest.mark.compiled
@pytest.mark.parametrize("name", COUNTS)
def test_treebanks_of_the_reproductions(name: str, tmp_path: Path) -> None:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"no {name}; set HOPEFEAR_DATA")
    bank = read_treebank(path)
    format, sentences, words, types, coarse, fine, relations, crossing, several = COUNTS[name]
    columns = bank.sentences.columns
    assert (bank.format, len(bank), bank.n_tokens) == (format, sentences, words)
    assert types is None or len(columns["form"].strings) == types
    assert (len(columns["upos"].strings), len(columns["xpos"].strings)) == (coarse, fine)
    assert len(bank.relations.strings) == relations
    assert (~bank.projective).sum() == crossing and (bank.roots > 1).sum() == several
    labels = None if format == "columns" else bank.relations
    write_trees(tmp_path / "out", bank, bank.heads, labels)
    assert (tmp_path / "out").read_bytes() == load(path)


PLUS = (
    b"# global.columns = ID FORM DEPREL HEAD X\n1-2\tab\t_\t_\t_\n"
    b"1\ta\tdet\t2\tu\n2\tb\troot\t0\tv\n\n"
)


def test_conllu_plus_is_a_treebank() -> None:
    bank = parse_treebank(PLUS + PLUS)
    assert (bank.format, bank.heads.tolist()) == ("conllu", [2, 0, 2, 0])
    assert bank.relations.texts()[:2] == ["det", "root"]
    assert b"".join(with_trees(bank, [0, 1, 0, 1], ["root", "x"] * 2)).split(b"\n")[2:4] == [
        b"1\ta\troot\t0\tu",
        b"2\tb\tx\t1\tv",
    ]
    bare = PLUS.replace(b"HEAD", b"_", 1)
    with pytest.raises(InputError, match=r"memory: expected a column HEAD in global\.columns"):
        parse_treebank(bare)
    assert parse_treebank(bare, heads=False).n_tokens == 2
