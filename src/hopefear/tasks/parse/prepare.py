"""Treebanks ready to be learned from: tags, kind of trees, features, arcs that are worth a look."""

from __future__ import annotations

import math
import tomllib
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hopefear.core.checks import check_at_least, check_one_of
from hopefear.data.sequences import Column, Sentences
from hopefear.data.tree_rows import TreeDataset, TreeKind
from hopefear.data.treebank import MISSING, TAGS, Treebank, projectivise
from hopefear.errors import DataWarning, HopefearError, OptionError
from hopefear.features.arcs.arc_map import ArcMap
from hopefear.features.arcs.templates import ArcTemplates
from hopefear.features.arcs.token_arcs import TokenArcs
from hopefear.features.token_ids import TokenIdSettings
from hopefear.metrics import Dependencies
from hopefear.storage import read_small
from hopefear.structures.tree.theta import STEP
from hopefear.tasks import TASKS, recipe
from hopefear.tasks.parse.model import ParseModel, encoded, with_heads_allowed
from hopefear.tasks.parse.pruning import HEADS, Pruner, plain_rows
from hopefear.tasks.parse.taggers import FOLDS, Taggers, has_any
from hopefear.tasks.parse.task import Parsing, judged
from hopefear.tasks.prepare import Options, Prepared, folds, held_out

DEFAULT_LEARNER = TASKS["parse"].learner
KINDS = ("auto", "projective", "nonprojective")
AUTO = "auto"
# Share of sentences with crossing arcs up to which trees without are the better model.
_FEW = 0.05
# Relations that training did not see, of which a warning names some.
_LISTED = 5
# What networks, which read words and tags, have no use for.
_OF_TEMPLATES = {"features": "standard", "hash_bits": None, "dictionary": False}


WORDS = ("form", "lemma", "upos", "xpos", "feats")
# Columns that Python objects bring, and what rows of strings mean, by their length.
_ROWS = {1: ("form",), 2: ("form", "xpos"), 5: WORDS}
# Parameters of the estimator that say how a treebank is read, and their usual values.
USUAL: Mapping[str, Any] = {
    "learner": DEFAULT_LEARNER,
    "params": None,
    "order": None,
    "tree": "auto",
    "heads": HEADS,
    "features": "standard",
    "hash_bits": None,
    "dictionary": False,
    "unlabelled": False,
    "tags": None,
    "tagger": None,
    "jackknife": FOLDS,
    "metric": None,
    "random_state": 1,
    "n_jobs": 1,
}


