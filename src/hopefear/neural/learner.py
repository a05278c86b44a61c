"""A network as a learner: what it is made of and how it is trained; light to import."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from hopefear import __version__
from hopefear.core.checks import check_at_least, check_one_of
from hopefear.core.learner import describe
from hopefear.errors import CombinationError, HopefearError
from hopefear.features.token_ids import TokenIdSettings
from hopefear.losses.log import Log

DEVICES = ("auto", "cpu", "cuda")


@dataclass(frozen=True)
class NetworkLearner:
    """A BiLSTM over words; a subclass for each structure says what it ends in.

    ``theta = network(x);  d loss / d theta = -mu``

    Parameters
    ----------
    inputs : str
        Columns to read, between commas, the words first; ``auto`` reads words, and parts of speech
        in a column called pos.
    lower : bool
        Look words up in lower case.
    vectors : str
        File of pre-trained word vectors, text or .npz; empty for none.
    tune : bool
        Also learn the vectors that the file has; false leaves them as they are.
    unseen : bool
        Keep the vectors of words that training does not have; false makes smaller models.
    word_dim : int
        Width of word vectors; 0 is that of the file, or 100 without one.
    shape_dim, column_dim : int
        Width of the vectors of shapes, such as Xx-0, and of other columns; 0 leaves shapes out.
    char : str
        How characters make a vector of a word: cnn, lstm or none.
    char_dim, char_hidden : int
        Width of the vectors of characters, and of what is made of them.
    hidden, layers : int
        Width of the LSTM in each direction, and how many lie on each other.
    dropout : float
        Share of the numbers between layers that are left out at random, the same for all tokens of
        a sentence, and of the sparse features of a wide network; more keeps large networks from
        learning by heart.
    word_dropout : float
        A word seen c times is taken for an unknown one with probability word_dropout /
        (word_dropout + c).
    batch_size : int
        Sentences a step.
    rate, decay : float
        Step length of Adam, divided by 1 + decay * passes made.
    l2 : float
        Weight decay of Adam (AdamW); larger keeps weights smaller.
    clip : float
        Gradients longer than this are cut to it; 0 cuts none.
    average : float
        What is kept is a running average of the weights with this share of the past; 0 keeps the
        last weights.
    device : str
        cpu, cuda, or auto: a GPU where there is one.
    threads : int
        Of PyTorch on a CPU. More are faster on cores that nothing else uses, and much slower on
        others; the same number repeats results to the bit.
    loss : Loss
        Any loss of the library.
    """

    inputs: str = "auto"
    lower: bool = True
    vectors: str = ""
    tune: bool = True
    unseen: bool = True
    word_dim: int = 0
    shape_dim: int = 10
    column_dim: int = 25
    char: str = "cnn"
    char_dim: int = 30
    char_hidden: int = 50
    hidden: int = 200
    layers: int = 1
    dropout: float = 0.33
    word_dropout: float = 0.25
    batch_size: int = 32
    rate: float = 0.002
    decay: float = 0.05
    l2: float = 0.0
    clip: float = 5.0
    average: float = 0.998
    device: str = "auto"
    threads: int = 1
    loss: Any = field(default_factory=Log)

    head: ClassVar[str]  # a name in `hopefear.neural.predictor.HEADS`
    kind: ClassVar[str]  # what signatures call it
    batch = False
    update_on = "all"
    # A network wavers from pass to pass, and its passes are few.
    patience = 5
    epochs = 20

    def __post_init__(self) -> None:
        check_one_of("device", self.device, DEVICES)
        check_one_of("char", self.char, ("cnn", "lstm", "none"))
        for name in (
            *("hidden", "layers", "batch_size", "column_dim", "char_dim", "char_hidden"),
            "threads",
        ):
            check_at_least(name, getattr(self, name), 1)
        for name in ("word_dim", "shape_dim"):
            check_at_least(name, getattr(self, name), 0)
        for name in ("dropout", "average"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise CombinationError(
                    f"Network: {name} must be from 0 to below 1, but is {getattr(self, name)!r}"
                )
        for name in ("word_dropout", "rate", "decay", "l2", "clip"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise CombinationError(
                    f"Network: {name} must be finite and not negative, but is "
                    f"{getattr(self, name)!r}"
                )

    def check(self) -> None:
        """Refuse to begin without PyTorch, or without the device that is asked for."""
        from hopefear.neural import check_torch

        check_torch()
        from hopefear.neural.network import device_of

        device_of(self.device)

    def settings(self, templates: Any = None) -> TokenIdSettings:
        """How this network wants its input; ``templates`` are for a wide one."""
        vectors = None
        if self.vectors:
            from hopefear.neural.vectors import read_vectors

            vectors = read_vectors(self.vectors)
            if self.word_dim not in (0, vectors.width):
                raise HopefearError(
                    f"{self.vectors} has vectors of {vectors.width} numbers, and word_dim is "
                    f"{self.word_dim}; leave word_dim out"
                )
        columns = None
        if self.inputs != "auto":
            columns = tuple(name.strip() for name in self.inputs.split(","))
            if not all(columns) or len(set(columns)) < len(columns):
                raise HopefearError(f"inputs={self.inputs!r}: give different names of columns")
        return TokenIdSettings(
            columns,
            self.lower,
            vectors,
            self.unseen,
            templates if getattr(self, "wide", False) else None,
        )

    def trainer(self, structure: Any, passes: Any, n_jobs: int = 1) -> Any:
        """This learner at work on some data."""
        self.check()
        from hopefear.neural.trainer import NetworkTrainer

        return NetworkTrainer(structure, self, passes, n_jobs)

    def parameters(self) -> dict[str, Any]:
        """All parameters but for the loss and where it runs."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "loss"}
        values["vectors"] = os.path.basename(self.vectors)
        return {k: v for k, v in values.items() if k not in ("device", "threads")}

    def signature(self, **more: Any) -> str:
        """One line that says exactly what this learner is; goes into models and reports."""
        shown = ",".join(
            f"{name}={f'{v:.10g}' if isinstance(v, float) else str(v).lower()}"
            for name, v in self.parameters().items()
            if v != ""
        )
        parts = {"loss": describe(self.loss), "network": f"{self.kind}({shown})", **more}
        return "|".join(f"{key}:{value}" for key, value in {**parts, "v": __version__}.items())


