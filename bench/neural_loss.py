"""The loss on a network's scores alone, forward and backward, beside pytorch-crf and torch-struct.

    python bench/neural_loss.py                       # kernels and tensor code, on the CPU
    python bench/neural_loss.py --device cuda         # scores stay on the GPU
    python bench/neural_loss.py --shapes 8x20x9 --repeats 5

Every batch has random scores and no padding; all of them take turns, and of ``--repeats`` turns the
minimum counts. On a CPU all use as many threads as ``--threads`` says, and times are CPU seconds;
on a GPU they are wall seconds from idle to idle. The first column is the part of pytorch-crf's
time. "kernels" are the library's compiled code over the batch in threads (from a GPU scores are
copied to the host and gradients back), "tensors" its batched PyTorch code.

Needs PyTorch. Rivals that are not installed are left out, and so are the kernels without Numba: on
a machine with neither, ``PYTHONPATH=src`` and the one file of pytorch-crf as ``torchcrf.py`` beside
this one will do.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import platform
import random
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch

from hopefear.neural.tensor_chains import best_paths, log_losses

RIVAL = "pytorch-crf, log loss"
GOALS = {
    "cpu": {
        "kernels, log loss": (RIVAL, 0.2, 0.1),
        "kernels, SAPO n=5": ("kernels, log loss", 2.0, 1.2),
    },
    "cuda": {"tensors, log loss": (RIVAL, 0.7, 0.3)},
}
Task = Callable[[], Any]


class Problem:
    """A padded batch of scores that have gradients, on a device."""

    def __init__(self, shape: tuple[int, int, int], device: str, seed: int = 1) -> None:
        n, longest, labels = shape
        generator = torch.Generator().manual_seed(seed)

        def drawn(*sizes: int) -> torch.Tensor:
            scores = torch.randn(*sizes, generator=generator).to(device)
            return scores.requires_grad_()

        self.nodes, self.transitions = drawn(n, longest, labels), drawn(labels, labels)
        self.start, self.end = drawn(labels), drawn(labels)
        self.gold = torch.randint(labels, (n, longest), generator=generator).to(device)
        self.lengths = torch.full((n,), longest, device=device)
        self.scores = (self.nodes, self.transitions, self.start, self.end)

    def backward(self, loss: torch.Tensor) -> torch.Tensor:
        """Gradients of all scores, from none."""
        for scores in self.scores:
            scores.grad = None
        loss.backward()
        return loss.detach()


def crf_tasks(problem: Problem) -> dict[str, Task]:
    """pytorch-crf: its transitions, at their size, are those of the problem."""
    import torchcrf

    crf = torchcrf.CRF(problem.nodes.shape[2], batch_first=True).to(problem.nodes.device)
    crf.transitions, crf.start_transitions, crf.end_transitions = (
        torch.nn.Parameter(scores) for scores in problem.scores[1:]
    )
    mask = torch.ones_like(problem.gold, dtype=torch.bool)

    def step() -> torch.Tensor:
        crf.zero_grad()
        return problem.backward(-crf(problem.nodes, problem.gold, mask, reduction="mean"))

    return {RIVAL: step, "pytorch-crf, Viterbi": lambda: crf.decode(problem.nodes.detach(), mask)}


def struct_tasks(problem: Problem) -> dict[str, Task]:
    """torch-struct wants the scores of all label pairs at all positions."""
    from torch_struct import LinearChainCRF

    warnings.filterwarnings("ignore", message=".*does not define `arg_constraints`")

    def step() -> torch.Tensor:
        nodes, n = problem.nodes, problem.nodes.shape[0]
        pairs = nodes[:, 1:, :, None] + problem.transitions.T
        first = torch.nn.functional.pad(nodes[:, :1, None, :], (0, 0, 0, 0, 0, pairs.shape[1] - 1))
        chain = LinearChainCRF(pairs + first)
        parts = LinearChainCRF.struct.to_parts(problem.gold, nodes.shape[2])
        return problem.backward((chain.partition - (parts * chain.log_potentials).sum()).sum() / n)

    return {"torch-struct, log loss": step}


def kernel_tasks(problem: Problem) -> dict[str, Task]:
    """The library's kernels behind PyTorch's gradients."""
    from hopefear.losses.log import Log
    from hopefear.losses.perceptron import Perceptron
    from hopefear.losses.sapo import SAPO
    from hopefear.neural import ChainLoss

    def step(loss: Any) -> Task:
        module = ChainLoss(loss, tensors=False)
        nodes, transitions, start, end = problem.scores
        inputs = (nodes, transitions, problem.gold, None, start, end)
        return lambda: problem.backward(module(*inputs))

    found = ChainLoss(Log(), tensors=False)
    detached = [scores.detach() for scores in problem.scores]
    return {
        "kernels, log loss": step(Log()),
        "kernels, SAPO n=5": step(SAPO(5)),
        "kernels, perceptron": step(Perceptron()),
        "kernels, Viterbi": lambda: found.best(*detached[:2], None, *detached[2:]),
    }


def tensor_tasks(problem: Problem) -> dict[str, Task]:
    """The library's tensor code, with the check that a loss is finite."""

    def with_ends() -> torch.Tensor:
        nodes = problem.nodes.clone()
        nodes[:, 0] += problem.start
        nodes[:, -1] += problem.end
        return nodes

    def step() -> torch.Tensor:
        inputs = (with_ends(), problem.transitions, problem.gold, problem.lengths)
        values, exact = log_losses(*inputs)
        if not exact:
            raise SystemExit("scores are beyond what products can hold")
        return problem.backward(values.mean())

    @torch.no_grad()
    def search(n: int) -> torch.Tensor:
        return best_paths(with_ends(), problem.transitions, problem.lengths, n)[0].cpu()

    return {
        "tensors, log loss": step,
        "tensors, Viterbi": lambda: search(1),
        "tensors, 5 best": lambda: search(5),
    }


