"""The rows of sequence_quality.py: what is trained on what, the goal, and the peers' figures.

Peers' scores are single runs of CRFsuite 0.12.2, Wapiti 1.5.0 and the SAPO authors' program (plain:
no structure regularisation, no rich edges), with the same 19 templates and at their defaults.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from hopefear_papers.sapo.plan import FULL, Task

CORPORA = dict(zip(("conll2000", "ewt", "genia", "jnlpba"), FULL.tasks, strict=True))
BEST_CHUNKER = 94.0


@dataclass(frozen=True)
class Row:
    """A learner at its defaults, but for ``params`` and ``how``, on a corpus with templates."""

    corpus: str
    features: str
    learner: str
    goal: float | None = None
    peers: str = ""
    seeds: int = 5
    params: Mapping[str, Any] = field(default_factory=dict)
    how: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        parameters = "".join(f" {k}={v}" for k, v in {**self.params, **self.how}.items())
        return f"{self.corpus}/{self.features}/{self.learner}{parameters}"

    @property
    def metric(self) -> str:
        return CORPORA[self.corpus].metric


def task(corpus: str, features: str) -> Task:
    """Files and columns of a corpus, with these templates."""
    return replace(CORPORA[corpus], features=features)


def chosen(only: Sequence[str] | None) -> list[Row]:
    """Rows of these names or patterns; all where nothing is named.

    >>> [row.key for row in chosen(["ewt"])]
    ['ewt/pos/sapo', 'ewt/pos/perceptron']
    """
    if not only:
        return list(ROWS)
    return [
        row
        for row in ROWS
        if {row.corpus, row.features, row.learner} & set(only)
        or any(fnmatchcase(row.key, pattern) for pattern in only)
    ]


def listed() -> str:
    return "\n".join(row.key for row in ROWS)


_SAME = ("conll2000", "crfsuite-chunking")  # the features the peers had
_OURS = ("conll2000", "chunking")

ROWS = (
    Row(*_SAME, "perceptron", 93.4, "CRFsuite ap 93.43 (10 passes), SAPO's program 93.44 (8)"),
    Row(*_SAME, "mira", 93.5, "CRFsuite pa 93.51 (10), SAPO's program 93.46 (8)"),
    Row(*_SAME, "nbest-mira", 93.6, "SAPO's program 93.60 (6)"),
    Row(*_SAME, "sapo", 93.6, "SAPO's program 93.54 (10); goal by pass 3: 93.4"),
    Row(*_SAME, "crf", 93.6, "CRFsuite l2sgd 93.49 (5), 93.60 (20)"),
    Row(*_SAME, "crf-lbfgs", 93.6, "CRFsuite lbfgs 93.60 (166 iterations)", seeds=1),
    Row(*_SAME, "crf-owlqn", 93.8, "Wapiti rprop 93.79 (29), sgd-l1 93.63 (26)", seeds=1),
    Row(*_SAME, "arow", None, "CRFsuite arow 91.71 (10)"),
    *(
        Row(*_SAME, name)
        for name in (
            *("ssvm", "swvp", "vrda", "rda", "adagrad", "adagrad-rda", "sgd", "fobos", "tg"),
            *("ftrl", "cw", "pa"),
        )
    ),
    *(Row(*_OURS, name) for name in ("sapo", "nbest-mira", "mira", "perceptron", "crf", "ssvm")),
    *(Row(*_OURS, name, seeds=1) for name in ("crf-lbfgs", "crf-owlqn")),
    Row(*_OURS, "sapo", how={"order": 2}, seeds=3),
    *(Row("ewt", "pos", name, 94.5, seeds=3) for name in ("sapo", "perceptron")),
    *(Row("genia", "pos", name, 98.0, seeds=3) for name in ("sapo", "perceptron")),
    *(Row("jnlpba", "bioner", name, 70.5, seeds=3) for name in ("sapo", "perceptron")),
)
