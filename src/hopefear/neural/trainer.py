"""A network at work: batches of sentences of like length, one step of Adam a batch."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from hopefear.errors import HopefearError, ModelError
from hopefear.neural.encoders import Noise
from hopefear.neural.inputs import InputTable, bucketed
from hopefear.neural.network import Rows, device_of, enough_memory, head_of
from hopefear.neural.optimiser import Adam
from hopefear.neural.predictor import NetworkPredictor
from hopefear.storage import array_of
from hopefear.training.trainer import Event, Trainer

# Padded tokens of a batch, for each sentence that a batch may have.
_TOKENS = 128
_NOT_FINITE = "the loss is no longer finite; lower the rate (-p rate=), or clip more (-p clip=)"


class NetworkTrainer(Trainer):
    """A network that learns; counts what online trainers count.

    A step is an update. No output is searched for, so a sentence counts as a mistake where what is
    right has at most half of the probability, or, with a loss that has no probabilities, where
    there is any loss; events call that unsure, and the console says so.

    Parameters
    ----------
    structure, learner, passes
        What is predicted, the network, and the data.
    n_jobs : int
        Threads of the kernels; those of PyTorch are a parameter of the learner.

    Notes
    -----
    All random choices follow from the seed, the pass and the number of the batch, so a run that is
    resumed goes on as if nothing had been. On a CPU the same number of threads gives the same bits;
    on a GPU sums may come in any order, so weights repeat only up to rounding.
    """

    def __init__(self, structure: Any, learner: Any, passes: Any, n_jobs: int = 1) -> None:
        self.structure, self.learner, self.seed = structure, learner, int(passes.seed)
        data = passes.dataset
        self.device = device_of(learner.device)
        self._threads_before = torch.get_num_threads()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            kind = head_of(learner.head)
            self.network = kind(kind.spec_of(learner, structure, data))
        self.network.to(self.device)
        self._rows, self._table = passes.rows, self.network.inputs(passes.rows)
        self.network.check_room(int(self._table.lengths.max(initial=0)), data.source)
        words = self._table.slots["word"]
        counts = np.bincount(words, minlength=len(data.features.families["word"]))
        wd = learner.word_dropout
        unknown = (wd / np.maximum(wd + counts, 1e-9)).astype(np.float32)
        self._unknown = torch.from_numpy(unknown).to(self.device)
        tables, self._fixed = self._new_tables(data.features)
        self.adam = Adam(
            dict(self.network.named_parameters()),
            tables,
            learner.l2,
            learner.clip,
            learner.average,
        )
        self.criterion = self.network.criterion(learner, structure, n_jobs)
        self.examples = self.updates = self.mistakes = 0
        self.loss = 0.0

    def _new_tables(self, features: Any) -> tuple[dict[str, torch.Tensor], torch.Tensor | None]:
        """Tables as training begins with them, and which vectors must stay."""
        rng, tables = np.random.default_rng([self.seed, 1]), {}
        for name, (n, width) in self.network.tables().items():
            table = np.zeros((n, width), np.float32)
            if name == "word":
                bound = math.sqrt(3.0 / width)
                table[1:] = rng.uniform(-bound, bound, (n - 1, width))
            tables[name] = table
        fixed = None
        if features.vectors is not None:
            vectors = features.vectors
            known = {word: k for k, word in reversed(list(enumerate(vectors.words)))}
            if features.lower:
                for k, word in enumerate(vectors.words):
                    known.setdefault(word.lower(), k)
            pairs = [
                (i, known[word])
                for i, word in enumerate(features.tables["word"], 1)
                if word in known
            ]
            if not pairs:
                raise HopefearError(
                    "none of the words of the training data has a vector; are these vectors of "
                    "another language, or not in lower case (-p lower=false)?"
                )
            places, sources = np.array(pairs).T
            tables["word"][places] = vectors.rows[sources]
            if not self.learner.tune:
                fixed = torch.zeros(len(tables["word"]), dtype=torch.bool)
                fixed[torch.from_numpy(places)] = True
                fixed = fixed.to(self.device)
        return {k: torch.from_numpy(t).to(self.device) for k, t in tables.items()}, fixed

    def learn_pieces(self, passes: Any, epoch: int = 0, skip: int = 0) -> Iterator[float]:
        """Learn a pass piece by piece; batches are those of the whole pass."""
        plan = self._plan(self._table, passes.order(epoch), epoch)
        for number, part in enumerate(np.array_split(np.arange(len(plan)), passes.n_pieces)):
            if number >= skip:
                started = time.perf_counter()
                self._learn(self._table, self._rows, plan, part, epoch)
                yield time.perf_counter() - started

    def learn(self, data: Any, order: np.ndarray) -> None:
        """Learn from the rows named by ``order``, as one pass."""
        table = self.network.inputs(data)
        plan = self._plan(table, order, 0)
        self._learn(table, data, plan, np.arange(len(plan)), 0)

    def _plan(self, table: InputTable, order: np.ndarray, epoch: int) -> list[np.ndarray]:
        size = self.learner.batch_size
        rng = np.random.default_rng([self.seed, epoch, 1])
        return bucketed(order, table.lengths, size, _TOKENS * size, rng)

    def _learn(
        self, table: InputTable, rows: Any, plan: list[np.ndarray], part: np.ndarray, epoch: int
    ) -> None:
        torch.set_num_threads(self.learner.threads)
        self.network.train()
        rate = self.learner.rate / (1.0 + self.learner.decay * epoch)
        for k in part.tolist():
            seed = int(np.random.SeedSequence([self.seed, epoch, k]).generate_state(1)[0])
            with enough_memory("lower the batch_size (-p batch_size=), or use --device cpu"):
                self._step(table, rows, plan[k], Noise(seed, self.learner.dropout), rate)

    def _step(
        self, table: InputTable, rows: Any, which: np.ndarray, noise: Noise, rate: float
    ) -> None:
        """One batch: scores, losses, gradients, a step."""
        inputs = table.batch(which, self.device)
        words = inputs.slots["word"]
        forgotten = noise.chances(*words.shape).to(self.device) < self._unknown[words]
        met, numbers = {}, {}
        wanted = {"word": words.masked_fill(forgotten, 0)}
        if inputs.sparse is not None:
            wanted["template"] = inputs.sparse[0]
        for name, ids in wanted.items():
            numbers[name], places = torch.unique(ids, return_inverse=True)
            values = self.adam.tables[name].weights[numbers[name]].requires_grad_()
            met[name] = Rows(values, places)
        scores = self.network(inputs, met, noise)
        parts = scores if isinstance(scores, tuple) else (scores,)
        # Losses that look for the best output alone find one among scores that are no numbers.
        if any(part is not None and bool(part.isnan().any()) for part in parts):
            raise HopefearError(_NOT_FINITE)
        losses = self.criterion(scores, self.network.gold(rows, which), inputs.lengths)
        shares = torch.from_numpy(rows.weights[which].astype(np.float32)).to(losses)
        total = (losses * shares).sum()
        parameters = dict(self.network.named_parameters())
        grads = torch.autograd.grad(
            total / len(which),
            [*parameters.values(), *(one.values for one in met.values())],
            allow_unused=True,
        )
        gradients = {
            name: torch.zeros_like(p) if g is None else g
            for (name, p), g in zip(parameters.items(), grads, strict=False)
        }
        of_rows = {}
        for name, g in zip(met, grads[len(parameters) :], strict=True):
            places = numbers[name]
            if name == "word" and self._fixed is not None:
                moving = ~self._fixed[places]
                places, g = places[moving], g[moving]
            of_rows[name] = places, g
        self.adam.step(gradients, of_rows, rate)
        single = losses.detach().cpu().numpy()
        if not np.isfinite(single).all():
            raise HopefearError(_NOT_FINITE)
        limit = math.log(2.0) if self.learner.loss.probabilistic() else 0.0
        self.examples += len(which)
        self.updates += 1
        self.mistakes += int((single > limit).sum())
        self.loss += float(total.detach())

    def predictor(self) -> NetworkPredictor:
        """The network as it is now, or its average."""
        weights = {
            name: tensor.detach().cpu().numpy().copy() for name, tensor in self.adam.kept().items()
        }
        return NetworkPredictor(self.network.spec, weights, self.learner.device)

    def restored(self, predictor: NetworkPredictor) -> NetworkPredictor:
        predictor.device = self.learner.device
        return predictor

    def support(self) -> tuple[int, float]:
        slots = [*self.adam.slots.values(), *self.adam.tables.values()]
        tensors = [slot.weights.detach() for slot in slots]
        nonzero = sum(int(torch.count_nonzero(tensor)) for tensor in tensors)
        return nonzero, sum(float(tensor.abs().sum(dtype=torch.float64)) for tensor in tensors)

    def arrays(self) -> dict[str, np.ndarray]:
        named = {name: t.detach().cpu().numpy().copy() for name, t in self.adam.tensors()}
        return {
            **named,
            "tally.counts": np.array([self.examples, self.updates, self.mistakes, self.adam.steps]),
            "tally.sums": np.array([self.loss, self.adam.log_share]),
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        saved = []
        for name, tensor in self.adam.tensors():
            dtype = np.float64 if tensor.dtype == torch.float64 else np.float32
            array = array_of(arrays, name, dtype, tuple(tensor.shape))
            if not np.isfinite(array).all():
                raise ModelError(f"a number of {name} is not finite")
            saved.append(array)
        counts = array_of(arrays, "tally.counts", np.int64, (4,)).tolist()
        sums = array_of(arrays, "tally.sums", np.float64, (2,)).tolist()
        if min(counts) < 0 or not all(map(math.isfinite, sums)):
            raise ModelError(f"it counts {counts}, with sums {sums}")
        with torch.no_grad():
            for (_, tensor), array in zip(self.adam.tensors(), saved, strict=True):
                tensor.copy_(torch.from_numpy(np.array(array)))
        self.examples, self.updates, self.mistakes, self.adam.steps = counts
        self.loss, self.adam.log_share = sums

    def details(self) -> Event:
        device, threads = self.device.type, self.learner.threads
        return {"device": device, "threads": threads, "counted": "unsure"}

    def close(self) -> None:
        torch.set_num_threads(self._threads_before)
