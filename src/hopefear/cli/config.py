"""``--config FILE.toml``: the options of a command, from a file, and such a file of a model."""

from __future__ import annotations

import argparse
import difflib
import json
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from hopefear.cli.options import ALLOW_COMMANDS, COMMAND
from hopefear.errors import HopefearError

_OPTION = "--config"
_HEAD = "# hopefear train --config FILE.toml"
TRIAL = "trial "  # what the remark of a search begins with


def add_option(group: argparse._ArgumentGroup) -> None:
    """``--config``."""
    group.add_argument(
        _OPTION,
        metavar="FILE.toml",
        help="take options from this file too, by their names: epochs = 10, no-shuffle = true, "
        "param = {l1 = 1e-5}; what is typed goes first",
    )


def read_config(words: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Name and content of the file that a command line names; both empty where it names none.

    >>> read_config(["--train", "train.txt"]), read_config([])
    (('', {}), ('', {}))
    """
    path = _named(words)
    if not path:
        return "", {}
    from hopefear.storage import read_small

    try:
        with open(path, "rb") as file:
            return path, tomllib.loads(read_small(file, path).decode())
    except OSError as error:
        raise HopefearError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else error
        raise HopefearError(f"{path} is not TOML: {reason}") from None


def _named(words: Sequence[str]) -> str:
    path = ""
    for word, after in pairwise([*words, ""]):
        if word.partition("=")[0] == _OPTION:
            path = word.partition("=")[2] or after
    return path


def with_place_of_best(words: Sequence[str]) -> list[str]:
    """The words of a search; a file of ``--config`` that has yet to be written becomes ``--out``.

    Settings are read from a file that is there, unless an earlier search wrote it and no other
    place for the best is typed.

    >>> with_place_of_best(["tag", "--trials", "9", "--config", "no-such-file.toml"])
    ['tag', '--trials', '9', '--out', 'no-such-file.toml']
    """
    path = _named(words)
    typed = {word.partition("=")[0] for word in words}
    if not path or "--out" in typed or (os.path.exists(path) and not _is_best(path)):
        return list(words)
    return [
        "--out" + w.removeprefix(_OPTION) if w.partition("=")[0] == _OPTION else w for w in words
    ]


def _is_best(path: str) -> bool:
    """Whether a search wrote this file."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline(99).rstrip() == _HEAD and file.read(9).startswith(f"# {TRIAL}")
    except OSError:
        return False


def with_config(
    words: Sequence[str], parser: argparse.ArgumentParser, path: str, config: Mapping[str, Any]
) -> list[str]:
    """The words of a command line behind those that a file gives; what is typed replaces them.

    A file may name files and numbers, not programs: HopefearError for a command that is not typed,
    unless ``--allow-commands`` is.
    """
    typed = {word.partition("=")[0] for word in words if word.startswith("-")}
    actions = {_key(name): a for a in parser._actions for name in (*a.option_strings, a.dest)}
    more: list[str] = []
    last: list[str] = []
    for key, value in config.items():
        action = actions.get(_key(key))
        if action is None or action.dest in ("help", "config", "allow_commands"):
            near = difflib.get_close_matches(_key(key), actions, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            parser.error(f"{path}: {parser.prog} has no option {key!r}{hint}")
        if not action.option_strings:
            last += _words(value if isinstance(value, list) else [value], path, key)
        elif action.dest == "param":
            more += _parameters(action.option_strings[0], value, words, path)
        elif not typed.intersection(action.option_strings):
            if action.metavar == COMMAND and ALLOW_COMMANDS not in typed:
                raise HopefearError(
                    f"{path}: {key} is a command, {value!r:.60}, and a file runs none: type "
                    f"{action.option_strings[-1]} {COMMAND}, or {ALLOW_COMMANDS} to run this one"
                )
            more += _spelled(action, value, path, key)
    return [*more, *words, *last]


def _key(name: str) -> str:
    return name.lstrip("-").replace("_", "-")


def _parameters(option: str, table: Any, words: Sequence[str], path: str) -> Iterator[str]:
    """``-p KEY=VALUE`` for every parameter that is not typed."""
    if not isinstance(table, Mapping):
        raise HopefearError(f"{path}: param is a table, such as param = {{l1 = 1e-5}}")
    typed = {word.partition("=")[0].strip() for word in words}
    for name, value in table.items():
        if name not in typed:
            yield option
            yield from _words([f"{name}={_text(value, path, f'param.{name}')}"], path, "param")


def _spelled(action: argparse.Action, value: Any, path: str, key: str) -> list[str]:
    """An option and its value, as they would be typed."""
    option = action.option_strings[-1]
    if action.nargs == 0:  # a flag
        if not isinstance(value, bool):
            raise HopefearError(f"{path}: {key} takes true or false, not {value!r:.60}")
        if isinstance(action, argparse.BooleanOptionalAction):
            wanted = value != key.replace("_", "-").startswith("no-")
            return [action.option_strings[0 if wanted else -1]]
        return [option] if value else []
    if isinstance(value, Mapping):
        value = ",".join(f"{k}={_text(v, path, f'{key}.{k}')}" for k, v in value.items())
    if not isinstance(value, list):
        return [f"{option}={_text(value, path, key)}"]
    texts = _words(value, path, key)
    if action.nargs in ("+", "*"):
        return [option, *texts]
    if isinstance(action, argparse._AppendAction):
        return [f"{option}={text}" for text in texts]
    return [f"{option}={','.join(texts)}"]


def _words(values: Sequence[Any], path: str, key: str) -> list[str]:
    """Values as words of their own, none of which the parser takes for an option."""
    texts = [_text(value, path, key) for value in values]
    for text in texts:
        if text.startswith("--"):
            raise HopefearError(
                f"{path}: {key} is {text!r:.60}, which reads as an option; a file of that name is "
                f"./{text:.60}"
            )
    return texts


def _text(value: Any, path: str, key: str) -> str:
    """A value as it would be typed."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise HopefearError(f"{path}: {key} is neither text nor a number: {value!r:.60}")


# Options of train that change no model, and those that models tell of themselves anyway.
_UNTOLD = {"model", "run", "json", "checkpoint", "checkpoint_every", "resume", "jobs", "config"}
_UNTOLD |= {"quiet", "debug", "train", "learner", "param", "epochs", "seed", "help"}
_UNTOLD |= {
    "cache",
    "cluster",
    "stream",
    "save_every",
    "save_seconds",
    "bounds",
}
# Those of search that train does not have.
_UNTOLD |= {
    "trials",
    "seconds",
    "objective",
    "study",
    "out",
    "report",
    "folds",
    "space",
    "learners",
}


def settings_typed(
    args: argparse.Namespace, parser: argparse.ArgumentParser, paths: bool = False
) -> dict[str, Any]:
    """Options of train that are not the usual ones, as a model keeps them.

    Of files that are the names, or with ``paths`` what was typed.
    """
    settings = {}
    for action in parser._actions:
        value = getattr(args, action.dest, None)
        if action.dest in _UNTOLD or value is None or value == action.default:
            continue
        many = value if isinstance(value, list) else [value]
        if action.metavar in ("FILE", "DIR") and not paths:
            many = [os.path.basename(path) for path in many]
        told = many if isinstance(value, list) else many[0]
        settings[_key(action.dest)] = told if _is_toml(told) else str(told)
    return settings


def config_of(about: Mapping[str, Any], task: str) -> str:
    """The file with which ``hopefear train --config`` makes such a model again.

    >>> about = {"learner": "rda", "seed": 1, "given": {"l1": "0.5"}, "data": {"source": "a.svm"}}
    >>> print(config_of(about, "classify"))
    # hopefear train --config FILE.toml
    task = "classify"
    train = "a.svm"
    model = "NEW.model"
    learner = "rda"
    seed = 1
    param = {l1 = "0.5"}
    <BLANKLINE>
    """
    data = about.get("data", {})
    digest = data.get("digest")
    remarks = [f"learned from data of the digest {digest}"] if digest else []
    settings = {
        "task": task,
        "train": data.get("source"),
        "model": "NEW.model",
        **{name: about.get(name) for name in ("learner", "epochs", "seed")},
        "param": about.get("given") or None,
        **about.get("config", {}),
    }
    return config_text(settings, *remarks)


def config_text(settings: Mapping[str, Any], *remarks: str) -> str:
    """Options of train as a file for ``--config``; those that TOML cannot hold are left out."""
    lines = [_HEAD, *(f"# {remark}" for remark in remarks)]
    rows = (f"{_bare(k)} = {_toml(v)}" for k, v in settings.items() if _is_toml(v))
    return "\n".join([*lines, *rows]) + "\n"


def _is_toml(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(map(_is_toml, value.values()))
    return all(map(_is_toml, value)) if isinstance(value, list) else type(value) in _PLAIN


_PLAIN = (str, int, float, bool)


def _toml(value: Any) -> str:
    """A value in one line of TOML.

    >>> _toml({"a b": [1, True, 'so "it" is']})
    '{"a b" = [1, true, "so \\\\"it\\\\" is"]}'
    """
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_bare(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, float) and not isinstance(value, bool):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)


def _bare(key: str) -> str:
    """A key, between quotes where it must be."""
    return (
        key if key and all(c.isascii() and (c.isalnum() or c in "-_") for c in key) else _toml(key)
    )
