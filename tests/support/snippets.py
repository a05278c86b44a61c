"""The snippets of a page: Python and commands, run in the order of the page in one folder.

A snippet is a fenced block of ``python`` or ``console``, or an indented one that holds examples
(``>>>``) or lines that begin with ``hopefear``. Comments, which readers do not see, say what is
special about the snippet that follows, or, in the plural, about the whole page:

    <!-- snippet run: PYTHON -->            hidden Python or command: makes files, or checks `out`
    <!-- snippet file: edges.toml -->       the block that follows, of any kind, becomes this file
    <!-- snippet small: 1000=10 500=5 -->   texts to replace, so that a test need not wait
    <!-- snippet needs: neural -->          runs only where this extra is installed
    <!-- snippet skip: REASON -->           is not run; commands are still parsed
    <!-- snippets files: svm txt -->        train, dev, test and new of these kinds are there
"""

from __future__ import annotations

import contextlib
import doctest
import glob
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import tuning_files
from places import ROOT

from hopefear.cli import BY_TASK, main, parser_of

_MARK = re.compile(r"<!-- snippet(s?) (\w+):?\s(.*?)\s*-->", re.DOTALL)
_PIECE = re.compile(
    r"(?P<mark><!-- snippets? .*?-->)"
    r"|^(?P<fence>`{3,})(?P<kind>\w*)[^\n]*\n(?P<body>.*?)^(?P=fence)[ ]*$"
    r"|(?:(?<=\n\n)|\A)(?P<indented>(?: {4}[^\n]*\n(?:\n+(?= {4}))?)+)",
    re.DOTALL | re.MULTILINE,
)
_SHELL = {"cat", "cut", "echo", "grep", "gzip", "head", "ls", "mkdir", "paste", "printf", "sed",
          "sort", "tail", "tr", "wc", "xz"}  # fmt: skip
_LEARNING = {"train", "compare"}  # two passes, and small parsers, unless a page says otherwise
_ENDLESS = {"serve"}  # answers until it is stopped: its commands are parsed


@dataclass
class Snippet:
    """One block of a page: ``kind`` is python, examples, console, hidden or file."""

    kind: str
    text: str
    line: int
    marks: dict[str, str] = field(default_factory=dict)

    @property
    def commands(self) -> list[str]:
        """The commands of a console block, a line each, without what they print."""
        lines = self.text.replace("\\\n", " ").splitlines()
        words = (line.strip().removeprefix("$ ") for line in lines)
        prompted = any(line.strip().startswith("$ ") for line in lines)
        firsts = (lambda w: True) if prompted else (lambda w: re.search(r"(^|\| )hopefear \w", w))
        return [
            re.sub(r"\s+# .*", "", word)
            for word, line in zip(words, lines, strict=True)
            if firsts(word) and (not prompted or line.strip().startswith("$ "))
        ]

    @property
    def extras(self) -> list[str]:
        """The extras that it needs."""
        return re.findall(r"\w+", self.marks.get("needs", ""))


def snippets_of(text: str) -> list[Snippet]:
    """The snippets of a page, each with the marks before it and those of the page."""
    found, marks, of_page = [], {}, {}
    for piece in _PIECE.finditer(text):
        line = text.count("\n", 0, piece.start()) + 1
        kind = ""
        if piece["mark"]:
            plural, name, content = _MARK.fullmatch(piece["mark"]).groups()
            if name not in ("run", "file", "small", "needs", "skip", "files"):
                raise ValueError(f"line {line}: a snippet cannot have the mark {name!r}")
            if name == "run":
                kind = "console" if content.startswith("hopefear ") else "hidden"
                found.append(Snippet(kind, content, line, marks))
                marks = {}
            else:
                (of_page if plural else marks)[name] = content
            continue
        body = piece["body"] or re.sub("^ {4}", "", piece["indented"] or "", flags=re.M)
        if "file" in marks:
            kind = "file"
        elif piece["kind"] in ("python", "pycon", "py") or (not piece["kind"] and ">>> " in body):
            kind = "examples" if ">>> " in body else "python"
        elif piece["kind"] in ("console", "sh", "shell", "bash") or not piece["kind"]:
            kind = "console"
        if kind and (kind != "console" or Snippet(kind, body, line).commands):
            found.append(Snippet(kind, body, line, marks))
        marks = {}
    for one in found:
        one.marks = {**of_page, **one.marks}
    return found


