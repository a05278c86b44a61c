"""Short sentences with trees, for tests that run uncompiled."""

from __future__ import annotations

import numpy as np
import pytest

from hopefear.data.sequences import Column, Sentences
from hopefear.data.treebank import Treebank, parse_treebank
from hopefear.features.arcs import templates
from hopefear.tasks import base
from hopefear.tasks.parse import pruning
from hopefear.tasks.parse.model import encoded
from hopefear.tasks.parse.prepare import prepare
from hopefear.tasks.parse.task import Parsing

WORDS = {
    "D": ("the", "a", "no"),
    "N": ("cat", "dog", "tree", "bird"),
    "V": ("saw", "ate", "left"),
    "A": ("old", "red"),
    "R": ("soon", "there"),
}
# Tags with heads and relations; in the last two arcs cross.
SHAPES = (
    ("D N V", "2 3 0", "det subj root"),
    ("N V N", "2 0 2", "subj root obj"),
    ("D A N V", "3 3 4 0", "det mod subj root"),
    ("N V D N", "2 0 4 2", "subj root det obj"),
    ("N V R", "2 0 2", "subj root mod"),
)
CROSSING = (
    ("R D N V", "4 4 2 0", "mod det subj root"),
    ("N R V A", "3 4 0 1", "subj mod root mod"),
)


FEW = {
    "arc": "h.tag m.tag / h.tag m.tag distance / m.word distance",
    "label": "m.tag / h.tag m.tag",
    "sibling": "s.tag m.tag",
    "grandparent": "g.tag m.tag",
}


@pytest.fixture(autouse=True, scope="module")
def quick():
    """Few templates for the set ``light`` and for pruning; a module imports this to have it so."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(templates.BUILT_IN, "light", FEW)
        patch.setattr(pruning, "TEMPLATES", templates.ArcTemplates.of(FEW))
        yield


@pytest.fixture(autouse=True, scope="module")
def quickest(quick):
    """Few templates for the set ``standard`` too; import it with the other."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(templates.BUILT_IN, "standard", FEW)
        yield


def small_treebank(n: int, seed: int = 0, crossing: float = 0.0) -> Treebank:
    """So many sentences of three or four words, a share of them with arcs that cross."""
    rng = np.random.default_rng(seed)
    words, tags, heads, relations, starts = [], [], [], [], [0]
    for _ in range(n):
        shapes = CROSSING if rng.random() < crossing else SHAPES
        kinds, above, names = shapes[rng.integers(len(shapes))]
        words += [str(rng.choice(WORDS[tag])) for tag in kinds.split()]
        tags += kinds.split()
        heads += [int(h) for h in above.split()]
        relations += names.split()
        starts.append(len(words))
    columns = {"form": Column.of(words), "upos": Column.of(tags), "xpos": Column.of(tags)}
    return Treebank.of(Sentences(np.array(starts), columns), np.array(heads), relations)


def written_treebank(n: int, seed: int = 0, nonprojective: float = 0.0) -> Treebank:
    """The same as a file of CoNLL-U, which can be written back."""
    bank, lines = small_treebank(n, seed, nonprojective), []
    columns = bank.sentences.columns
    for i in range(len(bank)):
        for m, k in enumerate(range(int(bank.starts[i]), int(bank.starts[i + 1])), 1):
            form, tag = columns["form"][k], columns["upos"][k]
            row = (m, form, form, tag, tag, "_", bank.heads[k], bank.relations[k], "_", "_")
            lines.append("\t".join(map(str, row)))
        lines.append("")
    return parse_treebank("\n".join([*lines, ""]).encode(), "small trees")


def dataset(bank, order=None, tree="auto", **options):
    """Trees as a learner sees them; options are those of ``Parser``."""
    return prepare(bank, {"order": order, "tree": tree, **options}).data


def held_out(data, bank):
    """Other trees as the model of this data will see them."""
    return encoded(bank, data.features, data.labels, data.kind, data.pruner).known(bank, 0)


def train(data, learner="mira", params=None, **common):
    """What a learner makes of the data."""
    return base.train(Parsing(data.kind), data, learner, params, **common)
