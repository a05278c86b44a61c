"""The task ``parse``: from a treebank and the name of a learner to a model."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hopefear.core.checks import check_at_least, check_one_of
from hopefear.core.learner import Learner
from hopefear.data.labels import check_blanks
from hopefear.data.sequences import Column
from hopefear.data.tree_rows import TreeDataset, TreeKind
from hopefear.data.treebank import MISSING, Treebank, projectivise
from hopefear.errors import HopefearError
from hopefear.features.arcs.arc_map import ArcMap
from hopefear.features.arcs.templates import ArcTemplates
from hopefear.features.arcs.token_arcs import TokenArcs
from hopefear.features.token_ids import TokenIdSettings
from hopefear.metrics import Dependencies, Trees
from hopefear.storage import read_small
from hopefear.structures.tree.theta import STEP
from hopefear.structures.tree.tree import Tree
from hopefear.tasks import TASKS, base
from hopefear.tasks.base import Task, Trained, best_of
from hopefear.tasks.parse.model import ParseModel, encoded, structure_of, with_heads_allowed
from hopefear.tasks.parse.pruning import HEADS, Pruner, plain_rows
from hopefear.training.decoders.trees import TreeDecoder
from hopefear.training.predictors import Predictor

DEFAULT_LEARNER = TASKS["parse"].learner
EPOCHS = 10
KINDS = ("auto", "projective", "nonprojective")
# Share of sentences with crossing arcs up to which trees without are the better model.
_FEW = 0.05
# Sentences that a temperature is fitted on, at most.
_FITTED_ON = 100


@dataclass(frozen=True)
class Parsing(Task):
    """Dependency trees of the kind that the data has been prepared for."""

    name: ClassVar[str] = "parse"
    epochs: ClassVar[int] = EPOCHS
    kind: TreeKind = TreeKind()  # noqa: RUF009 - frozen

    def check(self, data: TreeDataset, dev: TreeDataset | None) -> None:
        if data.n_tokens == 0:
            raise HopefearError(f"{data.source}: there are no words to learn from")
        if data.rows.labels.min() < 0:
            raise HopefearError(
                f"{data.source}: word {int(np.argmin(data.rows.labels)) + 1} has no head; every "
                "word of the training data needs one"
            )
        check_blanks(data.source, data.labels)
        if dev is not None and dev.features is not data.features:
            raise HopefearError(f"{dev.source}: encode held-out trees with those of training")
        if data.kind != self.kind:
            raise HopefearError(f"{data.source} is prepared for {data.kind}, not for {self.kind}")

    def structure(self, data: TreeDataset) -> Tree:
        return structure_of(data.features, data.labels, self.kind)

    def check_together(self, structure: Tree, learner: Any, data: TreeDataset) -> None:
        network = hasattr(learner, "settings")
        if network != (data.features.kind == TokenArcs.kind):
            raise HopefearError(
                f"{data.source} was encoded as {data.features.kind}, which this learner does not "
                "read; encode it with features=recipe(learner, 'parse').inputs(params, templates)"
            )
        if not network and not learner.batch and learner.averaging.needs_history:
            raise HopefearError("trees are not decided by vote; use averaging=averaged or last")

    def score_names(self, data: TreeDataset) -> tuple[str, ...]:
        return ("uas", "las") if data.labels else ("uas",)

    def evaluator(
        self, structure: Tree, data: TreeDataset, dev: TreeDataset, n_jobs: int
    ) -> Callable[[Predictor], dict[str, float]]:
        def evaluate(predictor: Predictor) -> dict[str, float]:
            codes = TreeDecoder.of(structure, predictor, n_jobs=n_jobs).predict(dev.rows)
            scores = scores_of(dev.bank, codes, data.labels)
            return {name: scores[name] for name in self.score_names(data)}

        return evaluate

    def identity(self, data: TreeDataset, structure: Tree) -> dict[str, Any]:
        return _vectors(data)

    def words(self, data: TreeDataset) -> dict[str, Any]:
        return {
            "order": self.kind.order,
            "tree": self.kind.name,
            **data.features.description,
            "heads": 0 if data.pruner is None else data.pruner.heads,
            "labelled": int(bool(data.labels)),
            **{name: digest[:8] for name, digest in _vectors(data).items()},
        }

    def temperature(self, structure: Tree, predictor: Any, data: TreeDataset, n_jobs: int) -> float:
        decoder: Any = TreeDecoder.of(structure, predictor, n_jobs=n_jobs)
        if not decoder.sums:
            return 1.0
        step = max(1, len(data) // _FITTED_ON)
        rows = data.take(np.arange(0, len(data), step)).rows

        def log_likelihood(temperature: float) -> float:
            decoder.temperature = temperature
            logs = decoder.log_likelihoods(rows)
            return float(logs[np.isfinite(logs)].sum())

        return best_of(log_likelihood)

    def facts(self, data: TreeDataset) -> dict[str, Any]:
        return {
            "examples": len(data),
            "tokens": data.n_tokens,
            "features": data.features.size,
            "arcs": int(data.rows.heads.size),
            "lifted": data.lifted,
        }

    def model(
        self,
        data: Any,
        structure: Any,
        predictor: Any,
        temperature: float,
        signature: str,
        about: dict[str, Any],
    ) -> ParseModel:
        return ParseModel(
            predictor,
            data.labels,
            data.features,
            self.kind,
            data.pruner,
            temperature,
            signature,
            about,
        )


def _vectors(data: TreeDataset) -> dict[str, str]:
    """What tells feature maps apart whose numbers are the same."""
    vectors = getattr(data.features, "vectors", None)
    return {} if vectors is None else {"vectors": vectors.digest}


def dataset(
    bank: Treebank,
    order: int | None = None,
    tree: str = "auto",
    *,
    features: str | ArcTemplates | TokenIdSettings = "standard",
    tags: str | None = None,
    labelled: bool = True,
    heads: int = HEADS,
    plain_bits: int | None = None,
    row_bits: int | None = None,
    dictionary: bool = False,
    seed: int = 1,
    n_jobs: int = 1,
) -> TreeDataset:
    """Look at a treebank: which trees there are, what fires on arcs, which arcs are worth a look.

    Parameters
    ----------
    bank : Treebank
        Training trees.
    order : int, optional
        1: arcs are scored one by one; 2: with siblings and grandparents. Networks have order 1,
        others 2 unless said.
    tree : {"auto", "projective", "nonprojective"}
        Whether arcs may cross; by default where over 5 % of the sentences have such arcs. For a
        learner of projective trees crossing arcs are lifted, and counted in ``lifted``.
    features : str, ArcTemplates or TokenIdSettings
        A built-in set, a TOML file with templates by family, or templates; for networks, what
        ``inputs`` of their recipe gives.
    tags : str, optional
        Column of the fine tags; ``xpos`` unless it is empty, else ``upos``.
    labelled : bool
        False: learn heads alone.
    heads : int
        Most heads of a word that are looked at; 0 for all. Networks look at all.
    plain_bits, row_bits : int, optional
        Room for features, as in :class:`hopefear.features.arcs.arc_map.ArcMap`; as much as trees of
        so many words need, unless said.
    dictionary : bool
        Only the features of the training trees count, and each has weights of its own.
    seed : int
        Of the order in which the pruner sees the sentences.
    n_jobs : int
        Threads that look for heads; the arcs do not depend on it.

    Examples
    --------
    >>> from hopefear.data.grammar import synthetic_treebank
    >>> data = dataset(synthetic_treebank(5, seed=1), order=1, features="light")
    >>> len(data), data.kind.name
    (5, 'projective')
    """
    network = isinstance(features, TokenIdSettings)
    order = (1 if network else 2) if order is None else order
    if network and order != 1:
        raise HopefearError("a network scores arcs one by one; use order 1, or leave it out")
    check_choice(order, tree, heads)
    if len(bank) == 0:
        raise HopefearError(f"{bank.source}: there are no sentences to learn from")
    crossing = ~bank.projective
    kind = kind_of(order, tree, float(crossing.mean()), bool((bank.roots == 1).all()))
    learned, lifted = bank, 0
    if kind.projective and crossing.any():
        flat = projectivise(bank.starts, bank.heads)
        lifted = int(np.count_nonzero(flat != bank.heads))
        learned = bank.with_heads(flat)
    names = learned.relations
    used = np.unique(names.ids).tolist() if labelled else []
    labels = relations_of(names.strings[k] for k in used)
    columns = columns_of(bank, tags)
    if isinstance(features, TokenIdSettings):
        words = TokenArcs.fit(features, learned.sentences, columns)
        return encoded(learned, words, labels, kind).known(bank, lifted)
    mapping = ArcMap.fit(
        *(learned.sentences, learned.heads, templates_of(features), columns),
        *(plain_bits or bits_for(bank.n_tokens, order), row_bits or bits_for(bank.n_tokens, 1) - 2),
    )
    data = encoded(learned, mapping, labels, kind)
    if dictionary:
        mapping = mapping.with_dictionary(data.rows, learned.heads, order, row_blocks(labels))
        data = encoded(learned, mapping, labels, kind)
    if heads > 0:
        rows = plain_rows(data.rows, learned.heads)
        plain = TreeDataset(rows, (), mapping, bank.source, kind)
        pruner = Pruner.fit(plain, heads, seed)
        data = pruner.chosen(data, learned.heads, n_jobs)
    return data.known(bank, lifted)


def check_choice(order: int, tree: str, heads: int) -> None:
    """Refuse what :func:`dataset` cannot make."""
    check_one_of("tree", tree, KINDS)
    check_at_least("heads", heads, 2 if order == 2 else 0)
    if order not in (1, 2):
        raise HopefearError(f"order must be 1 or 2, not {order!r}")


def kind_of(order: int, tree: str, crossing: float, single: bool) -> TreeKind:
    """Which trees there are, where so large a share of the sentences has arcs that cross."""
    projective = tree == "projective" or (tree == "auto" and crossing <= _FEW)
    return TreeKind(order, projective, single)


def relations_of(names: Iterable[str]) -> tuple[str, ...]:
    """The relations in the order of their numbers; none where the treebank has none.

    >>> relations_of(["obj", "nsubj"]), relations_of(["_"])
    (('nsubj', 'obj'), ())
    """
    labels = tuple(sorted(names))
    return () if labels == (MISSING,) else labels


def row_blocks(labels: Sequence[str]) -> int:
    """Places of rows that the relations of one feature fill."""
    return max(1, -(-len(labels) // STEP))


def templates_of(features: str | ArcTemplates) -> ArcTemplates:
    """A built-in set, or the templates of a TOML file: an array of texts for each family.

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