def pages() -> list[str]:
    """README and every page below docs."""
    return ["README.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md"))]


def command_is_understood(line: str) -> None:
    """Parse what stands behind ``hopefear``; a synopsis has brackets and a letter for a number."""
    plain = re.sub(r"(--seed) [A-Z]\b", r"\1 1", re.sub(r"[\[\]]", "", line))
    for stage in _stages(plain):
        if stage.words[0] != "hopefear" or any(word.startswith("$") for word in stage.words):
            continue
        verb, *words = stage.words[1:]
        task = words.pop(0) if verb in BY_TASK and "--config" not in words else None
        if "--config" not in words:  # else the file has what is needed
            parser_of(verb, task).parse_args(words)


class Page:
    """What the snippets of one page share: a folder, names, and what was printed last."""

    def __init__(self, folder: Path, marks: dict[str, str]) -> None:
        self.folder = folder
        self.names: dict[str, object] = {"__name__": "__page__", "out": "", "err": ""}
        (folder / "examples").symlink_to(ROOT / "examples")
        for kind in marks.get("files", "").replace(",", " ").split():
            FILES[kind](folder)

    def run(self, snippet: Snippet) -> None:
        """Run it; what goes wrong is raised."""
        text = snippet.text
        for pair in shlex.split(snippet.marks.get("small", "")):
            old, new = pair.split("=", 1) if "=>" not in pair else pair.split("=>", 1)
            if old not in text:
                raise ValueError(f"the snippet has no {old!r} to make small")
            text = text.replace(old, new)
        if snippet.kind == "file":
            Path(snippet.marks["file"]).write_text(text, "utf-8")
        elif snippet.kind == "examples":
            self._examples(text, snippet.line)
        elif snippet.kind == "console":
            for command in Snippet("console", text, snippet.line).commands:
                self._command(command)
        else:
            # Lines of a traceback are those of the page.
            code = compile("\n" * snippet.line + text, "page", "exec")
            out = io.TextIOWrapper(io.BytesIO(), "utf-8")
            with contextlib.redirect_stdout(out):
                exec(code, self.names)
            if snippet.kind == "python":
                self.names["out"] = _text(out)

    def _examples(self, text: str, line: int) -> None:
        example = doctest.DocTestParser().get_doctest(text, self.names, "page", None, line)
        example.globs = self.names
        said = io.StringIO()
        runner = doctest.DocTestRunner(verbose=False)
        runner.run(example, out=said.write, clear_globs=False)
        if runner.failures or not runner.tries:
            raise AssertionError(said.getvalue() or "no examples")

    def _command(self, command: str) -> None:
        given = b""
        for stage in _stages(command):
            if stage.source:
                given = Path(stage.source).read_bytes()
            given = self._hopefear(stage.words[1:], given) if stage.words[0] == "hopefear" else (
                _shell(stage.words, given))  # fmt: skip
            if stage.target:
                with open(stage.target, "ab" if stage.more else "wb") as file:
                    file.write(given)
        self.names["out"] = given.decode()

    def _hopefear(self, words: list[str], given: bytes) -> bytes:
        if words[0] in _ENDLESS:
            return b""
        if words[0] in _LEARNING and not {"--stream", "-"} & {*words}:  # streams come once
            small = {"--epochs": "2"}
            if "parse" in words[:2] and "biaffine" not in " ".join(words):
                small |= {"--order": "1", "--features": "light", "--hash-bits": "10"}
            words = [*words, *(w for pair in small.items() if pair[0] not in words for w in pair)]
        if words[0] == "tune" and "mert" in words:
            words = [*words, "-p", "restarts=1"]
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
        before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(given), "utf-8")
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                status = main(words)
        finally:
            sys.stdin = before
        self.names["err"] = _text(err)
        if status:
            raise AssertionError(f"hopefear {shlex.join(words)}\n{self.names['err']}")
        return _text(out).encode()


@dataclass
class _Stage:
    words: list[str]
    source: str = ""
    target: str = ""
    more: bool = False