@dataclass(frozen=True, kw_only=True)
class PreparedTrees(Prepared):
    """Training trees as a learner sees them, and the way to see others like that.

    Parameters
    ----------
    options : mapping
        Parameters of the estimator.
    examples : Treebank, optional
        The trees as they were given.
    """

    task: Parsing
    data: TreeDataset  # its bank has the tags that are learned from
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    examples: Treebank | None = field(default=None, repr=False)

    def sizes(self) -> dict[str, Any]:
        data = self.data
        return {
            "sentences": len(data),
            "tokens": data.n_tokens,
            "features": data.features.size,
            "relations": len(data.labels),
        }

    def held_out(self, examples: Treebank | TreeDataset) -> TreeDataset:
        """Returns other trees as the model of this data will see them."""
        if isinstance(examples, TreeDataset):
            return self.encoded(examples.bank)
        warn_of_unknown(examples, self.data.labels)
        return self.encoded(self._tagged(examples))

    def split(self, fraction: float, seed: int) -> tuple[PreparedTrees, TreeDataset]:
        return self._parted(*held_out(len(self.data), fraction, seed, "sentences"))

    def folds(self, k: int, seed: int) -> Iterator[tuple[PreparedTrees, TreeDataset]]:
        return (self._parted(*parts) for parts in folds(len(self.data), k, seed))

    def _parted(self, rest: np.ndarray, part: np.ndarray) -> tuple[PreparedTrees, TreeDataset]:
        """Trees to learn from, pruned and tagged by these alone, and others as held out."""
        bank = self.data.bank if self.examples is None else self.examples
        prepared = prepare(bank.take(rest), self.options)
        return prepared, prepared.held_out(bank.take(part))

    def alone(self) -> PreparedTrees:
        return replace(self, examples=None)

    def encoded(self, bank: Treebank) -> TreeDataset:
        """Returns trees that have their tags in the features and relations of this data."""
        data = self.data
        return encoded(bank, data.features, data.labels, data.kind, data.pruner).known(bank, 0)

    def more(self, bank: Treebank) -> TreeDataset:
        """Returns more trees to learn from, in the features, relations and kind of trees of these.

        Arcs that cross are lifted where trees are projective. Heads that the pruner would leave
        out are put back, since they are right.
        """
        if unknown := _unknown(bank, self.data.labels):
            raise HopefearError(
                f"{bank.source}: the relation {min(unknown)!r} is not among those of the first "
                f"data; there are {', '.join(self.data.labels)}"
            )
        bank = self._tagged(bank)
        learned = _learnable(bank, self.data.kind)
        data = self.encoded(learned)
        rows = data.rows
        allowed = [
            {*rows.heads[rows.ptr[k] : rows.ptr[k + 1]].tolist(), head}
            for k, head in enumerate(learned.heads.tolist())
        ]
        lifted = int(np.count_nonzero(learned.heads != bank.heads))
        return with_heads_allowed(data, allowed).known(bank, lifted)

    def judge(
        self, model: ParseModel, test: TreeDataset, n_jobs: int = 1
    ) -> tuple[dict[str, float], np.ndarray]:
        codes, metric = model.decoder(n_jobs).predict(test.rows), self.tester()
        rows = metric.statistics(*judged(test.bank, codes, model.labels))
        return metric.scores(rows.sum(axis=0)), rows

    def tester(self) -> Dependencies:
        return Dependencies(bool(self.data.labels))

    def for_learner(self, name: str, params: Mapping[str, Any]) -> PreparedTrees:
        """Returns the same trees for another learner; networks read other inputs."""
        options = of_learner({**self.options, "learner": name, "params": params})
        if _inputs(options) == _inputs(of_learner(self.options)):
            return self
        data = _dataset(self.data.bank, options)
        return replace(self, task=replace(self.task, kind=data.kind), data=data, options=options)

    def _tagged(self, bank: Treebank) -> Treebank:
        return bank if self.task.taggers is None else self.task.taggers.tagged(bank)


def prepare(examples: Treebank, options: Options) -> PreparedTrees:
    """Prepares training trees for a learner.

    Parameters
    ----------
    examples : Treebank
        The trees.
    options : mapping
        Parameters of :class:`hopefear.Parser` by name; what is missing has its usual value. With
        ``shared`` they are for several learners, each of which takes those that are for it.

    Examples
    --------
    >>> from hopefear.data.grammar import synthetic_treebank
    >>> data = prepare(synthetic_treebank(5, seed=1), {"order": 1, "features": "light"}).data
    >>> len(data), data.kind.name
    (5, 'projective')
    """
    bank, options = examples, {**USUAL, **options}
    given, options = options, of_learner(options) if options.get("shared") else options
    inputs = _inputs(options)
    if isinstance(inputs, TokenIdSettings):
        for name, usual in _OF_TEMPLATES.items():
            if options[name] != usual:
                reason = (
                    f"is for templates: {options['learner']} reads words and tags; leave it out"
                )
                raise OptionError(name, options[name], reason)
    if len(bank) == 0:
        raise HopefearError(f"{bank.source}: there are no sentences to learn from")
    taggers, messages, tagger = None, list[str](), options["tagger"]
    if tagger is not None:
        if isinstance(tagger, str) and tagger == AUTO:
            names = _tags_read(bank, options["tags"], inputs)
            taggers = Taggers.new(bank, names, options["random_state"])
        else:
            taggers = Taggers.of(tagger)
        taggers, bank, messages = taggers.learned(bank, options["jackknife"], options["n_jobs"])
    data = _dataset(bank, options)
    arcs = f"{data.rows.heads.size / max(1, data.n_tokens):.1f} heads a word are looked at"
    messages.append(arcs)
    if data.lifted:
        messages.append(
            f"{data.lifted:,} arcs that cross others, in {int((~bank.projective).sum()):,} "
            "sentences, were lifted: trees are projective (--tree nonprojective keeps them)"
        )
    reading = {"format": bank.format, "column": data.features.columns[2]}
    return PreparedTrees(
        task=Parsing(data.kind, taggers),
        data=data,
        stop_on=options["metric"] or ("las" if data.labels else "uas"),
        reading=reading,
        messages=messages,
        options=given,
        examples=examples,
    )


