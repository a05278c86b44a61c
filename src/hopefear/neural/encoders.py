"""Encoders: a vector for every token, from what it is and what stands around it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from hopefear.neural.inputs import Inputs


class Noise:
    """Random choices of one step of training: what is left out.

    They are drawn on the CPU whatever the device, so that all devices draw the same.

    Parameters
    ----------
    seed : int
        Fixes them.
    rate : float
        Share of the numbers between layers that is left out.

    Examples
    --------
    >>> Noise(1, 0.5).shared(torch.ones(1, 2, 8)).unique().tolist()
    [0.0, 2.0]
    """

    def __init__(self, seed: int, rate: float) -> None:
        self.rate, self._generator = rate, torch.Generator().manual_seed(seed)

    def chances(self, *shape: int) -> torch.Tensor:
        """Numbers between 0 and 1."""
        return torch.rand(*shape, generator=self._generator)

    def shared(self, x: torch.Tensor) -> torch.Tensor:
        """Leave out the same numbers of all tokens of a sentence (``x`` is [B, T, D])."""
        if self.rate == 0.0:
            return x
        mask = (self.chances(x.shape[0], 1, x.shape[2]) >= self.rate) / (1.0 - self.rate)
        return x * mask.to(x.device, x.dtype, non_blocking=True)

    def factors(self, ids: torch.Tensor) -> torch.Tensor | None:
        """What each of some features counts, 0 where it is left out; None where none is."""
        if self.rate == 0.0:
            return None
        mask = (self.chances(*ids.shape) >= self.rate) / (1.0 - self.rate)
        return mask.to(ids.device, torch.float32, non_blocking=True)


class CharacterCNN(nn.Module):
    """A vector of a word: filters over three characters, each at its highest."""

    def __init__(self, n: int, width: int, out: int) -> None:
        super().__init__()
        self.vectors = nn.Embedding(n + 1, width, padding_idx=0)  # 0 is no character
        self.filters = nn.Conv1d(width, out, 3, padding=1)

    def forward(self, spellings: torch.Tensor) -> torch.Tensor:
        heights = self.filters(self.vectors(spellings).transpose(1, 2)).relu()
        present = (spellings > 0).unsqueeze(1)
        return (heights * present).amax(dim=2)


class CharacterLSTM(nn.Module):
    """A vector of a word: where an LSTM ends that reads it forwards, and one that reads it back."""

    def __init__(self, n: int, width: int, out: int) -> None:
        super().__init__()
        self.vectors = nn.Embedding(n + 1, width, padding_idx=0)
        self.lstm = nn.LSTM(width, -(-out // 2), batch_first=True, bidirectional=True)

    def forward(self, spellings: torch.Tensor) -> torch.Tensor:
        lengths = (spellings > 0).sum(dim=1).clamp(min=1).cpu()
        packed = pack_padded_sequence(
            self.vectors(spellings), lengths, batch_first=True, enforce_sorted=False
        )
        _, (ends, _) = self.lstm(packed)
        return torch.cat([ends[0], ends[1]], dim=1)


class BiLSTM(nn.Module):
    """LSTMs in both directions, on each other, with dropout that is shared over time."""

    def __init__(self, width: int, hidden: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.LSTM(2 * hidden if k else width, hidden, batch_first=True, bidirectional=True)
            for k in range(layers)
        )
        for layer in self.layers:
            for name, parameter in layer.named_parameters():
                if name.startswith("bias_ih"):  # gates that forget begin open
                    parameter.data[hidden : 2 * hidden] = 1.0

    def forward(self, x: torch.Tensor, inputs: Inputs, noise: Noise | None) -> torch.Tensor:
        for layer in self.layers:
            x = x if noise is None else noise.shared(x)
            if inputs.equal:  # packing costs a fifth of the time on a CPU
                x = layer(x)[0]
                continue
            packed = pack_padded_sequence(x, inputs.lengths, batch_first=True, enforce_sorted=False)
            x = pad_packed_sequence(layer(packed)[0], batch_first=True)[0]
        return x if noise is None else noise.shared(x)


class TokenEncoder(nn.Module):
    """Words, shapes, columns and characters, then a BiLSTM: [B, T, ``width``].

    The vectors of words are given by the caller, who knows which of them change.

    Parameters
    ----------
    spec : mapping
        ``slots`` (family to size), ``characters``, ``word_dim``, ``shape_dim``, ``column_dim``,
        ``char``, ``char_dim``, ``char_hidden``, ``hidden``, ``layers``; see
        :func:`encoder_spec`.
    """

    def __init__(self, spec: Mapping[str, Any]) -> None:
        super().__init__()
        width = spec["word_dim"]
        self.slots = nn.ModuleDict()
        for name, size in spec["slots"].items():
            dim = {"word": 0, "shape": spec["shape_dim"]}.get(name, spec["column_dim"])
            if dim:
                self.slots[f"of_{name}"] = nn.Embedding(size, dim)
                width += dim
        self.characters: nn.Module | None = None
        if spec["char"] != "none":
            kind = {"cnn": CharacterCNN, "lstm": CharacterLSTM}[spec["char"]]
            self.characters = kind(spec["characters"], spec["char_dim"], spec["char_hidden"])
            width += spec["char_hidden"] + spec["char_hidden"] % 2 * (spec["char"] == "lstm")
        self.lstm = BiLSTM(width, spec["hidden"], spec["layers"])
        self.width = 2 * spec["hidden"]

    def forward(
        self, inputs: Inputs, words: torch.Tensor, noise: Noise | None = None
    ) -> torch.Tensor:
        parts = [words]
        for name, table in self.slots.items():
            parts.append(table(inputs.slots[name.removeprefix("of_")]))
        if self.characters is not None:
            spelled = self.characters(inputs.spellings)
            parts.append(nn.functional.embedding(inputs.spelled, spelled))
        return self.lstm(torch.cat(parts, dim=2), inputs, noise)


def encoder_spec(learner: Any, features: Any) -> dict[str, Any]:
    """What :class:`TokenEncoder` is built from: sizes of the input, parameters of the learner."""
    vectors = features.vectors
    width = learner.word_dim or (100 if vectors is None else vectors.width)
    names = ("shape_dim", "column_dim", "char", "char_dim", "char_hidden", "hidden", "layers")
    return {
        "slots": {name: len(features.families[name]) for name in features.slots},
        "characters": len(features.families["character"]),
        "templates": len(features.families["template"]),
        "word_dim": width,
        **{name: getattr(learner, name) for name in names},
    }
