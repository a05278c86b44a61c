"""Networks: an encoder, and a head that scores the parts of a structure."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from hopefear.core.arrays import stretches
from hopefear.core.interfaces import n_weights
from hopefear.errors import HopefearError
from hopefear.neural.encoders import Noise, TokenEncoder, encoder_spec
from hopefear.neural.inputs import Inputs, InputTable, padded_places
from hopefear.neural.predictor import HEADS, NetworkDecoder
from hopefear.neural.structured_loss import ChainLoss

# What activations may take, by a rough count, on either device.
MOST_BYTES = 4 << 30


class Rows(NamedTuple):
    """Rows of a table that a batch meets, and which of them stands where."""

    values: torch.Tensor  # float32[rows, width]
    ids: torch.Tensor  # int64: positions in ``values``


class ScoreNetwork(nn.Module):
    """An encoder of tokens with a head; a subclass for each structure adds the head.

    Large tables (vectors of words, weights of sparse features) are no parameters of the module: a
    step moves only the rows that it meets, so these come with the batch.

    Parameters
    ----------
    spec : mapping
        Everything that the shapes of all weights follow from, as JSON has it.
    """

    def __init__(self, spec: Mapping[str, Any]) -> None:
        super().__init__()
        self.spec = dict(spec)
        self.encoder = TokenEncoder(spec)

    @classmethod
    def spec_of(cls, learner: Any, structure: Any, data: Any) -> dict[str, Any]:
        """The spec for data of a structure."""
        return {
            "head": learner.head,
            "coordinates": n_weights(structure),
            **encoder_spec(learner, data.features),
        }

    def tables(self) -> dict[str, tuple[int, int]]:
        """Shapes of the tables whose rows come with the batch."""
        return {"word": (self.spec["slots"]["word"], self.spec["word_dim"])}

    def inputs(self, rows: Any) -> InputTable:
        """The token ids of rows of data."""
        return InputTable(families_of(self.spec), rows.starts, rows.indptr, rows.indices)

    def encode(
        self, inputs: Inputs, tables: Mapping[str, Rows], noise: Noise | None
    ) -> torch.Tensor:
        """[B, T, width] of the encoder."""
        words = nn.functional.embedding(tables["word"].ids, tables["word"].values)
        return self.encoder(inputs, words, noise)

    def forward(
        self, inputs: Inputs, tables: Mapping[str, Rows], noise: Noise | None = None
    ) -> Any:
        """Scores of the parts; what they are is for the head to say."""
        raise NotImplementedError

    def gold(self, rows: Any, which: np.ndarray) -> Any:
        """What the sentences of a batch should be, as the criterion takes it."""
        raise NotImplementedError

    def criterion(self, learner: Any, structure: Any, n_jobs: int) -> Callable[..., torch.Tensor]:
        """Losses of every sentence, [B], from scores, gold and lengths."""
        raise NotImplementedError

    def decoder(self, predictor: Any, structure: Any, temperature: float, n_jobs: int) -> Any:
        """What answers questions about data with these scores."""
        raise NotImplementedError

    def bytes_of(self, tokens: int) -> int:
        """Roughly what activations of so many tokens take in training."""
        spec = self.spec
        return tokens * 4 * (spec["hidden"] * spec["layers"] * 24 + 4 * spec["word_dim"] + 400)

    def split(self, batches: list[np.ndarray], lengths: np.ndarray) -> Iterator[np.ndarray]:
        """Batches in parts that fit into memory; lengths of their sentences rise."""
        for which in batches:
            need = len(which) * self.bytes_of(int(lengths[which[-1]]))
            yield from np.array_split(which, min(len(which), max(1, -(-need // MOST_BYTES))))

    def check_room(self, longest: int, source: str = "the data") -> None:
        """Refuse sentences that do not fit into memory."""
        if (need := self.bytes_of(longest)) > MOST_BYTES:
            raise HopefearError(
                f"{source} has a sentence of {longest:,} tokens, for which the network needs "
                f"{need / 2**30:.1f} GiB; the limit is {MOST_BYTES >> 30} GiB: split it, or take "
                "a smaller hidden"
            )


class TagNetwork(ScoreNetwork):
    """Scores of labels: a linear map of what the encoder says, and a table of label pairs.

    In a wide network the weights of sparse features are added.
    """

    def __init__(self, spec: Mapping[str, Any]) -> None:
        super().__init__(spec)
        labels = spec["labels"]
        self.head = nn.Linear(self.encoder.width, labels)
        self.transitions = nn.Parameter(torch.zeros(labels, labels)) if spec["pairs"] else None

    @classmethod
    def spec_of(cls, learner: Any, structure: Any, data: Any) -> dict[str, Any]:
        if structure.order != 1:
            raise HopefearError("a network scores pairs of labels, not triples; use order 1")
        spec = super().spec_of(learner, structure, data)
        return {**spec, "labels": structure.labels, "pairs": learner.transitions}

    def tables(self) -> dict[str, tuple[int, int]]:
        tables = super().tables()
        if self.spec["templates"]:
            tables["template"] = (self.spec["templates"], self.spec["labels"])
        return tables

    def forward(
        self, inputs: Inputs, tables: Mapping[str, Rows], noise: Noise | None = None
    ) -> torch.Tensor:
        scores = self.head(self.encode(inputs, tables, noise))
        if "template" in tables and inputs.sparse is not None:
            rows = tables["template"]
            weights = None if noise is None else noise.factors(rows.ids)
            wide = nn.functional.embedding_bag(
                rows.ids, rows.values, inputs.sparse[1], mode="sum", per_sample_weights=weights
            )
            scores = scores + wide.view(scores.shape)
        return scores

    def gold(self, rows: Any, which: np.ndarray) -> np.ndarray:
        lengths = np.diff(rows.starts)[which]
        out = np.zeros(len(which) * int(lengths.max()), np.int64)
        out[padded_places(lengths)] = rows.labels[stretches(rows.starts[which], lengths)]
        return out.reshape(len(which), -1)

    def criterion(self, learner: Any, structure: Any, n_jobs: int) -> Callable[..., torch.Tensor]:
        chain = ChainLoss(
            learner.loss, structure.labels, structure.limits, n_jobs=n_jobs, reduction="none"
        )
        return lambda scores, gold, lengths: chain(scores, self.transitions, gold, lengths)

    def decoder(self, predictor: Any, structure: Any, temperature: float, n_jobs: int) -> Any:
        return NetworkDecoder(structure, predictor, temperature, n_jobs)


def head_of(name: str) -> type[ScoreNetwork]:
    """The class of networks with this head.

    >>> head_of("tag").__name__
    'TagNetwork'
    """
    module, cls = HEADS[name].split(":")
    return getattr(importlib.import_module(module), cls)


def families_of(spec: Mapping[str, Any]) -> dict[str, range]:
    """Ranges of the token ids that a network reads.

    >>> spec = {"slots": {"word": 5, "shape": 2}, "characters": 3, "templates": 0}
    >>> families_of(spec)["character"]
    range(7, 10)
    """
    sizes = {**spec["slots"], "character": spec["characters"], "template": spec["templates"]}
    ends = np.cumsum([0, *sizes.values()]).tolist()
    return {name: range(a, b) for name, a, b in zip(sizes, ends[:-1], ends[1:], strict=True)}


@contextlib.contextmanager
def enough_memory(remedy: str) -> Iterator[None]:
    """Say in one line that there is no memory left, and what helps."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise HopefearError(f"the GPU has no memory for this batch; {remedy}") from error
    except RuntimeError as error:
        if "can't allocate memory" not in str(error):
            raise
        raise HopefearError(f"there is no memory for this batch; {remedy}") from error


def device_of(name: str) -> torch.device:
    """The device that is asked for, or a line that says why not."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise HopefearError(
            "device cuda: PyTorch finds no GPU here; use --device cpu, or auto, or a build of "
            "PyTorch with CUDA"
        )
    return torch.device(name)
