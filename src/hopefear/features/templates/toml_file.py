"""Template files in TOML."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from hopefear.errors import InputError
from hopefear.features.templates.expressions import TemplateError, parse
from hopefear.features.templates.spec import (
    MAX_TEMPLATES,
    ON_BOTH,
    ON_EDGES,
    ON_LABELS,
    Template,
    Templates,
)

_AT_LINE = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)")
_ON = {False: ON_LABELS, True: ON_EDGES, "both": ON_BOTH}
_GROUP_KEYS = ("features", "edges", "when", "optional")
_FILE_KEYS = ("padding", "templates", "lexicons")


def parse_toml(
    text: str, source: str, read_lexicon: Callable[[str, str], tuple[str, ...]]
) -> Templates:
    """Read the text of a template file.

    Parameters
    ----------
    text : str
        The file.
    source : str
        Its path, for messages.
    read_lexicon : callable
        Entries of the lexicon of a name and a path as the file gives it.
    """
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = _AT_LINE.search(str(error))
        line = int((match and match.group(1)) or text.count("\n") + 1)
        raise InputError(source, line, f"TOML ({_AT_LINE.sub('', str(error))})") from None
    lines = _Lines(text)
    _known_keys(content, _FILE_KEYS, source, lines, "a template file")
    padding = content.get("padding", False)
    if not isinstance(padding, bool):
        raise InputError(source, lines.of_key("padding"), "padding = true or false", str(padding))
    groups = content.get("templates", [])
    if not isinstance(groups, list) or not groups:
        raise InputError(source, 0, "at least one group [[templates]]")
    found: list[Template] = []
    for group in groups:
        found += _group(group, source, lines)
    _check_all(found, source)
    return Templates(
        tuple(found), padding, lexicons=_lexicons(content, found, source, lines, read_lexicon),
        source=source,
    )  # fmt: skip


def _group(group: Any, source: str, lines: _Lines) -> list[Template]:
    if not isinstance(group, dict):
        raise InputError(source, 0, "groups [[templates]]", repr(group))
    _known_keys(group, _GROUP_KEYS, source, lines, "[[templates]]")
    features = group.get("features")
    features = [features] if isinstance(features, str) else features
    if not isinstance(features, list) or not features:
        raise InputError(source, lines.of_key("features"), 'features = [ "word[0]", … ]')
    edges, optional = group.get("edges", False), group.get("optional", False)
    if not isinstance(edges, bool | str) or edges not in _ON:
        raise InputError(source, lines.of_key("edges"), 'edges = true, false or "both"', str(edges))
    if not isinstance(optional, bool):
        raise InputError(source, lines.of_key("optional"), "optional = true or false")
    when = group.get("when", [])
    when = [when] if isinstance(when, str) else when
    if not isinstance(when, list) or not all(isinstance(name, str) for name in when):
        raise InputError(source, lines.of_key("when"), "when = the name of a column, or a list")
    found = []
    for text in features:
        if not isinstance(text, str):
            raise InputError(source, 0, "templates as strings", repr(text))
        line = lines.of_text(text)
        try:
            parsed = parse(text)
        except TemplateError as mistake:
            raise InputError(
                source, line, f"{mistake.expected} in the template {text!r:.200}", mistake.found
            ) from None
        found += [
            replace(t, on=_ON[edges], line=line, when=tuple(when), optional=optional)
            for t in parsed
        ]
    return found


def _check_all(found: list[Template], source: str) -> None:
    if len(found) > MAX_TEMPLATES:
        raise InputError(source, 0, f"at most {MAX_TEMPLATES} templates", str(len(found)))
    seen: dict[tuple[str, str], int] = {}
    for template in found:
        for on in (ON_LABELS, ON_EDGES) if template.on == ON_BOTH else (template.on,):
            if (template.text, on) in seen:
                raise InputError(
                    source,
                    template.line,
                    f"every template once, and line {seen[template.text, on]} has this one too",
                    template.text,
                )
            seen[template.text, on] = template.line


def _lexicons(
    content: Mapping[str, Any],
    found: list[Template],
    source: str,
    lines: _Lines,
    read_lexicon: Callable[[str, str], tuple[str, ...]],
) -> dict[str, tuple[str, ...]]:
    files = content.get("lexicons", {})
    if not isinstance(files, dict) or not all(isinstance(path, str) for path in files.values()):
        raise InputError(source, lines.of_key("lexicons"), '[lexicons] with lines name = "file"')
    for template in found:
        for term in template.all_terms():
            if term.source.lexicon and term.source.lexicon not in files:
                raise InputError(
                    source,
                    template.line,
                    f"the lexicon {term.source.lexicon!r} to have a file under [lexicons]",
                    ", ".join(files) or "none",
                )
    return {name: read_lexicon(name, path) for name, path in files.items()}


def _known_keys(
    table: Mapping[str, Any], known: tuple[str, ...], source: str, lines: _Lines, what: str
) -> None:
    for key in table:
        if key not in known:
            raise InputError(source, lines.of_key(key), f"{', '.join(known)} in {what}", key)


class _Lines:
    """Finds lines in a file, which the TOML reader does not keep."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def of_text(self, text: str) -> int:
        """Line of the next string of this content, 0 if it was written in another way."""
        for quote in "\"'":
            place = self._text.find(f"{quote}{text}{quote}", self._at)
            if place >= 0:
                self._at = place + len(text) + 2
                return self._text.count("\n", 0, place) + 1
        return 0

    def of_key(self, key: str) -> int:
        match = re.compile(rf"^\s*\[*\"?{re.escape(key)}\b", re.MULTILINE).search(
            self._text, self._at
        )
        return self._text.count("\n", 0, match.end()) + 1 if match else 0