def further(data: TreeDataset, bank: Treebank) -> TreeDataset:
    """More trees to learn from, in the features, relations and kind of trees of others.

    Arcs that cross are lifted where trees are projective. Heads that nobody would have looked at
    are looked at, since they are right.
    """
    strange = {bank.relations.strings[k] for k in np.unique(bank.relations.ids).tolist()}
    strange = strange - set(data.labels) if data.labels else set()
    if strange:
        raise HopefearError(
            f"{bank.source}: the relation {min(strange)!r} is not among those of the first data; "
            f"there are {', '.join(data.labels)}"
        )
    learned = bank
    if data.kind.projective:
        learned = bank.with_heads(projectivise(bank.starts, bank.heads))
    more = encoded(learned, data.features, data.labels, data.kind, data.pruner)
    rows = more.rows
    allowed = [
        {*rows.heads[rows.ptr[k] : rows.ptr[k + 1]].tolist(), head}
        for k, head in enumerate(learned.heads.tolist())
    ]
    lifted = int(np.count_nonzero(learned.heads != bank.heads))
    return with_heads_allowed(more, allowed).known(bank, lifted)


def bits_for(words: int, order: int) -> int:
    """Bits of the table of features that trees of so many words need.

    >>> bits_for(40_000, 1), bits_for(40_000, 2), bits_for(100, 1)
    (21, 22, 16)
    """
    return min(max(math.ceil(math.log2(max(1, words))) + 4 + order, 15 + order), 21 + order)