def graph_tasks(problem: Problem) -> dict[str, Task]:
    """The same launches, recorded once for a shape and played back (CUDA graphs)."""
    if not problem.nodes.is_cuda:
        return {}

    class Loss(torch.nn.Module):
        def forward(self, nodes: torch.Tensor, transitions: torch.Tensor) -> torch.Tensor:
            return log_losses(nodes, transitions, problem.gold, problem.lengths)[0].mean()

    sample = tuple(s.detach().clone().requires_grad_() for s in problem.scores[:2])
    recorded = torch.cuda.make_graphed_callables(Loss(), sample)
    return {
        "tensors, log loss, recorded": lambda: problem.backward(recorded(*problem.scores[:2])),
    }


SOURCES = {
    "torchcrf": crf_tasks,
    "torch_struct": struct_tasks,
    "numba": kernel_tasks,
    "torch": tensor_tasks,
}


def measured(tasks: dict[str, Task], device: str, repeats: int) -> dict[str, dict[str, float]]:
    """Least CPU and wall milliseconds of every task."""
    best = {name: {"cpu": float("inf"), "wall": float("inf")} for name in tasks}
    order = random.Random(1)

    def wait() -> None:
        if device == "cuda":
            torch.cuda.synchronize()

    for task in tasks.values():  # what is compiled or set up once
        task()
    for _ in range(repeats):
        for name in order.sample(list(tasks), len(tasks)):
            wait()
            wall, cpu = time.perf_counter(), time.process_time()
            tasks[name]()
            wait()
            seconds = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
            best[name] = {key: min(best[name][key], 1e3 * seconds[key]) for key in seconds}
    return best


def check(tasks: dict[str, Task]) -> None:
    """All log losses are the same number."""
    losses = {
        name: float(task())
        for name, task in tasks.items()
        if "log loss" in name and not name.startswith(("torch-struct", "tensors, log loss, "))
    }
    if losses and max(losses.values()) - min(losses.values()) > 1e-3 * min(losses.values()):
        raise SystemExit(f"not the same loss: {losses}")


def run(shape: tuple[int, int, int], args: argparse.Namespace) -> dict[str, Any]:
    """Measures one shape: prints a table, returns its rows."""
    problem, tasks = Problem(shape, args.device), {}
    for module, tasks_of in SOURCES.items():
        large = shape[0] * shape[1] * shape[2] ** 2 > 1e6 and module == "torch_struct"
        if importlib.util.find_spec(module) is not None and not large:
            tasks |= tasks_of(problem)
    if args.recorded:
        tasks |= graph_tasks(problem)
    check(tasks)
    times = measured(tasks, args.device, args.repeats)
    clock = "wall" if args.device == "cuda" else "cpu"
    rival = times.get(RIVAL, {}).get(clock)
    print(f"\n{shape[0]} sequences x {shape[1]} tokens x {shape[2]} labels, {args.device}")
    print(f"{'part of pytorch-crf':>20} {'CPU ms':>9} {'wall ms':>9}")
    for name, seconds in times.items():
        part = f"{seconds[clock] / rival:.3f}" if rival else "-"
        print(f"{part:>20} {seconds['cpu']:9.2f} {seconds['wall']:9.2f}  {name}")
    goals = {}
    for name, (rival_name, must, stretch) in GOALS[args.device].items():
        if name in times and rival_name in times:
            part = times[name][clock] / times[rival_name][clock]
            word = "stretch" if part <= stretch else "met" if part <= must else "missed"
            print(f"  {name} / {rival_name}: {part:.3f}, must {must}, stretch {stretch}: {word}")
            goals[name] = {"part": part, "must": must, "stretch": stretch, "goal": word}
    return {"shape": shape, "milliseconds": times, "goals": goals}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--shapes", nargs="+", default=["32x40x22", "128x80x45"], metavar="BxTxL")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--recorded", action="store_true", help="try CUDA graphs, too")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    shapes = [tuple(map(int, shape.split("x"))) for shape in args.shapes]
    rows = [run((n, longest, labels), args) for n, longest, labels in shapes]
    name = torch.cuda.get_device_name() if args.device == "cuda" else platform.processor()
    settings = {"device": name, "torch": torch.__version__, "threads": args.threads, "rows": rows}
    print(f"\n{name}, torch {torch.__version__}, {args.threads} threads")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(settings, file, indent=1)


if __name__ == "__main__":
    main()
