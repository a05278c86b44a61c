"""From a name, a path or a text to templates."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from hopefear.errors import HopefearError, InputError
from hopefear.features.templates.crfpp import looks_like_crfpp, parse_crfpp
from hopefear.features.templates.lexicon import read_lexicon
from hopefear.features.templates.spec import Templates
from hopefear.features.templates.toml_file import parse_toml

BUILT_IN = ("pos", "chunking", "crfsuite-chunking", "ner", "bioner", "sapo-bioner")


def load_templates(name_or_path: str | Path) -> Templates:
    """Read a built-in set, a TOML template file or a CRF++ template file.

    Parameters
    ----------
    name_or_path : str or Path
        A name of ``BUILT_IN``, or a path; a file that ends in ``.toml`` is TOML, others are what
        they look like.

    Examples
    --------
    >>> load_templates("pos").columns()
    ('word',)
    """
    name = str(name_or_path)
    if name in BUILT_IN:
        text = (files("hopefear.features.templates") / "sets" / f"{name}.toml").read_text("utf-8")
        return parse_templates(text, name)
    path = Path(name)
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise HopefearError(
            f"{name}: no such template file, and no built-in set of that name; built in are "
            f"{', '.join(BUILT_IN)}"
        ) from None
    except OSError as error:
        raise HopefearError(f"{name}: cannot be read ({error.strerror or error})") from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError(name, line, "a template file in UTF-8") from None
    return parse_templates(text, name, path.parent)


def parse_templates(text: str, source: str = "memory", folder: Path | None = None) -> Templates:
    """Read the text of a template file, TOML or CRF++.

    Parameters
    ----------
    text : str
        Content of the file.
    source : str
        Its path, for messages.
    folder : Path, optional
        Where lexicons lie; without it, a file that names one is refused.

    Examples
    --------
    >>> crfpp = parse_templates("U00:%x[-1,0]/%x[0,0]\\nB")
    >>> crfpp.padding, crfpp.transitions, len(crfpp)
    (True, True, 1)
    """
    text = text.replace("\r\n", "\n")
    if not source.endswith(".toml") and looks_like_crfpp(text):
        return parse_crfpp(text, source)

    def lexicon(name: str, path: str) -> tuple[str, ...]:
        if folder is None:
            raise InputError(source, 0, f"a template file on disk, for the lexicon {name!r}", path)
        return read_lexicon(folder / path, source)

    return parse_toml(text, source, lexicon)