def columns_of(bank: Treebank, tags: str | None = None) -> tuple[str, ...]:
    """The columns that templates call word, lemma, tag, coarse and morph; empty where empty."""
    columns = bank.sentences.columns

    def filled(name: str) -> bool:
        column = columns[name]
        return any(column.strings[k] != MISSING for k in np.unique(column.ids).tolist())

    if tags is not None and tags not in columns:
        raise HopefearError(f"{bank.source} has no column {tags!r}; there are {', '.join(columns)}")
    return columns_among(filled, tags)


def columns_among(filled: Callable[[str], bool], tags: str | None) -> tuple[str, ...]:
    """As :func:`columns_of`, told which columns hold anything.

    >>> columns_among(lambda name: name in ("form", "upos"), None)
    ('form', '', 'upos', 'upos', '')
    """
    fine = tags or next((name for name in ("xpos", "upos") if filled(name)), "xpos")
    coarse = fine if tags or not filled("upos") else "upos"
    lemma, morph = (name if filled(name) else "" for name in ("lemma", "feats"))
    return ("form", lemma, fine, coarse, morph)


def train(
    data: TreeDataset,
    learner: str | Learner = DEFAULT_LEARNER,
    params: Mapping[str, Any] | None = None,
    **common: Any,
) -> Trained:
    """Train a parser.

    Parameters
    ----------
    data : TreeDataset
        From :func:`dataset`, which has the options of trees and features.
    learner, params
        Name of a recipe and the parameters to replace, or a learner.
    **common
        What all tasks share: passes (10 unless said), their order, held-out data, events,
        checkpoints; see :func:`hopefear.tasks.base.train`.

    Examples
    --------
    >>> from hopefear.data.grammar import synthetic_treebank
    >>> bank = synthetic_treebank(4, seed=1)
    >>> data = dataset(bank, order=1, features="light")
    >>> model = train(data, "perceptron", epochs=3, calibrate=False).model
    >>> heads, relations = model.parse(bank)
    >>> bool((heads == bank.heads).mean() > 0.8)
    True
    """
    return base.train(Parsing(data.kind), data, learner, params, **common)


def held_out(data: TreeDataset, bank: Treebank) -> TreeDataset:
    """Other trees as the model of this data will see them."""
    return encoded(bank, data.features, data.labels, data.kind, data.pruner).known(bank, 0)


def judged(bank: Treebank, codes: np.ndarray, labels: Sequence[str]) -> tuple[Trees, Trees]:
    """The trees of a treebank, and those that labels stand for, for scores."""
    gold, n = Trees.of(bank), max(1, len(labels))
    if not labels:
        gold = gold._replace(relations=None)
    relations = Column(labels, (codes % n).astype(np.int32)) if labels else None
    return gold, gold._replace(heads=codes // n, relations=relations)


def scores_of(bank: Treebank, codes: np.ndarray, labels: Sequence[str]) -> dict[str, float]:
    """Attachment scores of parsed trees, in percent."""
    metric = Dependencies(bool(labels))
    return metric.scores(metric.total(*judged(bank, codes, labels)))