def of_learner(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns options of several learners without those that are not for this one."""
    if isinstance(_inputs(options), TokenIdSettings):
        return {**options, **_OF_TEMPLATES, "order": None}
    return options


def _inputs(options: Mapping[str, Any]) -> Any:
    """Returns templates, or what a network reads."""
    params = options["params"] or {}
    return recipe(options["learner"], "parse").inputs(params, options["features"])


def _dataset(bank: Treebank, options: Mapping[str, Any]) -> TreeDataset:
    """Returns a treebank as the learner of these options sees it."""
    inputs = _inputs(options)
    network = isinstance(inputs, TokenIdSettings)
    order = options["order"] or (1 if network else 2)
    if network and order != 1:
        raise HopefearError("a network scores arcs one by one; use order 1, or leave it out")
    heads = options["heads"]
    check_choice(order, options["tree"], heads)
    crossing = float((~bank.projective).mean())
    kind = kind_of(order, options["tree"], crossing, bool((bank.roots == 1).all()))
    learned = _learnable(bank, kind)
    lifted = int(np.count_nonzero(learned.heads != bank.heads))
    names = learned.relations
    used = np.unique(names.ids).tolist() if not options["unlabelled"] else []
    labels = relations_of(names.strings[k] for k in used)
    columns = columns_of(bank, options["tags"])
    if network:
        words = TokenArcs.fit(inputs, learned.sentences, columns)
        return encoded(learned, words, labels, kind).known(bank, lifted)
    bits = options["hash_bits"]
    mapping = ArcMap.fit(
        learned.sentences,
        learned.heads,
        templates_of(inputs),
        columns,
        bits or bits_for(bank.n_tokens, order),
        max(8, bits - 2) if bits else bits_for(bank.n_tokens, 1) - 2,
    )
    data = encoded(learned, mapping, labels, kind)
    if options["dictionary"]:
        mapping = mapping.with_dictionary(data.rows, learned.heads, order, row_blocks(labels))
        data = encoded(learned, mapping, labels, kind)
    if heads > 0:
        rows = plain_rows(data.rows, learned.heads)
        plain = TreeDataset(rows, (), mapping, bank.source, kind)
        pruner = Pruner.fit(plain, heads, options["random_state"])
        data = pruner.chosen(data, learned.heads, options["n_jobs"])
    return data.known(bank, lifted)


def _learnable(bank: Treebank, kind: TreeKind) -> Treebank:
    """Returns the trees without the arcs that this kind of trees has not."""
    if not kind.projective or bank.projective.all():
        return bank
    return bank.with_heads(projectivise(bank.starts, bank.heads))


def check_choice(order: int, tree: str, heads: int) -> None:
    """Refuses trees that :func:`prepare` cannot make."""
    check_one_of("tree", tree, KINDS)
    check_at_least("heads", heads, 2 if order == 2 else 0)
    if order not in (1, 2):
        raise HopefearError(f"order must be 1 or 2, not {order!r}")


def kind_of(order: int, tree: str, crossing: float, single: bool) -> TreeKind:
    """Returns the kind of trees of data of whose sentences a share has arcs that cross."""
    projective = tree == "projective" or (tree == "auto" and crossing <= _FEW)
    return TreeKind(order, projective, single)


def relations_of(names: Iterable[str]) -> tuple[str, ...]:
    """Returns the relations in the order of their numbers; none where the treebank has none.

    >>> relations_of(["obj", "nsubj"]), relations_of(["_"])
    (('nsubj', 'obj'), ())
    """
    labels = tuple(sorted(names))
    return () if labels == (MISSING,) else labels


def row_blocks(labels: Sequence[str]) -> int:
    """Returns the places of rows that the relations of one feature fill."""
    return max(1, -(-len(labels) // STEP))


def templates_of(features: str | ArcTemplates) -> ArcTemplates:
    """Returns a built-in set, or the templates of a TOML file: an array of texts for each family.

    >>> templates_of("light").sibling
    ()
    """
    if not isinstance(features, str):
        return features
    if not features.endswith(".toml"):
        return ArcTemplates.named(features)
    try:
        with open(features, "rb") as file:
            families = tomllib.loads(read_small(file, features).decode())
        return ArcTemplates.of(families)
    except (OSError, ValueError, TypeError, HopefearError) as error:
        raise HopefearError(f"cannot read templates of arcs from {features}: {error}") from error


def bits_for(words: int, order: int) -> int:
    """Returns the bits of the table of features that a number of words needs.

    >>> bits_for(40_000, 1), bits_for(40_000, 2), bits_for(100, 1)
    (21, 22, 16)
    """
    return min(max(math.ceil(math.log2(max(1, words))) + 4 + order, 15 + order), 21 + order)


def columns_of(bank: Treebank, tags: str | None = None) -> tuple[str, ...]:
    """Returns the columns that templates call word, lemma, tag, coarse and morph; "" where empty.

    >>> from hopefear.data.treebank import parse_treebank
    >>> columns_of(parse_treebank(b"Wait\\tVB\\t0\\n"))
    ('form', '', 'xpos', 'upos', '')
    """
    columns = bank.sentences.columns
    if tags is not None and tags not in columns:
        raise HopefearError(f"{bank.source} has no column {tags!r}; there are {', '.join(columns)}")
    fine = tags or next((name for name in ("xpos", "upos") if has_any(columns[name])), "xpos")
    coarse = fine if tags or not has_any(columns["upos"]) else "upos"
    lemma, morph = (name if has_any(columns[name]) else "" for name in ("lemma", "feats"))
    return ("form", lemma, fine, coarse, morph)


def _tags_read(bank: Treebank, tags: str | None, inputs: Any) -> list[str]:
    """Returns the columns of tags that the features look at, and that the treebank has."""
    columns = bank.sentences.columns
    _, _, fine, coarse, morph = columns_of(bank, tags)
    if not isinstance(inputs, TokenIdSettings) and "morph" not in str(templates_of(inputs)):
        morph = ""
    return [name for name in TAGS if name in (fine, coarse, morph) and has_any(columns[name])]


def _unknown(bank: Treebank, labels: Sequence[str]) -> dict[str, int]:
    """Returns the relations that are not among ``labels``, and their numbers of words."""
    counts = np.bincount(bank.relations.ids, minlength=len(bank.relations.strings)).tolist()
    names = zip(bank.relations.strings, counts, strict=True)
    return {name: n for name, n in names if n and labels and name not in labels}


def warn_of_unknown(bank: Treebank, labels: Sequence[str]) -> int:
    """Warns of relations that training did not see; returns the number of words that have one."""
    unknown = _unknown(bank, labels)
    if unknown:
        examples = ", ".join(list(unknown)[:_LISTED]) + (", …" if len(unknown) > _LISTED else "")
        warnings.warn(
            f"{bank.source}: {sum(unknown.values()):,} words have relations that training did not "
            f"see ({examples}); they count as mistakes",
            DataWarning,
            stacklevel=3,
        )
    return sum(unknown.values())


def recall_of(data: TreeDataset) -> float:
    """Returns the percentage of the words whose head is among those that are looked at."""
    rows = data.rows
    owners = np.repeat(np.arange(rows.labels.size), np.diff(rows.ptr))
    return 100.0 * np.count_nonzero(rows.heads == data.bank.heads[owners]) / max(1, data.n_tokens)


def sentences_of(X: Any) -> Sentences:
    """Lists of words as columns.

    >>> sentences_of([["It", "rains"]]).columns["form"].texts()
    ['It', 'rains']
    """
    table: dict[str, list[str]] = {name: [] for name in WORDS}
    starts = [0]
    for i, sentence in enumerate(X):
        if isinstance(sentence, str | bytes | Mapping):
            raise HopefearError(
                f"X[{i}] is {sentence!r:.40}, not a list of words; a sentence is a list"
            )
        for word in sentence:
            row = _word(word, i)
            for name in WORDS:
                table[name].append(row.get(name) or MISSING)
        starts.append(len(table["form"]))
    columns = {name: Column.of(texts) for name, texts in table.items()}
    return Sentences(np.array(starts, np.int64), columns, "X")


def _word(word: Any, i: int) -> Mapping[str, str]:
    if isinstance(word, str):
        return {"form": word}
    if isinstance(word, Mapping):
        unknown = sorted(map(str, set(word) - set(WORDS)))
        if unknown or not word.get("form"):
            raise HopefearError(
                f"X[{i}]: the keys of a word are {', '.join(WORDS)}, form among them, not "
                f"{sorted(map(str, word))}"
            )
        row = dict(word)
    elif isinstance(word, tuple | list) and len(word) in _ROWS:
        row = dict(zip(_ROWS[len(word)], word, strict=True))
    else:
        raise HopefearError(
            f"X[{i}]: a word is a string, a pair of word and tag, a row of {', '.join(WORDS)}, "
            f"or a dict, not {word!r:.60}"
        )
    if not all(value is None or isinstance(value, str) for value in row.values()):
        raise HopefearError(f"X[{i}]: a word consists of strings, not of {word!r:.60}")
    return row


def trees_of(y: Any, starts: np.ndarray) -> tuple[np.ndarray, list[str] | None]:
    """Heads of all words, and relations where there are any.

    >>> trees_of([[(2, "expl"), (0, "root")]], np.array([0, 2]))[1]
    ['expl', 'root']
    >>> trees_of([([2, 0], ["expl", "root"])], np.array([0, 2]))[0].tolist()
    [2, 0]
    """
    trees, lengths = list(y), np.diff(starts).tolist()
    if len(trees) != len(lengths):
        raise HopefearError(f"{len(lengths)} sentences need as many trees, not {len(trees)}")
    heads: list[Any] = []
    relations: list[Any] = []
    for i, (tree, n) in enumerate(zip(trees, lengths, strict=True)):
        some = list(tree)
        if len(some) == 2 and all(np.ndim(part) == 1 for part in some) and not _is_arc(some[0]):
            some = list(zip(*some, strict=True))
        if len(some) != n:
            raise HopefearError(f"y[{i}] has {len(some)} words, and X[{i}] has {n}")
        if all(_is_arc(arc) for arc in some) and some:
            heads += [arc[0] for arc in some]
            relations += [arc[1] for arc in some]
        else:
            heads += some
    if relations and len(relations) < len(heads):
        raise HopefearError("some trees of y have relations and some have none; give all or none")
    if not all(isinstance(h, int | np.integer) for h in heads):
        raise HopefearError(
            "heads in y are whole numbers: that of the word, or 0 for the root; relations beside "
            "them are strings"
        )
    return np.array(heads, np.int64), relations or None


def _is_arc(arc: Any) -> bool:
    return isinstance(arc, tuple | list) and len(arc) == 2 and isinstance(arc[1], str)