@dataclass(frozen=True)
class Network(NetworkLearner):
    """A BiLSTM over words that scores labels, trained by any loss of the library.

    ``theta = network(x);  d loss / d theta = -mu``

    Parameters
    ----------
    transitions : bool
        Learn a weight for each pair of labels; without, labels are independent.
    wide : bool
        Add the linear scores of the sparse templates (wide and deep).

    Examples
    --------
    >>> Network(hidden=100).signature(seed=1)[:40]
    'loss:log(force=1)|network:bilstm(inputs='
    """

    transitions: bool = True
    wide: bool = False

    head: ClassVar[str] = "tag"
    kind: ClassVar[str] = "bilstm"


@dataclass(frozen=True)
class Biaffine(NetworkLearner):
    """A BiLSTM over words that scores arcs and relations by biaffine maps, trained by any loss.

    ``theta[h, m] = dep(m)' U head(h) + u' head(h)`` (Dozat and Manning, 2017)

    Parameters
    ----------
    arc_dim, relation_dim : int
        Width of what a word says as head and as dependent, for arcs and for relations.
    trees : bool
        Learn whole trees by the loss; false learns the head of each word, and the relation to its
        right head, by cross entropy.

    Examples
    --------
    >>> Biaffine(hidden=100).signature(seed=1)[:42]
    'loss:log(force=1)|network:biaffine(inputs='
    """

    hidden: int = 250
    layers: int = 2
    arc_dim: int = 300
    relation_dim: int = 100
    trees: bool = True

    head: ClassVar[str] = "biaffine"
    kind: ClassVar[str] = "biaffine"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("arc_dim", "relation_dim"):
            check_at_least(name, getattr(self, name), 1)
        if not self.trees and type(self.loss) is not Log:
            raise CombinationError(
                f"Biaffine and {type(self.loss).__name__}: heads are learned one by one by cross "
                "entropy; use trees=true for other losses"
            )
