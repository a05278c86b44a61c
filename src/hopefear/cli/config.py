"""``--config FILE.toml``: the options of a command, from a file."""

from __future__ import annotations

import argparse
import difflib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hopefear.errors import HopefearError

_OPTION = "--config"


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

    >>> read_config(["--train", "train.txt"])
    ('', {})
    """
    path = ""
    for word, after in zip(words, [*words[1:], ""], strict=True):
        if word.partition("=")[0] == _OPTION:
            path = word.partition("=")[2] or after
    if not path:
        return "", {}
    try:
        with open(path, "rb") as file:
            return path, tomllib.load(file)
    except OSError as error:
        raise HopefearError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else error
        raise HopefearError(f"{path} is not TOML: {reason}") from None


def with_config(
    words: Sequence[str], parser: argparse.ArgumentParser, path: str, config: Mapping[str, Any]
) -> list[str]:
    """The words of a command line behind those that a file gives; what is typed replaces them."""
    typed = {word.partition("=")[0] for word in words if word.startswith("-")}
    actions = {_key(name): a for a in parser._actions for name in (*a.option_strings, a.dest)}
    more: list[str] = []
    last: list[str] = []
    for key, value in config.items():
        action = actions.get(_key(key))
        if action is None or action.dest in ("help", "config"):
            near = difflib.get_close_matches(_key(key), actions, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            parser.error(f"{path}: {parser.prog} has no option {key!r}{hint}")
        if not action.option_strings:
            last += map(str, value if isinstance(value, list) else [value])
        elif action.dest == "param":
            more += _parameters(action.option_strings[0], value, words, path)
        elif not typed.intersection(action.option_strings):
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
            yield from (option, f"{name}={_text(value, path, f'param.{name}')}")


def _spelled(action: argparse.Action, value: Any, path: str, key: str) -> list[str]:
    """An option and its value, as they would be typed."""
    option = action.option_strings[-1]
    if action.nargs == 0:  # a flag
        if not isinstance(value, bool):
            raise HopefearError(f"{path}: {key} takes true or false, not {value!r:.60}")
        if isinstance(action, argparse.BooleanOptionalAction):
            return [action.option_strings[0 if value else -1]]
        return [option] if value else []
    if isinstance(value, Mapping):
        value = ",".join(f"{k}={_text(v, path, f'{key}.{k}')}" for k, v in value.items())
    if not isinstance(value, list):
        return [f"{option}={_text(value, path, key)}"]
    texts = [_text(one, path, key) for one in value]
    if action.nargs in ("+", "*"):
        return [option, *texts]
    if isinstance(action, argparse._AppendAction):
        return [f"{option}={text}" for text in texts]
    return [f"{option}={','.join(texts)}"]


def _text(value: Any, path: str, key: str) -> str:
    """A value as it would be typed."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise HopefearError(f"{path}: {key} is neither text nor a number: {value!r:.60}")
