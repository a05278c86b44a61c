"""An epoch of ``bilstm-crf``, with our loss and with pytorch-crf's on the same encoder.

    python bench/neural_epoch.py                        # the first 2,000 sentences of CoNLL-2000
    python bench/neural_epoch.py --sentences 8936 --device cuda

Both train the same network from the same seed, on the same batches; only the loss differs. They
take turns, and of ``--repeats`` epochs the quickest counts: CPU seconds with ``--threads``, or wall
seconds from idle to idle on a GPU. "the loss alone" is its forward and backward on the scores of
all batches of an epoch, taken off the network, and "share" is that part of the epoch.

Needs PyTorch, pytorch-crf, and CoNLL-2000 and the vectors below HOPEFEAR_DATA or ../shared/data.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torchcrf

from hopefear.data.token_files import read_sentences
from hopefear.neural.trainer import NetworkTrainer
from hopefear.structures.chain.searches import search_named
from hopefear.tasks import recipe
from hopefear.tasks.tag.model import chain_of
from hopefear.tasks.tag.task import dataset
from hopefear.training.passes import Passes
from hopefear_papers.frame import find_data

Criterion = Callable[..., torch.Tensor]


def new_trainer(args: argparse.Namespace) -> tuple[Any, Passes]:
    """A network before its first pass."""
    folder = find_data(None)
    if folder is None:
        raise SystemExit("no data: set HOPEFEAR_DATA to the folder that holds conll2000")
    sentences = read_sentences(folder / "conll2000" / "train.txt.gz").sentences
    sentences = sentences.take(np.arange(min(args.sentences, len(sentences))))
    params = {
        "vectors": str(folder / "glove100" / "vectors.npz"),
        "device": args.device,
        "threads": args.threads,
        "hidden": args.hidden,
        "batch_size": args.batch_size,
    }
    network: Any = recipe("bilstm-crf", "tag")
    data: Any = dataset(sentences, network.inputs(params, "chunking"))
    chain = chain_of(data.features, data.labels, 1, search_named("astar", 50))
    passes = Passes(data, 1)
    return NetworkTrainer(chain, network.build(**params), passes, args.threads), passes


def pytorch_crf(trainer: Any) -> Criterion:
    """pytorch-crf's loss, with the transitions of the network."""
    crf = torchcrf.CRF(trainer.network.spec["labels"], batch_first=True).to(trainer.device)
    for ends in (crf.start_transitions, crf.end_transitions):  # which ours does not learn
        torch.nn.init.zeros_(ends.requires_grad_(False))
    del crf.transitions

    def criterion(scores: torch.Tensor, gold: np.ndarray, lengths: Any) -> torch.Tensor:
        crf.transitions = trainer.network.transitions
        lengths = torch.as_tensor(lengths, device=scores.device)
        mask = torch.arange(scores.shape[1], device=scores.device) < lengths[:, None]
        return -crf(scores, torch.as_tensor(gold, device=scores.device), mask, reduction="none")

    return criterion


def seconds(args: argparse.Namespace, work: Callable[[], None]) -> float:
    """CPU seconds, or wall seconds of a GPU from idle to idle."""
    clock = time.process_time if args.device == "cpu" else time.perf_counter
    start = clock()
    work()
    if args.device != "cpu":
        torch.cuda.synchronize()
    return clock() - start


def loss_alone(args: argparse.Namespace, trainer: Any, passes: Passes) -> float:
    """Forward and backward of the loss on the scores of all batches of the first pass."""
    order = np.concatenate([order for _, order in passes.pieces(0)])
    table, rows, labels = trainer._table, trainer._rows, trainer.network.spec["labels"]
    batches = []
    for rows_of_batch in trainer._plan(table, order, 0):
        inputs = table.batch(rows_of_batch, trainer.device)
        shape = (*inputs.slots["word"].shape, labels)
        scores = torch.randn(shape, device=trainer.device, requires_grad=True)
        batches.append((scores, trainer.network.gold(rows, rows_of_batch), inputs.lengths))

    def work() -> None:
        for scores, gold, lengths in batches:
            trainer.criterion(scores, gold, lengths).sum().backward()

    return seconds(args, work)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--hidden", type=int, default=200)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    epochs: dict[str, list[float]] = {"ours": [], "pytorch-crf": []}
    alone: dict[str, list[float]] = {"ours": [], "pytorch-crf": []}
    losses = {}
    for repeat in range(args.repeats + 1):
        for name in epochs:
            trainer, passes = new_trainer(args)
            if name == "pytorch-crf":
                trainer.criterion = pytorch_crf(trainer)
            epoch_seconds = seconds(args, lambda t=trainer, p=passes: list(t.learn_pieces(p)))  # type: ignore[misc]
            part = loss_alone(args, trainer, passes)
            losses[name] = trainer.loss
            if repeat:  # the first one compiles
                epochs[name].append(epoch_seconds)
                alone[name].append(part)
    clock = "CPU" if args.device == "cpu" else "wall"
    print(f"{args.sentences} sentences, {args.device}, torch {torch.__version__}; {clock} seconds")
    print(f"{'':12} {'epoch':>8} {'the loss alone':>15} {'share':>7} {'summed loss':>12}")
    for name in epochs:
        epoch_seconds, part = min(epochs[name]), min(alone[name])
        share = part / epoch_seconds
        print(f"{name:12} {epoch_seconds:8.2f} {part:15.3f} {share:7.1%} {losses[name]:12.1f}")
    print(f"epoch, part of pytorch-crf: {min(epochs['ours']) / min(epochs['pytorch-crf']):.3f}")


if __name__ == "__main__":
    main()
