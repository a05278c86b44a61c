"""A trained network as a predictor: named arrays and a spec; PyTorch is asked when scores are."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from hopefear.data.sequences import SequenceDataset, TokenRows
from hopefear.errors import ModelError
from hopefear.storage import check_plain
from hopefear.structures.lattice import padded_width
from hopefear.training.decoders.chains import ChainDecoder
from hopefear.training.predictors import LinearPredictor

PREFIX = "network."
# What a network can end in, by the name that model files have for it.
HEADS = {
    "tag": "hopefear.neural.network:TagNetwork",
    "biaffine": "hopefear.neural.biaffine:BiaffineNetwork",
}
# Padded tokens that are scored at a time.
_TOKENS = 8192
_COUNTS = (
    *("characters", "templates", "word_dim", "shape_dim", "column_dim", "char_dim"),
    *("char_hidden", "hidden", "layers", "coordinates", "labels"),
)
_MOST_LAYERS = 64


class NetworkPredictor:
    """The weights of a network by name, and the spec that says what they are weights of.

    Parameters
    ----------
    spec : mapping
        As :meth:`hopefear.neural.network.ScoreNetwork.spec_of` gives it.
    weights : mapping of str to float32 array
        All of them, large tables too.
    device : str
        Where scores are computed: cpu, cuda or auto.
    """

    linear: ClassVar[bool] = False
    no_weights: ClassVar[str] = (
        "a network has no single weight for a feature; its transitions, its layers and the scores "
        "of tokens can be told"
    )

    def __init__(
        self, spec: Mapping[str, Any], weights: Mapping[str, np.ndarray], device: str = "auto"
    ) -> None:
        self.spec, self.weights_by_name, self.device = dict(spec), dict(weights), device

    def fits(self, n: int) -> bool:
        """Whether it was trained for a structure of ``n`` coordinates."""
        return self.spec["coordinates"] == n

    def misfit(self, head: str, labels: int, features: Any) -> str:
        """Why it cannot score outputs of so many labels from what a feature map gives; or empty."""
        spec, families = self.spec, {name: len(ids) for name, ids in features.families.items()}
        sizes = {**spec["slots"], "character": spec["characters"], "template": spec["templates"]}
        if spec["head"] != head or spec["labels"] != labels:
            return f"the network ends in {spec['head']} of {spec['labels']} labels"
        same = list(sizes.items()) == list(families.items())
        return "" if same else "the network reads other ids than the features give"

    @property
    def keeps_scale(self) -> bool:
        """Whether scores keep their size."""
        return True

    @property
    def nnz(self) -> int:
        """Number of non-zero weights."""
        return sum(int(np.count_nonzero(array)) for array in self.weights_by_name.values())

    def layers(self) -> dict[str, list[int]]:
        """Shapes of all weights, by name."""
        return {name: list(array.shape) for name, array in self.weights_by_name.items()}

    @property
    def transitions(self) -> np.ndarray | None:
        """Weights of label pairs, ``[label before, label]``; None where labels are independent."""
        return self.weights_by_name.get("transitions")

    def arrays(self) -> dict[str, np.ndarray]:
        """The spec as JSON in bytes, and all weights."""
        spec = np.frombuffer(json.dumps(self.spec).encode(), np.uint8)
        named = {f"{PREFIX}weights.{name}": a for name, a in self.weights_by_name.items()}
        return {f"{PREFIX}spec": spec, **named}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> NetworkPredictor:
        """What :meth:`arrays` gave; anything else is a ModelError."""
        text = arrays[f"{PREFIX}spec"]
        if text.dtype != np.uint8 or text.ndim != 1:
            raise ModelError("the spec of the network is not text")
        try:
            spec = json.loads(text.tobytes())
            check_plain(spec)
        except (ValueError, RecursionError) as error:
            raise ModelError(f"the spec of the network cannot be read: {error}") from error
        _check_spec(spec)
        start = f"{PREFIX}weights."
        weights = {}
        for name, array in arrays.items():
            if name.startswith(start):
                if array.dtype != np.float32 or not np.isfinite(array).all():
                    raise ModelError(f"the weights {name} are not finite numbers of 32 bits")
                weights[name.removeprefix(start)] = array
        return cls(spec, weights)

    @functools.cached_property
    def _loaded(self) -> tuple[Any, Any, dict[str, Any]]:
        """Device, network and tables."""
        from hopefear.neural import check_torch

        check_torch()
        import torch

        from hopefear.neural.network import device_of, head_of

        device = device_of(self.device)
        try:
            with torch.device("meta"):  # nothing is allocated by what a file claims
                network = head_of(self.spec["head"])(self.spec)
        except (RuntimeError, ValueError, KeyError, TypeError) as error:
            raise ModelError(f"no network has the spec of the model: {error}") from error
        shapes = network.tables()
        own = {name: tuple(a.shape) for name, a in network.state_dict().items()}
        found = {name: a.shape for name, a in self.weights_by_name.items()}
        if found != {**own, **{f"table.{name}": shape for name, shape in shapes.items()}}:
            raise ModelError("the weights of the network do not have the shapes of its spec")
        tensors = {name: torch.from_numpy(np.array(a)) for name, a in self.weights_by_name.items()}
        tables = {name: tensors.pop(f"table.{name}").to(device) for name in shapes}
        network.load_state_dict(tensors, assign=True)
        return device, network.to(device).eval(), tables

    def run(self, rows: Any, n_jobs: int = 1) -> Iterator[tuple[np.ndarray, Any]]:
        """Numbers of sentences and the scores that the network gives them, batch by batch.

        Sentences without tokens are left out. On a CPU PyTorch uses ``n_jobs`` threads meanwhile.
        """
        import torch

        from hopefear.neural.inputs import bucketed
        from hopefear.neural.network import Rows, enough_memory

        device, network, tables = self._loaded
        table = network.inputs(rows)
        network.check_room(int(table.lengths.max(initial=0)))
        present = np.flatnonzero(table.lengths > 0)
        most = _TOKENS * (8 if device.type == "cuda" else 1)
        threads = torch.get_num_threads()
        torch.set_num_threads(n_jobs)
        try:
            for which in network.split(bucketed(present, table.lengths, most, most), table.lengths):
                with torch.inference_mode(), enough_memory("use --device cpu"):
                    inputs = table.batch(which, device)
                    met = {"word": Rows(tables["word"], inputs.slots["word"])}
                    if inputs.sparse is not None:
                        met["template"] = Rows(tables["template"], inputs.sparse[0])
                    scores = network(inputs, met)
                yield which, scores
        finally:
            torch.set_num_threads(threads)

    def node_scores(self, rows: Any, n_jobs: int = 1) -> np.ndarray:
        """Scores of all labels of all tokens (float32[tokens, labels])."""
        from hopefear.core.arrays import stretches
        from hopefear.neural.inputs import padded_places

        starts, lengths = rows.starts, np.diff(rows.starts)
        out = np.zeros((int(starts[-1]), self.spec["labels"]), np.float32)
        for which, scores in self.run(rows, n_jobs):
            flat = scores.reshape(-1, out.shape[1]).cpu().numpy()
            places = padded_places(lengths[which])
            out[stretches(starts[which], lengths[which])] = flat[places]
        return out

    def decoder(self, structure: Any, temperature: float = 1.0, n_jobs: int = 1) -> Any:
        """What answers questions about data."""
        return self._loaded[1].decoder(self, structure, temperature, n_jobs)


class NetworkDecoder(ChainDecoder):
    """A network on a chain.

    The network scores labels at tokens; then every token counts as a feature of its own, whose
    weights are its scores, and searches are those of linear models.
    """

    _last: tuple[Any, Any, int] | None = None

    def on(self, data: SequenceDataset) -> tuple[ChainDecoder, SequenceDataset]:
        """A linear decoder, and the data as that sees it: a feature a token."""
        structure, weights, rows = self.linear(data.rows)
        predictor = LinearPredictor(weights)
        decoder = ChainDecoder(structure, predictor, self.temperature, self.n_jobs)
        features = SimpleNamespace(
            size=structure.attributes, edge_size=0, name=lambda k: "score of the network"
        )
        return decoder, SequenceDataset(rows, data.labels, features, data.source)

    def linear(self, rows: Any) -> tuple[Any, np.ndarray, TokenRows]:
        if self._last is None or self._last[0] is not rows.indices:
            nodes = self.predictor.node_scores(rows, self.n_jobs)
            n, labels = nodes.shape
            width = padded_width(labels)
            weights = np.zeros((n + width, width), np.float32)
            weights[:n, :labels] = nodes
            if (pairs := self.predictor.transitions) is not None:
                weights[n : n + labels, :labels] = pairs.T
            self._last = rows.indices, weights.ravel(), n
        _, weights, n = self._last
        structure = self.structure._replace(attributes=n, edge_attributes=0, transitions=True)
        plain = rows._replace(
            indptr=_frozen(np.arange(n + 1, dtype=np.int64)),
            indices=_frozen(np.arange(n, dtype=np.int32)),
            values=_frozen(np.empty(0, np.float32)),
        )
        return structure, weights, plain


def _frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def _check_spec(spec: Any) -> None:
    """ModelError for a spec that no network can be built from."""
    if not isinstance(spec, dict) or not isinstance(spec.get("slots"), dict):
        raise ModelError("the spec of the network has no slots")
    sizes = [*(spec.get(name) for name in _COUNTS), *spec["slots"].values()]
    if not all(type(size) is int and 0 <= size < 2**40 for size in sizes):
        raise ModelError(f"the spec of the network has sizes {sizes!r:.60}")
    if not 0 < spec["layers"] <= _MOST_LAYERS or not spec["hidden"] or not spec["word_dim"]:
        raise ModelError(f"the network has {spec['layers']} layers, or layers without width")
    if "word" not in spec["slots"] or spec.get("char") not in ("cnn", "lstm", "none"):
        raise ModelError("the spec of the network has no words, or characters of no known kind")
    if spec.get("head") not in HEADS:
        raise ModelError(f"the network ends in {spec.get('head')!r:.60}, which is not known")
