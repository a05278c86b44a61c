"""Scores of trees beside the script of the CoNLL 2018 shared task."""

from __future__ import annotations

import io

import numpy as np
import pytest
from places import DATA
from udtools import udeval

from hopefear.data.treebank import Treebank, parse_treebank, read_treebank
from hopefear.metrics.dependencies import Dependencies, Trees

pytestmark = pytest.mark.interpreted

SCORES = {"uas": "UAS", "las_universal": "LAS", "clas": "CLAS", "mlas": "MLAS"}
HAND = """\
1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_
1\tde\tde\tADP\t_\t_\t3\tcase\t_\t_
2\tle\tle\tDET\t_\tDefinite=Def|Typo=Yes\t3\tdet:def\t_\t_
3\tchat\tchat\tNOUN\t_\tNumber=Sing\t5\tnsubj:pass\t_\t_
4\test\têtre\tAUX\t_\tMood=Ind\t5\taux:pass\t_\t_
4.1\tpas\tpas\tADV\t_\t_\t_\t_\t5:advmod\t_
5\tvu\tvoir\tVERB\t_\tVerbForm=Part\t0\troot\t_\t_
6\t.\t.\tPUNCT\t_\t_\t5\tpunct\t_\t_

1\tvite\tvite\tADV\t_\t_\t0\troot\t_\t_
2\t!\t!\tPUNCT\t_\t_\t1\tpunct\t_\t_

"""


def changed(bank: Treebank, share: float, seed: int) -> Trees:
    """Other trees of one root each, with some of the heads and relations of the bank."""
    rng, gold = np.random.default_rng(seed), Trees.of(bank)
    heads, relations = gold.heads.copy(), [gold.relations[k] for k in range(len(gold.heads))]
    names = sorted({*relations, "nsubj", "conj:and", "case", "det"} - {"root"})
    for a, b in zip(gold.starts[:-1], gold.starts[1:], strict=True):
        for k in range(a, b):
            if rng.random() > share or heads[k] == 0:
                continue
            relations[k] = str(rng.choice(names))
            head = int(rng.integers(1, b - a + 1))
            above = head
            while above and above != k - a + 1:
                above = heads[a + above - 1]
            if above == 0:  # no cycle
                heads[k] = head
    return gold._replace(heads=heads, relations=relations)


def conllu(bank: Treebank, trees: Trees) -> str:
    """Words alone: the script aligns them by their characters."""
    columns, lines = bank.sentences.columns, []
    for a, b in zip(trees.starts[:-1], trees.starts[1:], strict=True):
        for k in range(a, b):
            form, upos, feats = (columns[name][k] for name in ("form", "upos", "feats"))
            tree = (str(trees.heads[k]), trees.relations[k])
            lines.append("\t".join([str(k - a + 1), form, "_", upos, "_", feats, *tree, "_", "_"]))
        lines.append("")
    return "\n".join([*lines, ""])


def official(text: str):
    return udeval.load_conllu(io.StringIO(text), "", {"multiple_roots_okay": True})


@pytest.mark.parametrize("share", [0.0, 0.2, 0.9])
@pytest.mark.parametrize("source", ["by hand", pytest.param("ewt", marks=pytest.mark.compiled)])
def test_scores_are_those_of_the_official_script(source: str, share: float) -> None:
    if source == "by hand":
        bank = parse_treebank(HAND.encode(), "by hand")
    else:
        path = DATA / "ud_english_ewt" / "dev.conllu.gz"
        if not path.is_file():
            pytest.skip(f"no {path}; set HOPEFEAR_DATA to a folder with ud_english_ewt")
        bank = read_treebank(path).take(np.arange(300))
    output = changed(bank, share, seed=4)
    metric = Dependencies()
    ours = metric.scores(metric.total(Trees.of(bank), output))
    theirs = udeval.evaluate(official(conllu(bank, Trees.of(bank))), official(conllu(bank, output)))
    assert {ours_as: ours[ours_as] for ours_as in SCORES} == pytest.approx(
        {ours_as: 100.0 * theirs[name].f1 for ours_as, name in SCORES.items()}
    )
