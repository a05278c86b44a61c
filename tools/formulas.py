r"""Formulas of docstrings, which are written as code, as mathematics.

>>> print(latex("w = m / (eps + sqrt(h))"))
w=m/(\varepsilon +\sqrt{h})
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "hopefear"
_FORMULA = re.compile(
    r" (?:[-+*/=]|<-|[-+]=|[<>]=?|~) |\*\*"
    r"|^-?(?:(?:sum|max|min|mean)_|arg(?:max|min)_|(?:exp|log|sign|max|min)\()"
)
_ARRAY = re.compile(r"^\w+\[.*\]$|log_")
_TOKEN = re.compile(
    r"(?P<blank>\s+)|(?P<number>\d+(?:\.\d+)?)"
    r"|(?P<name>[A-Za-zΣ]+\d*)(?:_(?P<below>\w+(?:,\w+)*|\([^)]*\)|\{[^}]*\}))?(?P<prime>'*)"
    r"|(?P<sign>\.\.|<-|<=|>=|\*\*|_\w|[-+*/=<>|(),.;:·~^'\[\]])"
)
_SIGNS = {
    "<-": r"\leftarrow ", "<=": r"\le ", ">=": r"\ge ", "<": r"\lt ", ">": r"\gt ",
    "*": r"\cdot ", "·": r"\cdot ", ".": r"\cdot ",
    "..": r"\ldots ", "~": r"\sim ", ",": r",\;", ";": r";\;",
}  # fmt: skip
_NAMES = {
    "sum": r"\sum", "Σ": r"\sum", "max": r"\max", "min": r"\min", "log": r"\log", "exp": r"\exp",
    "ln": r"\ln", "argmax": r"\operatorname{argmax}", "argmin": r"\operatorname{argmin}",
    "mean": r"\operatorname{mean}", "sign": r"\operatorname{sign}", "eps": r"\varepsilon",
    "lam": r"\lambda", "tau": r"\tau", "phi": r"\phi", "theta": r"\theta", "beta": r"\beta",
    "mu": r"\mu", "eta": r"\eta", "rho": r"\rho", "gamma": r"\gamma", "Delta": r"\Delta",
}  # fmt: skip
_PROSE = {
    "and",
    "before",
    "far",
    "number",
    "of",
    "over",
    "so",
    "the",
    "under",
    "with",
    "candidates",
}


@cache
def formulas() -> dict[str, str]:
    """Second paragraphs of docstrings that begin with code: without its marks, and with them."""
    paragraphs = {}
    for _, _, text in _docstrings():
        second = " ".join(text.partition("\n\n")[2].partition("\n\n")[0].split())
        if second.startswith("``"):
            paragraphs[second.replace("``", "")] = second.replace("``", "`")
    return paragraphs


@cache
def codes() -> frozenset[str]:
    """Code in those paragraphs, and in all of a loss, a rule or an averaging, that is a formula."""
    texts = [
        text.partition("Examples\n--")[0].replace("``", "`")
        for package, kind, text in _docstrings()
        if kind is ast.ClassDef and package in ("losses", "rules", "averaging")
    ]
    texts += formulas().values()
    pieces = {" ".join(code.split()) for text in texts for code in re.findall("`([^`]+)`", text)}
    return frozenset(
        piece
        for piece in pieces
        if _FORMULA.search(piece) and not _ARRAY.search(piece) and latex(piece)
    )


def _docstrings() -> Iterator[tuple[str, type, str]]:
    """Package, kind and text of all docstrings."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                text = ast.get_docstring(node) or ""
                yield path.relative_to(SOURCE).parts[0], type(node), text


def latex(code: str) -> str | None:
    """LaTeX of a formula; None where it has something else in it."""
    code = re.sub(r"^(.+?) ([-+])= ", r"\1 <- \1 \2 ", code).replace("+ -", "- ")
    position, tokens = 0, []
    while position < len(code):
        token = _TOKEN.match(code, position)
        if token is None:
            return None
        tokens.append(token)
        position = token.end()
    words = iter(tokens)
    text = "".join(_set(words, ""))
    return text if next(words, None) is None else None


def _set(tokens: Iterator[re.Match[str]], end: str) -> Iterator[str]:
    """Pieces of LaTeX up to a closing bracket."""
    before, blank = "", False  # what stands before: an operand, prose, a name that takes brackets
    for token in tokens:
        sign = token["sign"]
        if token["blank"]:
            blank = True
            continue
        if sign == end:
            return
        operand = not sign or sign in "([|"
        if before == "operand" and blank and operand and token["name"] not in _PROSE:
            yield r"\,"
        blank, after = False, "operand" if not sign or sign[0] in ")]|'_" else ""
        if token["name"] == "sqrt":
            next(tokens)
            yield rf"\sqrt{{{''.join(_set(tokens, ')'))}}}"
        elif token["name"] in _PROSE:
            yield rf"\text{{ {token['name']} }}"
            after = ""
        elif token["name"]:
            yield _name(token)
        elif sign in ("**", "^"):
            yield f"^{{{_power(tokens)}}}"
            after = "operand"
        elif sign == "(":
            yield f"({''.join(_set(tokens, ')'))})"
            after = "operand"
        else:
            yield _SIGNS.get(sign, sign) if sign else token[0]
        before = after


def _power(tokens: Iterator[re.Match[str]]) -> str:
    token = next((token for token in tokens if not token["blank"]), None)
    if token is None:
        return ""
    return "".join(_set(tokens, ")")) if token["sign"] == "(" else token[0]


def _name(token: re.Match[str]) -> str:
    name, below = token["name"], token["below"]
    if len(name) == 2 and name[1].isdigit() and below is None:
        name, below = name
    symbol = _NAMES.get(name) or (name if len(name) == 1 else rf"\mathrm{{{name}}}")
    if below is None:
        return (
            symbol + token["prime"] + (" " if symbol.startswith("\\") and "{" not in symbol else "")
        )
    parts = below.strip("(){}").split(",")
    under = ",".join(
        rf"\mathrm{{{part}}}" if part.isalpha() and len(part) > 2 else part for part in parts
    )
    return f"{symbol}_{{{under}}}{token['prime']}"