def _stages(command: str) -> list[_Stage]:
    """The programs of a pipe, with the files that they read and write."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|<>")
    lexer.whitespace_split = True
    stages, goes = [_Stage([])], ""
    for token in lexer:
        if token == "|":
            stages.append(_Stage([]))
        elif token in ("<", ">", ">>"):
            goes = token
        elif goes:
            setattr(stages[-1], "source" if goes == "<" else "target", token)
            stages[-1].more, goes = goes == ">>", ""
        else:
            stages[-1].words.extend((sorted(glob.glob(token)) if "*" in token else ()) or [token])
    return stages


def _shell(words: list[str], given: bytes) -> bytes:
    """What a small program prints; those not listed are for the reader alone."""
    if words[0] not in _SHELL:
        return b""
    return subprocess.run(words, input=given, capture_output=True, check=True, timeout=20).stdout


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    return stream.buffer.getvalue().decode()


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Work in a folder, with this Python first on the path."""
    before, path = Path.cwd(), os.environ["PATH"]
    os.chdir(folder)
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{path}"
    try:
        yield
    finally:
        os.chdir(before)
        os.environ["PATH"] = path


def _sentences(folder: Path) -> None:
    from hopefear.data.generators import chunks

    for seed, name in enumerate(("train", "dev", "test", "new"), 1):
        text = chunks(8 if name == "train" else 4, seed=seed)
        pairs = list(zip(text.columns["word"].texts(), text.columns["label"].texts(), strict=True))
        (folder / f"{name}.txt").write_text("\n".join(
            "".join(f"{word} {label}\n" for word, label in pairs[first:after])
            for first, after in pairwise(text.starts)
        ))  # fmt: skip


def _rows(folder: Path) -> None:
    from hopefear.data.generators import sparse_linear

    data = sparse_linear(120, 50, per_row=(5, 10), true_weights=20, seed=1)
    lines = [
        f"{label} " + " ".join(f"{j + 1}:{v:.4f}" for j, v in zip(
            data.indices[first:after].tolist(), data.values[first:after].tolist(), strict=True
        )) + "\n"
        for label, (first, after) in zip(data.labels.tolist(), pairwise(data.indptr), strict=True)
    ]  # fmt: skip
    _parts(folder, "svm", lines)


def _parts(folder: Path, suffix: str, lines: list[str]) -> None:
    """Write a sixth of the lines each to test, dev and new, and the rest to train."""
    step = len(lines) // 6
    for k, name in enumerate(("test", "dev", "new", "train")):
        part = lines[k * step :] if name == "train" else lines[k * step : (k + 1) * step]
        (folder / f"{name}.{suffix}").write_text("".join(part))


def _lists(folder: Path) -> None:
    import json

    from hopefear.data.generators import candidate_lists

    made = candidate_lists(42, doubt=3.0, seed=1)
    ids, values = made.sparse.ids.tolist(), made.sparse.values.tolist()
    candidates = [
        {"score": made.scores[c], "cost": made.costs[c], "text": f"candidate {c}",
         "features": {made.sparse.names[ids[e]]: values[e] for e in range(first, after)}}
        for c, (first, after) in enumerate(pairwise(made.sparse.indptr.tolist()))
    ]  # fmt: skip
    lines = [
        json.dumps({"id": name, "candidates": candidates[first:after]}) + "\n"
        for name, (first, after) in zip(made.ids, pairwise(made.starts.tolist()), strict=True)
    ]
    _parts(folder, "jsonl", lines)


def _trees(folder: Path) -> None:
    from hopefear.data.grammar import synthetic_treebank

    for seed, name in enumerate(("train", "dev", "test", "new"), 1):
        text = synthetic_treebank(2 if name == "train" else 1, seed=seed).file.text
        (folder / f"{name}.conllu").write_bytes(text)


def _translations(folder: Path) -> None:
    for name, first, after in (("train", 0, 16), ("dev", 16, 28), ("test", 28, 40)):
        tuning_files.write(folder, name, first, after)
        for suffix, other in (("ref", "en"), ("src", "de")):
            (folder / f"{name}.{other}").write_text((folder / f"{name}.{suffix}").read_text())


FILES = {
    "txt": _sentences,
    "svm": _rows,
    "jsonl": _lists,
    "conllu": _trees,
    "nbest": _translations,
}
